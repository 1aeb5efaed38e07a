import { canonicalAddress } from '../../lib/allocator/ip-address.ts';
import type { ClusterSpec } from '../../lib/cluster/cluster-spec.ts';
import type { ServiceClaim } from '../../lib/cluster/kubernetes-objects.ts';
import { listAllServices } from '../../lib/kubernetes/service-list.ts';
import { nodePortsOf } from '../../lib/repair/node-ports.ts';
import { describeError } from '../../lib/telemetry/describe-error.ts';
import type { Cli } from '../cli.ts';
import { type ExitCode, exitCodeOf } from '../errors.ts';
import { type ConnectionOptions, connectionOf } from '../options.ts';
import type { ItemPlace } from './item-place.ts';

/** A list of 50,000 Services takes a few seconds. */
const LONGEST_MS = 30_000;

/** The API server did not say. */
export interface NotTold {
  readonly exitCode: ExitCode;
}

/**
 * Asks the cluster's API server which Services have each of the items: `namespace/name`, once for each claim, in the
 * order of the places. What keeps it from telling is said, and no reason to end.
 */
export async function servicesWith(
  cli: Cli,
  spec: ClusterSpec,
  places: readonly ItemPlace[],
  options: ConnectionOptions,
): Promise<readonly (readonly string[])[] | NotTold> {
  const { passEnvironment } = await import('../pass-environment.ts');
  const { environment, close } = await passEnvironment(cli, await cli.openTable(), connectionOf(options));
  const { signal, cancel } = environment.startDeadline(LONGEST_MS);
  const progress = cli.progress('asking the API server for Services');
  try {
    const warn = (text: string) => cli.output.say(`${spec.name}: ${text}`);
    const { kubernetes } = await environment.connect(spec, {
      loop: places[0]?.loop ?? 'cluster-ip-repair',
      signal,
      warn,
    });
    const services = await listAllServices(kubernetes);
    return places.map((place) => services.flatMap((service) => claimsOf(service, place)));
  } catch (error) {
    const exitCode = exitCodeOf(error);
    if (exitCode === undefined || cli.signal.aborted) throw error;
    progress.end();
    cli.output.say(`The API server did not tell which Services there are: ${describeError(error).message}`);
    return { exitCode };
  } finally {
    progress.end();
    cancel();
    await close();
  }
}

function claimsOf(service: ServiceClaim, { kind, item }: ItemPlace): string[] {
  const claimed = kind === 'ip' ? service.clusterIPs.map(canonicalAddress) : nodePortsOf(service).map(String);
  return claimed.filter((claim) => claim === item).map(() => `${service.namespace}/${service.name}`);
}
