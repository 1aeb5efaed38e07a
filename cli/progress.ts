import ora from 'ora';
import type { OutStream } from './terminal.ts';

/** Says how far long work is, on a terminal alone. */
export interface Progress {
  tell(text: string): void;
  /** Takes the line away: what came of it is said by others. */
  end(): void;
}

export function startProgress(stream: OutStream, text: string): Progress {
  const spinner = ora({
    text,
    stream,
    isEnabled: stream.isTTY === true,
    isSilent: stream.isTTY !== true,
    discardStdin: false,
  });
  spinner.start();
  return {
    tell: (told) => {
      spinner.text = told;
    },
    end: () => {
      spinner.stop();
    },
  };
}
