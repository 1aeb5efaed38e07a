const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN = new Set([0x5b, 0x7b]);
const CLOSE = new Set([0x5d, 0x7d]);

/** Returns the bound that a JSON text exceeds, if any. Builds no objects, and stops at the first level or value above a bound. */
export function exceededBound(
  text: string,
  bounds: Readonly<Record<'levels' | 'values', number>>,
): 'levels' | 'values' | undefined {
  let values = 1;
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (CLOSE.has(code)) depth -= 1;
    else if (OPEN.has(code)) {
      depth += 1;
      values += 1;
    } else if (code === COMMA) values += 1;
    if (depth > bounds.levels) return 'levels';
    if (values > bounds.values) return 'values';
  }
  return undefined;
}

function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end >= 0) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return end;
    end = text.indexOf('"', end + 1);
  }
  return text.length;
}
