/** What a process holds at one time. */
export interface Held {
  readonly heapMb: number;
  /** Of RSS what no file backs: pages of the program come and go with the page cache. */
  readonly anonMb: number;
  readonly sockets: number;
  /** Sockets included. */
  readonly files: number;
}

/**
 * How much more the process may hold at the end than halfway: a leak of 500 bytes per tick in the heap, of 2 kB outside it.
 * Memory would follow the young generation, which grows by 55 MB at some time: `npm run soak:ticks` keeps it at 12 MB.
 */
const MARGINS: Held = { heapMb: 2.5, anonMb: 10, sockets: 30, files: 30 };

/** A server closes a connection that is idle, so leaked ones reach a level and stay there. The level is limited, too. */
const LIMITS: Partial<Held> = { sockets: 120, files: 160 };

/** Returns a sentence for each figure that grew too much over the last half of the samples, or is above its limit. */
export function growthOf(samples: readonly Held[]): readonly string[] {
  const half = samples[Math.ceil(samples.length / 2) - 1];
  const last = samples.at(-1);
  if (half === undefined || last === undefined) return [];
  return (Object.keys(MARGINS) as (keyof Held)[]).flatMap((name) => {
    const grown = last[name] - half[name];
    const most = Math.max(...samples.map((sample) => sample[name]));
    const limit = LIMITS[name] ?? Number.POSITIVE_INFINITY;
    return [
      ...(grown > MARGINS[name] ? [`${name} grew by ${grown.toFixed(1)}; ${MARGINS[name]} are allowed`] : []),
      ...(most > limit ? [`${name} reached ${most}; ${limit} are allowed`] : []),
    ];
  });
}
