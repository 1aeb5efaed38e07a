/** The resources that a process holds at one time. */
export interface Held {
  readonly heapMb: number;
  /** The part of RSS that no file backs. Pages of program files come and go with the page cache. */
  readonly anonMb: number;
  readonly sockets: number;
  /** The number of open file descriptors, sockets included. */
  readonly files: number;
}

/**
 * The most by which each resource may grow in the second half of a run. A leak of 500 bytes per tick in the heap, or of 2 kB
 * outside it, exceeds this. The young generation can grow by 55 MB at any time, so `npm run soak:ticks` keeps it at 12 MB.
 */
const MARGINS: Held = { heapMb: 2.5, anonMb: 10, sockets: 30, files: 30 };

/** The limits at any time. A server closes idle connections, so leaked ones stop growing at some number. */
const LIMITS: Partial<Held> = { sockets: 120, files: 160 };

/** Returns a sentence for each resource that grew too much over the last half of the samples or is above its limit. */
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
