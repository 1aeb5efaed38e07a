import { canonicalAddress } from '../../lib/allocator/ip-address.ts';
import { chooseAdvertiseAddress } from '../../lib/cluster/address-choice.ts';
import type { ApiServerSpec, ClusterSpec } from '../../lib/cluster/cluster-spec.ts';
import { LEASE_INTERVALS } from '../../lib/cluster/schedules.ts';
import { readHostNetwork } from '../../local/host-network.ts';
import { configurationError, usageError } from '../errors.ts';
import { knownInstead } from '../unknown-address.ts';

export type OwnServer = Extract<ApiServerSpec, { address: string }>;

/** The address of the option in its canonical form; `auto` is the one that an API server on this host would publish. */
export function ownAddress(told: string): string {
  if (told !== 'auto') {
    const address = canonicalAddress(told);
    if (address !== undefined) return address;
    throw usageError(`--address ${told} is no IP address: name that of this host, or say auto.`);
  }
  const choice = chooseAdvertiseAddress({}, readHostNetwork());
  if (!(choice instanceof Error)) return choice.address;
  throw configurationError(`This host has no address to choose: ${choice.message} Name it with --address IP.`);
}

/** The API server of the spec that has the address. @throws CliError when it can have no lease of its own. */
export function ownServer(spec: ClusterSpec, address: string, everyMs: number): OwnServer {
  const { name, endpoints } = spec;
  if (endpoints.reconciler === 'none') {
    throw configurationError(
      `${name} publishes no endpoints (endpoints.reconciler: none): there are no leases to keep.`,
    );
  }
  const server = spec.apiServers.find((one) => 'address' in one && one.address === address);
  if (server === undefined || !('address' in server)) {
    throw configurationError(
      `${address} is no API server of ${name}: ${knownInstead(spec)} To add it, list it in apiServers of its spec and apply that: kbctl cluster apply -f FILE`,
    );
  }
  if (server.kind === 'shared') {
    throw configurationError(
      `${address} stands for several API servers (its spec says shared): a host refreshes the lease of its own address alone.`,
    );
  }
  const longestMs = (endpoints.leaseSeconds * 1000) / LEASE_INTERVALS;
  if (everyMs <= longestMs) return server;
  throw usageError(
    `--every ${everyMs / 1000}s is too seldom for leases of ${endpoints.leaseSeconds} s: at most ${longestMs / 1000}s, or a longer endpoints.leaseSeconds in the spec.`,
  );
}
