import fc from 'fast-check';

/** Returns the number of runs of a property: `atDesk`, or `FC_RUNS` times as many, as in CI. */
export function runs(atDesk: number): number {
  return atDesk * Number(process.env['FC_RUNS'] ?? 1);
}

/** Text of any code points, lone surrogates included. The `binary` unit of fast-check takes seconds to set up. */
export const anyText = ({ minLength = 0 } = {}): fc.Arbitrary<string> =>
  fc.array(fc.nat({ max: 0x10ffff }), { minLength }).map((points) => String.fromCodePoint(...points));
