import fc from 'fast-check';

/** Returns how often a property is tried: `FC_RUNS` times as often in CI as at a desk. */
export function runs(atDesk: number): number {
  return atDesk * Number(process.env['FC_RUNS'] ?? 1);
}

/** Any code points, lone surrogates among them. fast-check's own unit `binary` takes seconds to set up. */
export const anyText = ({ minLength = 0 } = {}): fc.Arbitrary<string> =>
  fc.array(fc.nat({ max: 0x10ffff }), { minLength }).map((points) => String.fromCodePoint(...points));
