import type { AllocatorError } from '../allocator/errors.ts';
import { canonicalAddress, familyOf, type IPFamily } from '../allocator/ip-address.ts';
import { parseCidr } from '../allocator/network.ts';
import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import {
  addressNotAllocated,
  addressOutOfRange,
  type ClaimedAddress,
  duplicateAddress,
  foreignFamily,
  invalidAddress,
  serviceCidrFull,
  unknownAddressError,
} from './cluster-ip-findings.ts';
import { RepairError } from './errors.ts';
import { FindingList } from './finding-list.ts';
import type { ClaimResult, Ledger, Walk } from './ledger.ts';
import type { Abort } from './service-finding.ts';

/**
 * Enters every cluster IP of every Service into the ledger of its family. The family of a ledger is that of its range.
 * @throws RepairError `BadRange` when two ledgers are of one family: each would take the other's addresses for leaks.
 */
export function clusterIpWalk(ledgers: readonly Ledger<string>[]): Walk {
  return new ClusterIpWalk(byFamily(ledgers));
}

class ClusterIpWalk implements Walk {
  readonly #ledgers: ReadonlyMap<IPFamily, Ledger<string>>;
  readonly findings = new FindingList();
  services = 0;

  constructor(ledgers: ReadonlyMap<IPFamily, Ledger<string>>) {
    this.#ledgers = ledgers;
  }

  see(service: ServiceClaim): RepairError | undefined {
    this.services++;
    if (service.clusterIP === '' || service.clusterIP === 'None') return undefined;
    for (const text of service.clusterIPs) {
      const aborted = this.#claim(service, text);
      if (aborted !== undefined) return aborted;
    }
    return undefined;
  }

  /** Most claims are good, and parsing is what costs: what the text looks like is enough to find their ledger. */
  #claim(service: ServiceClaim, text: string): RepairError | undefined {
    const looksLike = text.includes(':') ? 'IPv6' : 'IPv4';
    const result = this.#ledgers.get(looksLike)?.claim(text, service);
    if (result === 'recorded') return undefined;

    const family = familyOf(text);
    const address = canonicalAddress(text);
    if (family === undefined || address === undefined) {
      this.findings.push(invalidAddress(service, text));
      return undefined;
    }
    return this.#tell(
      service,
      address,
      family,
      family === looksLike ? result : this.#ledgers.get(family)?.claim(text, service),
    );
  }

  #tell(
    service: ServiceClaim,
    address: string,
    family: IPFamily,
    result: ClaimResult | undefined,
  ): RepairError | undefined {
    const range = this.#ledgers.get(family)?.spec;
    if (range === undefined || result === undefined) this.findings.push(foreignFamily(service, address, family));
    else if (result === 'notRecorded') this.findings.push(addressNotAllocated(service, { address, family, range }));
    else if (result !== 'recorded') return this.#refused(service, { address, family, range }, result);
    return undefined;
  }

  #refused(service: ServiceClaim, claimed: ClaimedAddress, refusal: AllocatorError): RepairError | undefined {
    if (refusal.code === 'AlreadyAllocated') this.findings.push(duplicateAddress(service, claimed));
    else if (refusal.code === 'NotInRange') this.findings.push(addressOutOfRange(service, claimed));
    else if (refusal.code === 'Full') return this.#abort(serviceCidrFull(service, claimed, refusal));
    else return this.#abort(unknownAddressError(service, claimed, refusal));
    return undefined;
  }

  #abort({ finding, error }: Abort): RepairError {
    this.findings.push(finding);
    return error;
  }
}

function byFamily(ledgers: readonly Ledger<string>[]): ReadonlyMap<IPFamily, Ledger<string>> {
  const families = new Map<IPFamily, Ledger<string>>();
  for (const ledger of ledgers) {
    const family = parseCidr(ledger.spec)?.family;
    if (family === undefined || families.has(family)) {
      const ranges = ledgers.map(({ spec }) => spec).join(' and ');
      throw new RepairError('BadRange', `${ranges} are not ranges of different families: correct the cluster spec`);
    }
    families.set(family, ledger);
  }
  return families;
}
