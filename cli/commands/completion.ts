import { Argument, Command, type Option } from 'commander';
import { listClusters } from '../../lib/table/clusters.ts';
import type { Act, Cli } from '../cli.ts';
import { EXIT } from '../errors.ts';
import { withExamples } from '../options.ts';

/** A user waits for the Tab key. */
const NAMES_MS = 2_000;

export function completionCommand(act: Act): Command {
  const command = new Command('completion')
    .description('Print the script that completes commands, options and cluster names in a shell')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .action(
      act(async ({ output }, [shell]) => {
        output.data(SCRIPTS[shell as Shell]);
        return EXIT.fine;
      }),
    );
  return withExamples(command, [
    'source <(kbctl completion bash)                              # in ~/.bashrc',
    'kbctl completion zsh > ~/.zsh/completions/_kbctl              # a folder of $fpath',
    'kbctl completion fish > ~/.config/fish/completions/kbctl.fish',
  ]);
}

/**
 * The command that the scripts run: it prints one candidate per line, with its description after a tab.
 * @param root returns the root of all commands
 */
export function completeCommand(act: Act, root: () => Command): Command {
  return new Command('__complete').argument('[words...]').action(
    act(async (cli, typed) => {
      const { words, clusters } = candidatesFor(root(), typed);
      const names = clusters ? await clusterNames(cli) : [];
      const lines = [
        ...words.map(({ word, description }) => `${word}\t${description}`),
        ...names.filter((name) => name.startsWith(typed.at(-1) ?? '')).map((name) => `${name}\tcluster`),
      ];
      cli.output.data(lines.map((line) => `${line}\n`).join(''));
      return EXIT.fine;
    }),
  );
}

/** Returns no names if the table cannot be read at once: completion prints no errors. */
async function clusterNames(cli: Cli): Promise<readonly string[]> {
  try {
    const { tableUntil } = await cli.openUnmeasured();
    const { clusters } = await listClusters(tableUntil(AbortSignal.timeout(NAMES_MS)));
    return clusters.map(({ spec }) => spec.name);
  } catch {
    return [];
  }
}

interface Candidate {
  readonly word: string;
  readonly description: string;
}

export interface Candidates {
  readonly words: readonly Candidate[];
  /** Whether the name of a cluster may come next. */
  readonly clusters: boolean;
}

/** Returns the candidates for the last of `words`, from the commands themselves. */
export function candidatesFor(root: Command, words: readonly string[]): Candidates {
  const current = words.at(-1) ?? '';
  const { command, operands, pending } = walk(root, words.slice(0, -1));
  const beginning = (candidates: readonly Candidate[]) => candidates.filter(({ word }) => word.startsWith(current));
  if (pending !== undefined) return { words: beginning(choices(pending.argChoices)), clusters: false };
  if (current.startsWith('-')) {
    const options = allOptions(command).map(({ long, description }) => ({ word: long ?? '', description }));
    return { words: beginning(options), clusters: false };
  }
  const last = command.registeredArguments.at(-1);
  const argument = command.registeredArguments[operands] ?? (last?.variadic ? last : undefined);
  const subcommands = command.commands
    .filter((subcommand) => !subcommand.name().startsWith('_'))
    .map((subcommand) => ({ word: subcommand.name(), description: subcommand.summary() }));
  return {
    words: beginning([...subcommands, ...choices(argument?.argChoices)]),
    clusters: argument?.name() === 'cluster',
  };
}

function choices(words: readonly string[] = []): Candidate[] {
  return words.map((word) => ({ word, description: '' }));
}

interface Walked {
  readonly command: Command;
  /** The number of typed operands. */
  readonly operands: number;
  /** The option whose value comes next. */
  readonly pending?: Option | undefined;
}

function walk(root: Command, typed: readonly string[]): Walked {
  let command = root;
  let operands = 0;
  let pending: Option | undefined;
  for (const word of typed) {
    if (pending !== undefined) {
      pending = undefined;
      continue;
    }
    const option = allOptions(command).find(({ short, long }) => word === short || word === long);
    const subcommand = command.commands.find((one) => one.name() === word || one.aliases().includes(word));
    if (option !== undefined) pending = option.required ? option : undefined;
    else if (subcommand !== undefined) command = subcommand;
    else if (!word.startsWith('-')) operands += 1;
  }
  return { command, operands, pending };
}

function allOptions(command: Command): readonly Option[] {
  return [...command.options, ...(command.parent === null ? [] : allOptions(command.parent))];
}

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/** The script of each shell: it runs `kbctl __complete` for each word. */
export const SCRIPTS: Readonly<Record<Shell, string>> = {
  bash: `_kbctl() {
  local IFS=$'\\n'
  COMPREPLY=($(kbctl __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
}
complete -o default -F _kbctl kbctl
`,
  zsh: `#compdef kbctl
_kbctl() {
  local -a found
  local line
  for line in "\${(@f)$(kbctl __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  (( \${#found} )) && _describe kbctl found || _files
}
compdef _kbctl kbctl
`,
  fish: `complete -c kbctl -a '(kbctl __complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`,
};
