import { Argument, Command } from 'commander';
import { listClusters } from '../../lib/table/clusters.ts';
import type { Act } from '../act.ts';
import type { Cli } from '../cli.ts';
import { candidatesFor } from '../completion/candidates.ts';
import { SCRIPTS, SHELLS, type Shell } from '../completion/scripts.ts';
import { withExamples } from '../examples.ts';
import { EXIT } from '../exit-codes.ts';

/** Somebody waits with a finger on the Tab key. */
const NAMES_MS = 2_000;

/** `kbctl completion bash|zsh|fish`. */
export function completionCommand(act: Act): Command {
  const command = new Command('completion')
    .description('Print what makes a shell complete commands, options and the names of clusters')
    .addArgument(new Argument('<shell>', 'which shell').choices(SHELLS))
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
 * What those scripts ask: a candidate a line, with what it is behind a tab.
 * @param root of all commands, once they are put together
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

/** None, where they cannot be read in a moment: whoever types is told nothing of it. */
async function clusterNames(cli: Cli): Promise<readonly string[]> {
  try {
    const { tableUntil } = await cli.openUnmeasured();
    const { clusters } = await listClusters(tableUntil(AbortSignal.timeout(NAMES_MS)));
    return clusters.map(({ spec }) => spec.name);
  } catch {
    return [];
  }
}
