import { describe, expect } from '@jest/globals';
import { ipRangeOf } from '../../lib/allocator/ip-range.ts';
import { portRangeOf } from '../../lib/allocator/port-range.ts';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import { nodePortRepair } from '../../lib/loops/node-port-repair.ts';
import {
  answersTo,
  type ExpectedRun,
  expectedAnswers,
  type GoldenRun,
  type GoldenSnapshot,
  snapshotOf,
} from '../repair/golden-runs.ts';
import { RepairCluster } from '../repair/repair-cluster.ts';
import { ipRange, pickLowest, portRange } from '../support/ranges.ts';
import { goldenTests } from './golden.ts';

interface Family {
  readonly cidr: string;
  readonly snapshot?: GoldenSnapshot | null;
}

interface Scenario {
  readonly primary: Family;
  readonly secondary?: Family | null;
  readonly runs: readonly GoldenRun[];
}

const { primary: PRIMARY, secondary: SECONDARY } = RANGE_KEYS;

async function clusterOf({ primary, secondary }: Scenario): Promise<RepairCluster> {
  const cluster = new RepairCluster({
    serviceClusterIPRanges: secondary ? [primary.cidr, secondary.cidr] : [primary.cidr],
  });
  if (primary.snapshot) await cluster.store(PRIMARY, snapshotOf(primary.snapshot, ipRange(primary.cidr)));
  if (secondary?.snapshot) await cluster.store(SECONDARY, snapshotOf(secondary.snapshot, ipRange(secondary.cidr)));
  return cluster;
}

describe('cluster IP repair answers as the original', () => {
  goldenTests<Scenario, readonly ExpectedRun[]>(
    'repair-cluster-ips.jsonl',
    '$scenario.name',
    async ({ scenario, expected }) => {
      const repair = {
        loop: clusterIpRepair,
        cluster: await clusterOf(scenario),
        keys: { primary: PRIMARY, secondary: SECONDARY },
        makeRange: (text: string) => ipRangeOf(text, pickLowest),
      };
      expect(await answersTo(repair, scenario.runs)).toEqual(expectedAnswers(expected));
    },
  );
});

interface PortScenario {
  readonly portRange: string;
  readonly snapshot?: GoldenSnapshot | null;
  readonly runs: readonly GoldenRun[];
}

async function clusterOfPorts({ portRange: text, snapshot }: PortScenario): Promise<RepairCluster> {
  const cluster = new RepairCluster({ serviceNodePortRange: text });
  const ports = portRange(text);
  const range = { spec: ports.spec, indexOf: (port: string) => ports.indexOf(Number(port)) };
  if (snapshot) await cluster.store(RANGE_KEYS.nodePorts, snapshotOf(snapshot, range));
  return cluster;
}

describe('node port repair answers as the original', () => {
  goldenTests<PortScenario, readonly ExpectedRun[]>(
    'repair-node-ports.jsonl',
    '$scenario.name',
    async ({ scenario, expected }) => {
      const repair = {
        loop: nodePortRepair,
        cluster: await clusterOfPorts(scenario),
        keys: { nodePorts: RANGE_KEYS.nodePorts },
        makeRange: (text: string) => portRangeOf(text, pickLowest),
      };
      expect(await answersTo(repair, scenario.runs)).toEqual(expectedAnswers(expected));
    },
  );
});
