import { HEADINGS } from './html.ts';

/** Shapes of the five health states, cut out of a square of colour. */
const SHAPES = {
  bad: "<path d='M5 1h6l4 4v6l-4 4H5l-4-4V5z'/><path fill='black' d='M7 4h2v5H7zm0 6h2v2H7z'/>",
  warning: "<path d='M8 1l7.5 14H.5z'/><path fill='black' d='M7.1 6h1.8v4.5H7.1zm0 5.3h1.8V13H7.1z'/>",
  unknown:
    "<path fill='none' stroke='white' stroke-width='2' stroke-dasharray='3 2.2' d='M8 2a6 6 0 1 1 0 12a6 6 0 0 1 0-12'/>",
  paused: "<rect x='1' y='1' width='14' height='14' rx='3'/><path fill='black' d='M5 4h2v8H5zm4 0h2v8H9z'/>",
  good: "<circle cx='8' cy='8' r='7'/><path fill='none' stroke='black' stroke-width='2' d='M4.5 8.2l2.4 2.4 4.6-5'/>",
};

/** Some browsers support only alpha masks, not luminance masks. */
const icons = Object.entries(SHAPES)
  .map(([health, shape]) => {
    const svg = `<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><mask id='m'><g fill='white'>${shape}</g></mask><rect width='16' height='16' mask='url(%23m)'/></svg>`;
    return `.${health}{color:var(--${health})}.${health}::before{--icon:url("data:image/svg+xml,${svg}")}`;
  })
  .join('\n');

/** Bars of the table of all clusters: `f0` to `f20`, in twentieths. */
const bars = Array.from({ length: 21 }, (_, twentieth) => `.f${twentieth}{--full:${twentieth * 5}%}`).join('');

/** On a narrow screen each value is below its heading; the health of a cluster needs none. */
const labels = Object.entries(HEADINGS)
  .flatMap(([kind, headings]) =>
    headings.map((heading, index) => [`${kind} td:nth-child(${index + 1})`, heading] as const),
  )
  .filter(([cell, heading]) => heading !== 'Health' && !cell.endsWith('(1)'))
  .map(([cell, heading]) => `.${cell}::before{content:"${heading}"}`)
  .join('');

/** A row is a block of two columns. */
const NARROW = `.scroll thead{display:none}
.scroll table,.scroll tbody,.scroll td,.scroll th{display:block}
.scroll tr:not([hidden]){display:grid;grid-template-columns:1fr 1fr;gap:6px 14px;padding:10px 0;border-bottom:1px solid var(--line)}
.scroll tr:has(+.error){border-bottom:0}
.scroll tbody th,.scroll td{padding:0;border:0;white-space:normal;min-width:0;max-width:none}
.scroll tbody th,.scroll td.long,.scroll td[colspan]{grid-column:1/-1}
.scroll td:not([class])::before,.scroll td.long::before,.scroll td[class^=f]::before{display:block;font-size:13px;color:var(--soft)}
.glance td[class^=f]{padding-bottom:8px}
${labels}`;

const LIGHT = `--bg:#faf9f7;--card:#fff;--ink:#1c2127;--soft:#5a636e;--line:#e3e0da;--edge:#858c95;--link:#1b5a9e;--focus:#1b5a9e;
--bad:#b3261e;--warning:#8a5300;--unknown:#5f6873;--paused:#47607f;--good:#1b7342;
--on:var(--bg);--shade:#1c212726;--track:#e4e5e6;--free:#e6e8ea;--used:#3d6c9e;--dup:#b3261e;--leak:#b85c00;--held:#6a4bb0;--mark:#fff;--band:#6b747e;`;
const DARK = `--bg:#14161a;--card:#1a1d22;--ink:#e4e7ea;--soft:#a2abb6;--line:#2b3037;--edge:#6d7681;--link:#8fbdf3;--focus:#8fbdf3;
--bad:#ff8f85;--warning:#efb560;--unknown:#a2abb6;--paused:#a3bbd8;--good:#74ce9b;
--on:var(--bg);--shade:#0009;--track:#30353c;--free:#2b3036;--used:#6f9fd1;--dup:#ff7d72;--leak:#eda041;--held:#b79cf3;--mark:#14161a;--band:#8b949e;`;

/** The style sheet of the page: system fonts, light and dark, from 320 pixels on. */
export const PAGE_CSS = `:root{color-scheme:light dark;${LIGHT}
--sans:-apple-system,BlinkMacSystemFont,"Segoe UI","Adwaita Sans",Inter,Roboto,"Noto Sans","Helvetica Neue","Liberation Sans",Arial,sans-serif;
--mono:ui-monospace,"SF Mono","Cascadia Mono",Menlo,Consolas,"Noto Sans Mono","Liberation Mono",monospace}
@media (prefers-color-scheme:dark){:root{${DARK}}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-padding-top:1rem}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.55 var(--sans);overflow-wrap:anywhere;font-variant-numeric:tabular-nums}
#page,footer{max-width:1160px;margin:0 auto;padding:0 24px}
h1,h2,h3,h4,h5,p,ul,ol,dl,dd,figure{margin:0;padding:0}
ul,ol{list-style:none}
h1{font-size:26px;line-height:1.25;font-weight:650;letter-spacing:-.015em}
h2{font-size:18px;line-height:1.3;font-weight:650;letter-spacing:-.005em;margin:44px 0 14px}
h3{font-size:16px;font-weight:650}
h4{font-size:14px;font-weight:650;margin:0 0 6px}
h5{font-size:14px;font-weight:600;margin:0 0 2px}
small{font-size:13px;font-weight:400;color:var(--soft)}
code{font:.885em/1.5 var(--mono);font-variant-ligatures:none}
a{color:var(--link);text-decoration-thickness:1px;text-underline-offset:3px}
a:hover{text-decoration-thickness:2px}
:focus-visible{outline:2px solid var(--focus);outline-offset:2px;border-radius:3px}
main:focus{outline:none}
.soft{color:var(--soft)}
.sr,caption{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.skip{position:absolute;left:16px;top:-60px;padding:8px 14px;background:var(--card);z-index:2}
.skip:focus{top:12px}
.patterns{position:absolute}
header{padding-top:32px}
.eyebrow{font-size:13px;color:var(--soft);margin-bottom:4px}
nav{margin-bottom:6px}
.title{display:flex;flex-wrap:wrap;align-items:baseline;gap:4px 16px;justify-content:space-between}
#live{color:var(--soft);font-size:13px}
#live::before{content:"";display:inline-block;width:8px;height:8px;border-radius:50%;background:var(--good);margin-right:7px}
#live.gone{color:var(--warning);font-weight:600}
#live.gone::before{border-radius:0;background:var(--warning)}
#summary{margin-top:12px;font-size:17px}
.banner{margin-top:18px;padding:12px 16px;border:1px solid var(--edge);border-radius:6px;background:var(--card)}
.bad,.warning,.unknown,.paused,.good{font-weight:550}
.bad::before,.warning::before,.unknown::before,.paused::before,.good::before{content:"";display:inline-block;width:.95em;height:.95em;margin-right:.45em;vertical-align:-.1em;background:currentColor;-webkit-mask:var(--icon) center/contain no-repeat;mask:var(--icon) center/contain no-repeat;forced-color-adjust:none}
${icons}
${bars}
.calm{font-size:16px}
.cards{display:grid;gap:12px;grid-template-columns:repeat(auto-fill,minmax(min(100%,440px),1fr))}
.card{padding:16px 20px;background:var(--card);border:1px solid var(--line);border-left:3px solid var(--bad);border-radius:6px}
.attention{display:grid;gap:10px;margin-top:8px}
.attention p:first-child{position:relative;padding-left:1.5em;font-weight:500}
.attention p:first-child::before{position:absolute;left:0;top:.3em}
.card>p{padding-left:1.5em;margin-top:6px;font-size:14px}
.attention .next{padding-left:1.5em;color:var(--soft)}
.next code,.findings p code{display:inline-block;max-width:100%;color:var(--ink);background:var(--bg);border:1px solid var(--line);border-radius:4px;padding:1px 6px}
form{display:flex;flex-wrap:wrap;gap:10px 20px;align-items:center;margin-bottom:12px}
form[hidden]{display:none}
label{color:var(--soft);font-size:14px}
input,select{margin-left:6px;height:34px;padding:0 10px;font:inherit;font-size:14px;color:var(--ink);background:var(--card);border:1px solid var(--edge);border-radius:6px}
input{width:15em;max-width:60vw}
#filter-count{color:var(--soft);font-size:14px}
.scroll{overflow-x:auto;position:relative;background:linear-gradient(90deg,var(--on) 40%,transparent) 0/24px 100% local,linear-gradient(270deg,var(--on) 40%,transparent) 100%/24px 100% local,linear-gradient(90deg,var(--shade),transparent) 0/9px 100%,linear-gradient(270deg,var(--shade),transparent) 100%/9px 100%;background-repeat:no-repeat}
table{border-collapse:collapse;width:100%;font-size:14px;line-height:1.45}
th,td{padding:7px 20px 7px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line);white-space:nowrap}
th:last-child,td:last-child{padding-right:0}
thead th{padding-top:0;font-size:13px;font-weight:500;color:var(--soft)}
tbody th{font-weight:500}
td.long{white-space:normal;min-width:16em}
tr.error td{white-space:normal;border-top:0;padding-left:14px;color:var(--bad)}
tr:has(+.error)>*{border-bottom:0}
.glance tbody tr:hover{background:var(--card)}
.glance tbody th{max-width:24em;white-space:normal;min-width:9em}
.glance td:nth-child(6){min-width:110px;padding-bottom:5px}
.glance td[class^=f]{background:linear-gradient(90deg,var(--used) var(--full),var(--track) 0) 0 calc(100% - 3px)/calc(100% - 20px) 4px no-repeat}
details{--on:var(--card);border:1px solid var(--line);border-radius:6px;background:var(--card);margin-bottom:8px}
summary{cursor:pointer;padding:12px 20px;display:flex;flex-wrap:wrap;gap:2px 14px;align-items:baseline;list-style:none;border-radius:6px}
summary::-webkit-details-marker{display:none}
summary::before{content:"";width:7px;height:7px;border:solid var(--soft);border-width:0 2px 2px 0;transform:translateY(-2px) rotate(-45deg)}
details[open]>summary::before{transform:translateY(-3px) rotate(45deg)}
.body{padding:4px 20px 24px}
.facts{display:flex;flex-wrap:wrap;gap:6px 32px;font-size:14px}
dt{color:var(--soft);font-size:13px}
.body>.attention,main section>.attention{margin-top:16px}
main>section>.facts{margin-top:18px}
.body>section,main section>section,.ranges{margin-top:26px}
.ranges{display:grid;gap:30px 36px;grid-template-columns:repeat(auto-fit,minmax(min(100%,470px),1fr))}
.range{min-width:0}.wide{grid-column:1/-1}
.figures{display:flex;flex-wrap:wrap;gap:2px 18px;align-items:center;font-size:14px;color:var(--soft)}
.figures b,.legend b{color:var(--ink);font-weight:600}
.range .soft{font-size:13px}
.bar{width:150px;height:6px;border-radius:3px;fill:var(--track);flex:none}
.bar .used{fill:var(--used)}
.bar.warning .used{fill:var(--leak)}
.bar.bad .used{fill:var(--dup)}
.bar::before{content:none}
.map{margin-top:10px}
.grid{display:flex;gap:10px}
.rows{display:flex;flex-direction:column;font:11px/1 var(--mono);color:var(--soft);text-align:right;flex:none}
.rows li{flex:1 0 0;padding-top:1px;white-space:nowrap}
.map svg[role=img]{display:block;flex:0 1 auto;min-width:0;height:auto;max-width:100%;touch-action:manipulation}
.map path,.legend path{fill:none;stroke-width:1}
.at{fill:none;stroke:var(--ink);stroke-width:.22;visibility:hidden;pointer-events:none}
.at.on{visibility:visible}
.legend{display:flex;flex-wrap:wrap;gap:2px 18px;margin-top:8px;font-size:13px;color:var(--soft)}
.legend svg{width:13px;height:13px;margin-right:6px;vertical-align:-2px}
.cell{min-height:1.6em;font:13px/1.6 var(--mono)}
.U{fill:var(--used)}.D{fill:var(--dup)}.L{fill:var(--leak)}.H{fill:var(--held)}.F{fill:var(--free)}
.mark{stroke:var(--mark);stroke-width:.16;fill:none}.dot{fill:var(--mark)}.R{fill:var(--band)}.X{stroke:var(--edge);stroke-width:.1;fill:none}
.holds,.writes{font-size:14px}
h5:has(+.writes){margin-top:10px}
.findings{margin-bottom:20px}
.findings p{font-size:14px;color:var(--soft);margin-bottom:8px}
footer{margin-top:56px;padding-bottom:40px;color:var(--soft);font-size:13px}
@media (max-width:640px){.bar{width:100%}#page,footer{padding:0 16px}header{padding-top:22px}h2{margin-top:34px}.card,summary{padding-left:14px;padding-right:14px}.body{padding:4px 14px 20px}.rows{font-size:9px}.grid{gap:6px}${NARROW}}
@media (prefers-reduced-motion:no-preference){html{scroll-behavior:smooth}}
@media print{details:not([open])>*{display:revert}.skip,form{display:none}}
`;
