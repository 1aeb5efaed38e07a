import type { AllocatorError } from '../allocator/errors.ts';
import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';
import { RepairError } from './errors.ts';
import { FindingList } from './finding-list.ts';
import type { Ledger, Walk } from './ledger.ts';
import {
  duplicatePort,
  portNotAllocated,
  portOutOfRange,
  portRangeFull,
  unknownPortError,
} from './node-port-findings.ts';
import { nodePortsOf } from './node-ports-of.ts';
import type { Abort } from './service-finding.ts';

/**
 * Enters every node port of every Service, whatever its type, into the ledger.
 * @throws RepairError `BadRange` when there is not exactly one
 */
export function nodePortWalk([ledger, ...others]: readonly Ledger<number>[]): Walk {
  if (ledger !== undefined && others.length === 0) return new NodePortWalk(ledger);
  throw new RepairError('BadRange', 'node ports have one range: correct the cluster spec');
}

class NodePortWalk implements Walk {
  readonly #ledger: Ledger<number>;
  readonly findings = new FindingList();
  services = 0;

  constructor(ledger: Ledger<number>) {
    this.#ledger = ledger;
  }

  see(service: ServiceClaim): RepairError | undefined {
    this.services++;
    for (const port of nodePortsOf(service)) {
      const result = this.#ledger.claim(port, service);
      if (result === 'recorded') continue;
      if (result === 'notRecorded') this.findings.push(portNotAllocated(service, port));
      else {
        const aborted = this.#refused(service, port, result);
        if (aborted !== undefined) return aborted;
      }
    }
    return undefined;
  }

  #refused(service: ServiceClaim, port: number, refusal: AllocatorError): RepairError | undefined {
    const range = this.#ledger.spec;
    if (refusal.code === 'AlreadyAllocated') this.findings.push(duplicatePort(service, port));
    else if (refusal.code === 'NotInRange') this.findings.push(portOutOfRange(service, port, range));
    else if (refusal.code === 'Full') return this.#abort(portRangeFull(service, port, range, refusal));
    else return this.#abort(unknownPortError(service, port, refusal));
    return undefined;
  }

  #abort({ finding, error }: Abort): RepairError {
    this.findings.push(finding);
    return error;
  }
}
