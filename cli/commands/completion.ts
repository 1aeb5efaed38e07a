import { Argument, Command, type Option } from 'commander';
import { clusterNames } from '../../lib/table/clusters.ts';
import type { Act, Cli } from '../cli.ts';
import { EXIT } from '../errors.ts';

/** The completion script of each shell. A script calls `kbctl completion` for the candidates of the last word. */
const SCRIPTS = {
  bash: `_kbctl() {
  local IFS=$'\\n'
  COMPREPLY=($(kbctl completion bash -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _kbctl kbctl`,
  zsh: `#compdef kbctl
_kbctl() {
  local -a candidates=(\${(f)"$(kbctl completion zsh -- "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  (( $#candidates )) && compadd -- $candidates || _files
}
compdef _kbctl kbctl`,
  fish: `function __kbctl
  set -l words (commandline -opc) (commandline -ct)
  set -l found (kbctl completion fish -- $words[2..] 2>/dev/null)
  test -n "$found"; and printf '%s\\n' $found; or __fish_complete_path (commandline -ct)
end
complete -c kbctl -f -a '(__kbctl)'`,
} as const;

const LOOK_UP_MS = 2_000;

export function completionCommand(act: Act): Command {
  const command = new Command('completion');
  return command
    .description(
      'Print the completion of a shell.\n\nFor bash: source <(kbctl completion bash). For zsh, the same after compinit. For fish: kbctl completion fish | source.',
    )
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(SCRIPTS)))
    .addArgument(new Argument('[word...]', 'after --: the words of a command line, whose candidates are printed'))
    .action(
      act(async (cli, [shell, ...words]) => {
        const root = command.parent ?? command;
        const lines = words.length > 0 ? await candidates(root, words, cli) : [SCRIPTS[shell as keyof typeof SCRIPTS]];
        cli.output.data(lines.map((line) => `${line}\n`).join(''));
        return EXIT.fine;
      }),
    );
}

async function candidates(root: Command, words: readonly string[], cli: Cli): Promise<readonly string[]> {
  const before = words.slice(0, -1);
  const current = words.at(-1) ?? '';
  let command = root;
  for (const word of before) {
    command = command.commands.find((one) => one.name() === word || one.aliases().includes(word)) ?? command;
  }
  const options = [...command.options, ...root.options];
  const option = options.find((one) => one.required && isNamed(one, before.at(-1)));
  const known = async () => {
    if (option !== undefined) return option.argChoices ?? [];
    if (current.startsWith('-')) return options.flatMap(({ long }) => long ?? []);
    if (command.commands.length > 0) return command.commands.map((each) => each.name());
    const [argument] = command.registeredArguments;
    return argument?.argChoices ?? (argument?.name() === 'cluster' ? namesInTable(root, before, cli) : []);
  };
  return [...new Set(await known())].filter((candidate) => candidate.startsWith(current));
}

function isNamed({ short, long }: Option, word: string | undefined): boolean {
  return word !== undefined && (word === short || word === long);
}

/** Returns the names of all clusters; none if the table does not answer soon. The options in `words` select the table. */
async function namesInTable(root: Command, words: readonly string[], cli: Cli): Promise<readonly string[]> {
  try {
    root.parseOptions([...words]);
    const { openTable } = await import('../open-table.ts');
    const signal = AbortSignal.any([cli.signal, AbortSignal.timeout(LOOK_UP_MS)]);
    await using opened = await openTable(root.opts(), [], signal, Date.now);
    return [...(await clusterNames(opened.table))];
  } catch {
    return [];
  }
}
