import ora from 'ora';
import { escapeControls, type OutStream } from './terminal.ts';

/** Says how far long work is, on a terminal alone. */
export interface Progress {
  tell(text: string): void;
  /** Takes the line away: what came of it is said by others. */
  end(): void;
}

export function startProgress(stream: OutStream, text: string): Progress {
  // A terminal that does not tell its width (`docker exec -t`, `script`) says 0, which the spinner would divide by.
  const isShown = stream.isTTY === true && stream.columns !== 0;
  const spinner = ora({
    text: escapeControls(text),
    stream,
    isEnabled: isShown,
    isSilent: !isShown,
    discardStdin: false,
  });
  spinner.start();
  return {
    tell: (told) => {
      spinner.text = escapeControls(told);
    },
    end: () => {
      spinner.stop();
    },
  };
}
