import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A command of a page, and what it prints according to the page. */
export interface ConsoleCommand {
  /** `README.md:42` */
  readonly at: string;
  readonly command: string;
  /** Lines; one that is `...` stands for any number of lines. */
  readonly output: readonly string[];
}

export interface ConsoleBlock {
  readonly at: string;
  readonly commands: readonly ConsoleCommand[];
}

/** Every fenced block of a page, by its language. */
export interface FencedBlock {
  readonly language: string;
  /** Of the fence. */
  readonly line: number;
  readonly lines: readonly string[];
}

/** README.md and the pages in `docs`: their texts by their paths in the repository. */
export function pages(repository: string): ReadonlyMap<string, string> {
  const docs = readdirSync(join(repository, 'docs'), { recursive: true, encoding: 'utf8' });
  const paths = ['README.md', ...docs.filter((file) => file.endsWith('.md')).map((file) => join('docs', file))];
  return new Map(paths.sort().map((path) => [path, readFileSync(join(repository, path), 'utf8')]));
}

/** The blocks of a page that are run: those that are fenced as `console`. */
export function consoleBlocks(page: string, text: string): ConsoleBlock[] {
  return fencedBlocks(text)
    .filter(({ language }) => language === 'console')
    .map(({ line, lines }) => ({ at: `${page}:${line}`, commands: commandsOf(page, line, lines) }));
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

/** A command begins with `$ ` and continues in lines that begin with `> `, or after a backslash. */
export function commandsOf(page: string, fence: number, lines: readonly string[]): ConsoleCommand[] {
  const commands: { at: string; command: string; output: string[] }[] = [];
  for (const [index, line] of lines.entries()) {
    const last = commands.at(-1);
    if (line.startsWith('$ ')) {
      commands.push({ at: `${page}:${fence + 1 + index}`, command: line.slice(2), output: [] });
    } else if (last === undefined) {
      throw new Error(`${page}:${fence}: a console block begins with "$ " and a command`);
    } else if (last.output.length === 0 && (line.startsWith('> ') || last.command.endsWith('\\'))) {
      last.command += `\n${line.replace(/^> /, '')}`;
    } else {
      last.output.push(line);
    }
  }
  return commands;
}

/**
 * Whether what was printed holds the lines of the page, in their order; `...` at the end of a line or as a line stands
 * for anything, and numbers stand for any number.
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
 * Whether what was printed is what the page shows, line by line and nothing besides. `...` stands for anything in a line,
 * and alone for any lines; how long something is ago or took, times, ids and loopback ports are as they come.
 */
export function isWhatIsPrinted(printed: string, expected: readonly string[]): boolean {
  const linesOf = (lines: readonly string[]) => lines.map((line) => line.trimEnd()).filter((line) => line !== '');
  const source = linesOf(expected).map((line) => (isGap(line) ? '(?:.*\n)*?' : `${lineSource(line)}\n`));
  const text = linesOf(printed.split('\n')).map((line) => `${line}\n`);
  return new RegExp(`^${source.join('')}$`).test(text.join(''));
}

const isGap = (line: string) => line.trim() === '...';

/** Of these, others of their kind are as good. */
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
