/**
 * For the page's script: `itemText(kind, base, index)`, the item of a range by number, as `itemTexts` of
 * `item-text.ts` has it. A test holds the two together.
 */
export const ITEM_TEXT_SCRIPT = `
function itemText(kind, base, index) {
  const value = BigInt(base) + BigInt(index);
  if (kind === 'port') return String(value);
  if (kind === 'ipv4' || value >> 32n === 0xffffn) {
    return [24n, 16n, 8n, 0n].map((bits) => (value >> bits) & 255n).join('.');
  }
  const groups = value.toString(16).padStart(32, '0').match(/.{4}/g).map((group) => parseInt(group, 16).toString(16));
  const [run] = (groups.map((group) => (group === '0' ? '0' : '-')).join('').match(/00+/g) ?? []).sort((a, b) => b.length - a.length);
  if (!run) return groups.join(':');
  const at = groups.map((group) => (group === '0' ? '0' : '-')).join('').indexOf(run);
  return groups.slice(0, at).join(':') + '::' + groups.slice(at + run.length).join(':');
}
`;
