import { filesInRepository, readInRepository } from './repository.ts';

interface ConsoleCommand {
  /** The place of the command, such as `README.md:42`. */
  readonly at: string;
  readonly command: string;
  /** The lines of the output. A line `...` stands for any number of lines. */
  readonly output: readonly string[];
}

export interface FencedBlock {
  readonly language: string;
  readonly line: number;
  readonly lines: readonly string[];
}

/** Returns the texts of README.md and of the pages in `docs`, by path in the repository. */
export function pages(): ReadonlyMap<string, string> {
  const paths = ['README.md', ...filesInRepository('docs').filter((file) => file.endsWith('.md'))];
  return new Map(paths.sort().map((path) => [path, readInRepository(path)]));
}

/** Returns the commands of a page that tests run: those in blocks that are fenced as `console`. */
export function consoleCommands(page: string, text: string): ConsoleCommand[] {
  const blocks = fencedBlocks(text).filter(({ language }) => language === 'console');
  return blocks.flatMap(({ line, lines }) => commandsOf(page, line, lines));
}

export function fencedBlocks(text: string): FencedBlock[] {
  const blocks: FencedBlock[] = [];
  let open: { indent: number; language: string; line: number; lines: string[] } | undefined;
  for (const [index, line] of text.split('\n').entries()) {
    const fence = /^( *)```(\S*)/.exec(line);
    if (fence === null) open?.lines.push(line.slice(open.indent));
    else if (open === undefined) {
      const [, indent = '', language = ''] = fence;
      open = { indent: indent.length, language, line: index + 1, lines: [] };
    } else {
      blocks.push(open);
      open = undefined;
    }
  }
  return blocks;
}

/** Returns the commands of a block. Each is a line that begins with `$ `. */
export function commandsOf(page: string, fence: number, lines: readonly string[]): ConsoleCommand[] {
  const commands: { at: string; command: string; output: string[] }[] = [];
  for (const [index, line] of lines.entries()) {
    const last = commands.at(-1);
    if (line.startsWith('$ ')) {
      commands.push({ at: `${page}:${fence + 1 + index}`, command: line.slice(2), output: [] });
    } else if (last === undefined) {
      throw new Error(`${page}:${fence}: a console block begins with "$ " and a command`);
    } else {
      last.output.push(line);
    }
  }
  return commands;
}

/**
 * Returns whether the output contains the expected lines in their order. `...` at the end of a line, or as a line, stands for
 * anything, and a number stands for any number.
 */
export function showsThat(printed: string, expected: readonly string[]): boolean {
  const plain = (line: string) =>
    line
      .trim()
      .replaceAll('…', '...')
      .replace(/\s+/g, ' ')
      .replace(/\d+(?:\.\d+)?/g, '0');
  const lines = expected.map(plain).filter((line) => line !== '' && !isGap(line));
  const shown = ['...', ...lines.flatMap((line) => [line, '...'])];
  return isWhatIsPrinted(printed.split('\n').map(plain).join('\n'), shown);
}

/**
 * Returns whether the output has exactly the expected lines. `...` stands for anything in a line, and on its own for any lines.
 * Ages, durations, times, ids and loopback ports may differ.
 */
export function isWhatIsPrinted(printed: string, expected: readonly string[]): boolean {
  const linesOf = (lines: readonly string[]) => lines.map((line) => line.trimEnd()).filter((line) => line !== '');
  const source = linesOf(expected).map((line) => (isGap(line) ? '(?:.*\n)*?' : `${lineSource(line)}\n`));
  const text = linesOf(printed.split('\n')).map((line) => `${line}\n`);
  return new RegExp(`^${source.join('')}$`).test(text.join(''));
}

const isGap = (line: string) => line.trim() === '...';

/** Values that may differ from the page, if the output has another value of the same kind. */
const VARIES: readonly RegExp[] = [
  /\.\.\./,
  /\d{4}-\d{2}-\d{2}T[\d:.]+Z/,
  /\d\d:\d\d:\d\d/,
  /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/,
  /127\.0\.0\.1:\d+/,
  /(?<![\w.])(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+(?!\w)/,
];
const VARYING = new RegExp(`(${VARIES.map(({ source }) => source).join('|')})`);

function lineSource(line: string): string {
  return line
    .split(VARYING)
    .map((part, index) => {
      if (index % 2 === 0) return quoted(part).replace(/ {2,}/g, ' {2,}');
      if (part === '...') return '.*';
      return VARIES.find((kind) => new RegExp(`^(?:${kind.source})$`).test(part))?.source ?? quoted(part);
    })
    .join('');
}

const quoted = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
