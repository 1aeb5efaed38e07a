import { Command, Option } from 'commander';
import { LOOPS, type Loop } from '../../lib/cluster/cluster-spec.ts';
import type { Act, Cli, GlobalOptions } from '../cli.ts';
import { EXIT, usageError } from '../errors.ts';
import { explain } from '../explain/explanations.ts';
import { logsQuery } from '../explain/logs-query.ts';
import { parseDuration, withExamples } from '../options.ts';
import { registeredCluster } from '../registered.ts';

interface Options extends GlobalOptions {
  readonly loop?: Loop;
  readonly since: number;
  readonly failures?: boolean;
  readonly finding?: string;
  readonly stack?: string;
}

const HOUR_MS = 3_600_000;

export function logsQueryCommand(act: Act): Command {
  const command = new Command('logs-query')
    .description('Print a CloudWatch Logs Insights query for the passes of a cluster, and the command that runs it')
    .argument('<cluster>', 'the name of the cluster')
    .addOption(new Option('--loop <loop>', 'only this loop; default: all').choices(LOOPS))
    .addOption(
      new Option('--since <duration>', 'the time range before now').argParser(parseDuration).default(3 * HOUR_MS, '3h'),
    )
    .option('--failures', 'only failed passes, with their errors')
    .option('--finding <type>', 'only passes with this finding, such as duplicate')
    .option('--stack <name>', 'the stack whose log groups to query; default: the owner of the cluster')
    .action(act<Options>((cli, [cluster = ''], options) => printQuery(cli, cluster, options)));
  return withExamples(command, [
    'kbctl logs-query prod-eu-1 --table kube-bootstrap-controller-prod',
    'kbctl logs-query prod-eu-1 --finding duplicate --since 2d --stack kube-bootstrap-controller-prod',
  ]);
}

async function printQuery(cli: Cli, cluster: string, { loop, since, profile, region, ...options }: Options) {
  const { failures = false, finding } = options;
  if (failures && finding !== undefined) throw usageError('Use either --failures or --finding.');
  const { query, logGroups, start, results } = logsQuery({
    cluster,
    loop,
    sinceMs: since,
    stack: options.stack ?? (await owningStack(cli, cluster)),
    failures,
    finding: finding && knownFinding(finding),
    profile,
    region,
  });
  cli.output.object({ kind: 'LogsQuery', query, logGroups, start, results }, () => query.split('\n'));
  if (!cli.output.isForPrograms) {
    const how = `\nRun it on the log groups ${logGroups.join(', ')}, or with:\n\n${start}\n${results}`;
    for (const line of how.split('\n')) cli.output.say(line);
  }
  return EXIT.fine;
}

function knownFinding(finding: string): string {
  const known = explain(finding);
  if ('what' in known && known.kind === 'finding') return known.word;
  throw usageError(`"${finding}" is not a finding; "kbctl explain" lists them.`);
}

async function owningStack(cli: Cli, name: string): Promise<string | undefined> {
  const { table } = await cli.openTable();
  return (await registeredCluster(table, name)).owner?.stack;
}
