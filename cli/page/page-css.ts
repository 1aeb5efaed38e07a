/** The shapes of the five health states, as masks of a coloured square. */
const SHAPES = {
  unhealthy: "<path d='M5 1h6l4 4v6l-4 4H5l-4-4V5z'/><path fill='black' d='M7 4h2v5H7zm0 6h2v2H7z'/>",
  warning: "<path d='M8 1l7.5 14H.5z'/><path fill='black' d='M7.1 6h1.8v4.5H7.1zm0 5.3h1.8V13H7.1z'/>",
  unknown:
    "<path fill='none' stroke='white' stroke-width='2' stroke-dasharray='3 2.2' d='M8 2a6 6 0 1 1 0 12a6 6 0 0 1 0-12'/>",
  paused: "<rect x='1' y='1' width='14' height='14' rx='3'/><path fill='black' d='M5 4h2v8H5zm4 0h2v8H9z'/>",
  good: "<circle cx='8' cy='8' r='7'/><path fill='none' stroke='black' stroke-width='2' d='M4.5 8.2l2.4 2.4 4.6-5'/>",
};

/** Each SVG turns the luminance of its shape into alpha, because some browsers support only alpha masks. */
const icons = Object.entries(SHAPES)
  .map(([health, shape]) => {
    const svg = `<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><mask id='m'><g fill='white'>${shape}</g></mask><rect width='16' height='16' mask='url(%23m)'/></svg>`;
    return `.${health}{color:var(--${health})}.${health}::before{--icon:url("data:image/svg+xml,${svg}")}`;
  })
  .join('\n');

const LIGHT = `--bg:#faf9f7;--card:#fff;--ink:#1c2127;--soft:#5a636e;--line:#e3e0da;--edge:#858c95;--link:#1b5a9e;--focus:#1b5a9e;
--unhealthy:#b3261e;--warning:#8a5300;--unknown:#5f6873;--paused:#47607f;--good:#1b7342;
--free:#e6e8ea;--used:#3d6c9e;--dup:#b3261e;--leak:#b85c00;--held:#6a4bb0;--mark:#fff;--band:#6b747e;`;
const DARK = `--bg:#14161a;--card:#1a1d22;--ink:#e4e7ea;--soft:#a2abb6;--line:#2b3037;--edge:#6d7681;--link:#8fbdf3;--focus:#8fbdf3;
--unhealthy:#ff8f85;--warning:#efb560;--unknown:#a2abb6;--paused:#a3bbd8;--good:#74ce9b;
--free:#2b3036;--used:#6f9fd1;--dup:#ff7d72;--leak:#eda041;--held:#b79cf3;--mark:#14161a;--band:#8b949e;`;

export const PAGE_CSS = `:root{color-scheme:light dark;${LIGHT}}
@media (prefers-color-scheme:dark){:root{${DARK}}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1160px;padding:24px;background:var(--bg);color:var(--ink);font:15px/1.55 system-ui,sans-serif;overflow-wrap:anywhere;font-variant-numeric:tabular-nums}
h1,h2,h3,p,ul,figure{margin:0;padding:0}
ul{list-style:none}
h1{font-size:26px;line-height:1.25}
h2{font-size:18px;margin:36px 0 12px}
h3{font-size:15px;margin-bottom:6px}
code{font:.885em/1.5 ui-monospace,monospace}
a{color:var(--link)}
:focus-visible{outline:2px solid var(--focus);outline-offset:2px}
.soft{color:var(--soft)}
.sr,caption{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
#live{color:var(--soft);font-size:13px}
#live.gone{color:var(--warning);font-weight:600}
#summary{margin-top:12px;font-size:17px}
.unhealthy,.warning,.unknown,.paused,.good{font-weight:550}
.unhealthy::before,.warning::before,.unknown::before,.paused::before,.good::before{content:"";display:inline-block;width:.95em;height:.95em;margin-right:.45em;vertical-align:-.1em;background:currentColor;mask:var(--icon) center/contain no-repeat;forced-color-adjust:none}
${icons}
.card{margin-bottom:12px;padding:16px 20px;background:var(--card);border:1px solid var(--line);border-left:3px solid var(--unhealthy);border-radius:6px}
details.card{margin-bottom:6px;padding:0 14px}
summary{display:flex;gap:4px 14px;align-items:baseline;padding:7px 0;cursor:pointer}
summary::before{content:"▸";color:var(--soft)}
[open]>summary::before{content:"▾"}
summary b{flex:none;width:16em;max-width:50%;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
details[open]{padding-bottom:12px}
[hidden]{display:none!important}
#filter{display:flex;flex-wrap:wrap;gap:6px 18px;align-items:baseline;margin:12px 0;font-size:14px}
input,select{font:inherit;color:inherit;background:var(--card);border:1px solid var(--edge);border-radius:4px;padding:3px 6px}
.jump{display:none}
.attention li+li{margin-top:10px}
.attention .soft{padding-left:1.4em}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:14px;line-height:1.45}
th,td{padding:7px 20px 7px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line);overflow-wrap:normal}
th,td:not(:last-child){white-space:nowrap}
td.wraps,td:last-child{overflow-wrap:anywhere;white-space:normal}
td.wraps{min-width:16em}
tbody th{max-width:18em;overflow:hidden;text-overflow:ellipsis}
thead th{font-size:12px;font-weight:500;color:var(--soft)}
tbody th{font-weight:500}
meter{width:90px;vertical-align:-.1em}
.maps{display:flex;flex-wrap:wrap;gap:30px 36px;margin-top:26px}
figure svg[role=img]{display:block;max-width:100%}
.legend{display:flex;flex-wrap:wrap;gap:2px 18px;margin-top:8px;font-size:13px;color:var(--soft)}
.legend b{color:var(--ink)}
.legend svg{width:13px;height:13px;margin-right:6px;vertical-align:-2px}
.U{fill:var(--used)}.D{fill:var(--dup)}.L{fill:var(--leak)}.H{fill:var(--held)}.F{fill:var(--free)}
.mark{stroke:var(--mark);stroke-width:.16;fill:none}.dot{fill:var(--mark)}.R{fill:var(--band)}.X{stroke:var(--edge);stroke-width:.1;fill:none}
footer{margin-top:56px;color:var(--soft);font-size:13px}
@media (max-width:700px){body{padding:14px}.jump{display:block;margin-top:8px}summary{flex-wrap:wrap}tbody th{max-width:9em}}
`;
