import { Command, Option } from 'commander';
import { VERSION } from '../lib/runtime/version.ts';
import type { Act } from './cli.ts';
import { allocateCommand, releaseCommand } from './commands/allocate.ts';
import { clusterApply, clusterDiff } from './commands/cluster-apply.ts';
import { clusterCloseAllocation, clusterDelete, clusterSetMode, clusterTakeOver } from './commands/cluster-changes.ts';
import { clusterGet } from './commands/cluster-get.ts';
import { completionCommand } from './commands/completion.ts';
import { deregisterCommand } from './commands/deregister.ts';
import { doctorCommand } from './commands/doctor.ts';
import { explainCommand } from './commands/explain.ts';
import { getCommand } from './commands/get.ts';
import { heartbeatCommand } from './commands/heartbeat.ts';
import { pageCommand } from './commands/page.ts';
import { pauseCommand, resumeCommand } from './commands/pause.ts';
import { runCommand } from './commands/run.ts';
import { runOnceCommand } from './commands/run-once.ts';
import { showCommand } from './commands/show.ts';
import { statusCommand } from './commands/status.ts';
import { EXIT } from './errors.ts';
import { parseDuration, parseUrl } from './options.ts';
import { FORMATS } from './output.ts';

const DESCRIPTION = `Manage the clusters of kube-bootstrap-controller.

The table is one in AWS (--table NAME; profile and region as for the AWS CLI), or that of the "kbctl run" in this folder.`;

const EXIT_CODES = `
Exit codes: 0 success, 1 findings or a difference, 2 usage, 3 configuration, 4 API server, 5 table, 130 interrupted.
Data is printed on stdout, everything else on stderr. NO_COLOR turns colors off.`;

export function program(act: Act): Command {
  const kbctl = new Command('kbctl')
    .description(DESCRIPTION)
    .version(VERSION)
    .addOption(new Option('-o, --output <format>', 'the output format').choices(FORMATS).default('table'))
    .option('--table <name>', 'the table in AWS')
    .option('--profile <name>', 'the profile of the AWS CLI')
    .option('--region <name>', 'the region of the table')
    .option('--endpoint-url <url>', 'the DynamoDB endpoint of the table, such as http://scylla:8000', parseUrl)
    .option('--data <folder>', 'the folder of a local run; default: that of the active run in .kbctl')
    .option('--timeout <duration>', 'the timeout of the command, such as 30s', parseDuration)
    .option('--debug', 'print the stack trace of an error')
    .configureHelp({ showGlobalOptions: true, minWidthToWrap: 24 })
    .showHelpAfterError('Use --help for usage.')
    .addHelpText('after', EXIT_CODES)
    .addCommand(clusterCommand(act))
    .addCommand(statusCommand(act))
    .addCommand(pauseCommand(act))
    .addCommand(resumeCommand(act))
    .addCommand(getCommand(act))
    .addCommand(showCommand(act))
    .addCommand(allocateCommand(act))
    .addCommand(releaseCommand(act))
    .addCommand(explainCommand(act))
    .addCommand(runOnceCommand(act))
    .addCommand(heartbeatCommand(act))
    .addCommand(deregisterCommand(act))
    .addCommand(doctorCommand(act))
    .addCommand(runCommand(act))
    .addCommand(pageCommand(act))
    .addCommand(completionCommand(act))
    .addCommand(
      new Command('version').description('Print the version').action(
        act(async ({ output }) => {
          output.object({ kind: 'Version', version: VERSION }, () => [VERSION]);
          return EXIT.fine;
        }),
      ),
    );
  inheritSettings(kbctl);
  return kbctl;
}

function clusterCommand(act: Act): Command {
  return new Command('cluster')
    .description('Register clusters, and change their registrations')
    .addCommand(clusterApply(act))
    .addCommand(clusterDiff(act))
    .addCommand(clusterGet(act))
    .addCommand(clusterDelete(act))
    .addCommand(clusterSetMode(act))
    .addCommand(clusterTakeOver(act))
    .addCommand(clusterCloseAllocation(act));
}

/** Copies the settings of a command to its subcommands, because separately created commands do not inherit them. */
function inheritSettings(command: Command): void {
  for (const subcommand of command.commands) {
    subcommand.copyInheritedSettings(command);
    // Each paragraph becomes one line, which the help wraps to the width of the terminal.
    const description = subcommand.description().replace(/(?<=\S)\n(?=\S)/g, ' ');
    // A list of commands shows the first line of each description.
    subcommand.description(description).summary(description.split('\n', 1)[0]?.replace(/\.$/, '') ?? '');
    inheritSettings(subcommand);
  }
}
