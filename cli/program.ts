import { Command, Option } from 'commander';
import { VERSION } from '../lib/runtime/version.ts';
import type { Act } from './cli.ts';
import { allocateCommand } from './commands/allocate.ts';
import { clusterCommand } from './commands/cluster.ts';
import { completeCommand, completionCommand } from './commands/completion.ts';
import { deregisterCommand } from './commands/deregister.ts';
import { doctorCommand } from './commands/doctor.ts';
import { explainCommand } from './commands/explain.ts';
import { exportCommand } from './commands/export-ranges.ts';
import { getCommand } from './commands/get.ts';
import { heartbeatCommand } from './commands/heartbeat.ts';
import { importCommand } from './commands/import-ranges.ts';
import { logsQueryCommand } from './commands/logs-query.ts';
import { pageCommand } from './commands/page.ts';
import { pauseCommand, resumeCommand } from './commands/pause.ts';
import { releaseCommand } from './commands/release.ts';
import { runCommand } from './commands/run.ts';
import { runOnceCommand } from './commands/run-once.ts';
import { showCommand } from './commands/show.ts';
import { statusCommand } from './commands/status.ts';
import { parseDuration } from './options.ts';
import { FORMATS } from './output.ts';

const DESCRIPTION = `Looks at and keeps the clusters of kube-bootstrap-controller.

The table is one in AWS (--table NAME; profile and region as the AWS CLI finds them), or that of the "kbctl run" that is going on in this folder.`;

const EXIT_CODES = `
Exit codes: 0 fine, 1 findings or a difference, 2 usage, 3 configuration, 4 API server, 5 table, 130 interrupted.
Data is on stdout, everything else on stderr. NO_COLOR takes the colours away.`;

/** The whole command line. */
export function program(act: Act): Command {
  const kbctl = new Command('kbctl')
    .description(DESCRIPTION)
    .version(VERSION)
    .addOption(new Option('-o, --output <format>', 'how data is printed').choices(FORMATS).default('table'))
    .option('--table <name>', 'the table in AWS')
    .option('--profile <name>', 'a profile of the AWS CLI')
    .option('--region <name>', 'the region of the table')
    .option('--data <folder>', 'the folder of a local run; default: the one that is running in .kbctl')
    .option('--timeout <duration>', 'give up after this time, such as 30s', parseDuration)
    .option('--debug', 'with the stack of an error')
    .configureHelp({ showGlobalOptions: true, minWidthToWrap: 24 })
    .showHelpAfterError('Try the same with --help.')
    // The nearest word to "delete" would be "release".
    .showSuggestionAfterError(false)
    .addHelpText('after', EXIT_CODES)
    .addCommand(clusterCommand(act))
    .addCommand(statusCommand(act))
    .addCommand(pauseCommand(act))
    .addCommand(resumeCommand(act))
    .addCommand(getCommand(act))
    .addCommand(showCommand(act))
    .addCommand(allocateCommand(act))
    .addCommand(releaseCommand(act))
    .addCommand(exportCommand(act))
    .addCommand(importCommand(act))
    .addCommand(explainCommand(act))
    .addCommand(logsQueryCommand(act))
    .addCommand(runOnceCommand(act))
    .addCommand(heartbeatCommand(act))
    .addCommand(deregisterCommand(act))
    .addCommand(doctorCommand(act))
    .addCommand(runCommand(act))
    .addCommand(pageCommand(act))
    .addCommand(completionCommand(act))
    .addCommand(
      completeCommand(act, () => kbctl),
      { hidden: true },
    );
  settleAlike(kbctl);
  return kbctl;
}

/** Commands that are made apart from their parent do not have its settings by themselves. */
function settleAlike(command: Command): void {
  for (const subcommand of command.commands) {
    subcommand.copyInheritedSettings(command);
    subcommand.description(unwrapped(subcommand.description()));
    // In a list of commands the first line says enough.
    if (subcommand.summary() === '') subcommand.summary(subcommand.description().split('\n', 1)[0] ?? '');
    settleAlike(subcommand);
  }
}

/** Paragraphs as lines: the help wraps them to the width of the terminal. */
function unwrapped(text: string): string {
  return text.replace(/(?<=\S)\n(?=\S)/g, ' ');
}
