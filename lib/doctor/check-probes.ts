import { type ProbedAddress, probeAddresses, resolveAddresses } from '../api-servers/probe-addresses.ts';
import type { ClusterSpec } from '../cluster/cluster-spec.ts';
import type { Lease } from '../cluster/lease.ts';
import type { ProbeOutcome } from '../endpoints/probe-outcome.ts';
import type { HostResolver, Prober } from '../kubernetes/cluster-port.ts';
import { type DoctorLine, fail, ok, warn } from './line.ts';

interface Probing {
  readonly probe: Prober;
  readonly resolveHost: HostResolver;
  /** Ends the probes: what was not probed by then has no line. */
  readonly signal: AbortSignal;
}

/** Each address that may be published, asked as the kubernetes-service loop asks it. */
export async function checkProbes(
  spec: ClusterSpec,
  leases: readonly Lease[],
  { probe, resolveHost, signal }: Probing,
): Promise<readonly DoctorLine[]> {
  const { addresses, findings } = await resolveAddresses(spec, resolveHost, leases);
  const names = findings.map(({ message }) =>
    fail('dns', message, 'Correct the DNS records, or the host in apiServers'),
  );
  const outcomes = await probeAddresses(addresses, probe, signal);
  return [
    ...names,
    ...addresses.flatMap((address) => {
      const outcome = outcomes.get(address.address);
      return outcome === undefined ? [] : [aboutAddress(address, outcome)];
    }),
  ];
}

function aboutAddress({ address, target }: ProbedAddress, outcome: ProbeOutcome): DoctorLine {
  const { verdict, detail, answered, odd } = outcome;
  const message = `${address}, asked at ${target.url}, ${answered ? '' : 'gave '}${detail}`;
  if (verdict === 'ready') return ok('probe', message);
  if (verdict === 'alive') {
    const fix =
      'It counts as alive, but not as ready. Say probe.authenticate: true, or let everybody read its probe path';
    return warn('probe', message, fix);
  }
  if (verdict === 'shuttingDown') return warn('probe', message, 'Wait for it to come back');
  if (verdict === 'unknown') return warn('probe', message, 'Ask again');
  if (answered) return fail('probe', message, REMEDIES.status);
  return fail('probe', message, odd ? REMEDIES.tlsFailure : REMEDIES.silence);
}

const REMEDIES = {
  status: 'Look at the API server, or correct probe.path or probe.url',
  tlsFailure: 'Put its CA into the kubeconfig, or the name that its certificate has into probe.serverName',
  silence:
    'Look whether it runs; then at its firewall or security group, and at the route from the VPC of the functions; or name a way that leads there in probe.url',
} as const;
