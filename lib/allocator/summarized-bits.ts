const FULL_WORD = 0xffffffff;

/**
 * Bits in 32-bit words, under levels of summary: a bit of one level is set when the word of the level below that it
 * stands for is full. The next clear bit is found by climbing until a word is not full and descending into what it
 * says is not, so that a nearly full set of 65,536 bits is searched in a handful of steps instead of two thousand.
 */
export class SummarizedBits {
  /** The bits, then each summary, up to one of a single word. */
  readonly #levels: readonly Uint32Array[];

  /** Takes the words over; bit 0 is the lowest of the first. */
  constructor(words: Uint32Array) {
    const levels = [words];
    for (let below = words; below.length > 1; ) {
      below = summaryOf(below);
      levels.push(below);
    }
    this.#levels = levels;
  }

  static ofCapacity(bits: number): SummarizedBits {
    return new SummarizedBits(new Uint32Array(wordsFor(bits)));
  }

  /** For reading. */
  get words(): Uint32Array {
    return this.#level(0);
  }

  get capacity(): number {
    return this.words.length * 32;
  }

  has(bit: number): boolean {
    return ((wordAt(this.words, bit >>> 5) >>> (bit & 31)) & 1) === 1;
  }

  /** `bit` is below the capacity. */
  set(bit: number): void {
    let position = bit;
    for (const level of this.#levels) {
      const index = position >>> 5;
      const word = (wordAt(level, index) | (1 << (position & 31))) >>> 0;
      level[index] = word;
      if (word !== FULL_WORD) return;
      position = index;
    }
  }

  clear(bit: number): void {
    let position = bit;
    for (const level of this.#levels) {
      const index = position >>> 5;
      const word = wordAt(level, index);
      level[index] = word & ~(1 << (position & 31));
      if (word !== FULL_WORD) return;
      position = index;
    }
  }

  /** The lowest clear bit that is not below `from`; at or beyond the capacity when there is none. */
  nextClear(from: number): number {
    let height = 0;
    let position = from;
    let found = clearBitAt(this.words, position);
    while (found < 0) {
      height++;
      const summary = this.#levels[height];
      if (summary === undefined) return this.capacity;
      position = (position >>> 5) + 1;
      found = clearBitAt(summary, position);
    }
    for (; height > 0; height--) found = clearBitAt(this.#level(height - 1), found * 32);
    return found;
  }

  #level(height: number): Uint32Array {
    return this.#levels[height] ?? NO_WORDS;
  }
}

const NO_WORDS = new Uint32Array(0);

/** The first clear bit of the word that holds `position`, not below it; -1 when none is left there. */
function clearBitAt(words: Uint32Array, position: number): number {
  const index = position >>> 5;
  const clear = ~wordAt(words, index) & (-1 << (position & 31));
  return clear === 0 ? -1 : index * 32 + lowestBit(clear);
}

function wordAt(words: Uint32Array, index: number): number {
  return words[index] ?? 0;
}

function lowestBit(word: number): number {
  return 31 - Math.clz32(word & -word);
}

/** Words that do not exist count as full. */
function summaryOf(words: Uint32Array): Uint32Array {
  const summary = new Uint32Array(wordsFor(words.length)).fill(FULL_WORD);
  words.forEach((word, index) => {
    if (word !== FULL_WORD) summary[index >>> 5] = wordAt(summary, index >>> 5) & ~(1 << (index & 31));
  });
  return summary;
}

function wordsFor(bits: number): number {
  return Math.ceil(bits / 32);
}
