import { EXIT } from './exit-codes.ts';

/** How many parts of this process must come to their end, whoever reads what it says. */
let unfinished = 0;

/** Who reads the output may have seen enough: the process ends then, unless it is in the middle of writing. */
export function endWhenUnread(stream: NodeJS.WriteStream): void {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    if (unfinished === 0) process.exit(EXIT.fine);
  });
}

/** Does all of the work, also where nobody reads what it says any more. */
export async function whateverIsRead<Result>(work: () => Promise<Result>): Promise<Result> {
  unfinished++;
  try {
    return await work();
  } finally {
    unfinished--;
  }
}
