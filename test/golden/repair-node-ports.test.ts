import { describe, expect } from '@jest/globals';
import { portRangeOf } from '../../lib/allocator/port-range.ts';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
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
import { goldenTests } from '../support/golden.ts';
import { pickLowest, portRange } from '../support/ranges.ts';

interface Scenario {
  readonly portRange: string;
  readonly snapshot?: GoldenSnapshot | null;
  readonly runs: readonly GoldenRun[];
}

async function clusterOf({ portRange: text, snapshot }: Scenario): Promise<RepairCluster> {
  const cluster = new RepairCluster({ serviceNodePortRange: text });
  const ports = portRange(text);
  const range = { spec: ports.spec, indexOf: (port: string) => ports.indexOf(Number(port)) };
  if (snapshot) await cluster.store(RANGE_KEYS.nodePorts, snapshotOf(snapshot, range));
  return cluster;
}

describe('node port repair answers as the original', () => {
  goldenTests<Scenario, readonly ExpectedRun[]>(
    'repair-node-ports.jsonl',
    '$scenario.name',
    async ({ scenario, expected }) => {
      const repair = {
        loop: nodePortRepair,
        cluster: await clusterOf(scenario),
        keys: { nodePorts: RANGE_KEYS.nodePorts },
        makeRange: (text: string) => portRangeOf(text, pickLowest),
      };
      expect(await answersTo(repair, scenario.runs)).toEqual(expectedAnswers(expected));
    },
  );
});
