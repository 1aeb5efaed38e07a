import { describe, expect, test } from '@jest/globals';
import type { KubernetesObject } from '../../lib/cluster/kubernetes-objects.ts';
import type { ServiceCidrObject } from '../../lib/cluster/published-objects.ts';
import { ClusterError, type ClusterErrorCode } from '../../lib/kubernetes/cluster-port.ts';
import { clusterIpRepair } from '../../lib/loops/cluster-ip-repair.ts';
import type { ClusterSpec } from '../../lib/spec/cluster-spec.ts';
import type { MemoryCluster, WriteAnswer } from '../support/memory-cluster.ts';
import { PassWorld } from '../support/pass-world.ts';
import { stockCidr, stockService } from '../support/stock-objects.ts';

const CIDR = { kind: 'ServiceCIDR', name: 'kubernetes' } as const;
const [V4, V4B, V6] = ['10.0.0.0/24', '10.1.0.0/24', 'fd00::/112'] as const;
const FINALIZER = 'networking.k8s.io/service-cidr-finalizer';
const BOTH: Partial<ClusterSpec> = { serviceClusterIPRanges: [V4, V6] };
const [CREATED, UPDATED] = [['create servicecidrs'], ['update servicecidrs']];

function cidrOf(cidrs: readonly string[], fields: object = {}, status?: object): KubernetesObject {
  const metadata = { name: 'kubernetes', finalizers: [FINALIZER], ...fields };
  return { ...stockCidr(...cidrs), metadata, ...{ status } };
}

function kubernetesAt(clusterIP: string): KubernetesObject {
  return { ...stockService('', clusterIP), metadata: { namespace: 'default', name: 'kubernetes' } };
}

const DELETED = cidrOf([V4], { deletionTimestamp: '2026-01-01T00:00:00Z' });
const NOT_READY = cidrOf([V4], {}, { conditions: [{ type: 'Ready', status: 'False' }] });
const OFF = { repair: { ipAddresses: false } };
const OTHER = { ...cidrOf([V4]), metadata: { name: 'other' } };

async function passOver(
  objects: readonly KubernetesObject[],
  spec: Partial<ClusterSpec> = {},
  change: (cluster: MemoryCluster) => void = () => {},
) {
  const world = new PassWorld({ repair: { ipAddresses: true }, ...spec }, objects);
  const { cluster } = world;
  change(cluster);
  const report = await world.pass(clusterIpRepair);
  const writes = cluster.writes.filter((write) => write.endsWith('servicecidrs'));
  const cidrs = cluster.find<ServiceCidrObject>(CIDR)?.spec.cidrs;
  return { report, cluster, writes, cidrs };
}

/** Makes each write of a ServiceCIDR have this outcome. */
const answering = (answer: WriteAnswer | ClusterErrorCode) => (cluster: MemoryCluster) => {
  cluster.beforeWrite = (_verb, { kind }) => {
    if (kind !== 'ServiceCIDR') return undefined;
    if (typeof answer === 'string') throw new ClusterError(answer, 'not by this role');
    return answer;
  };
};

describe('the ServiceCIDR kubernetes', () => {
  test.each<[string, KubernetesObject[], Partial<ClusterSpec>, string[], readonly string[] | undefined]>([
    ['creates the ServiceCIDR kubernetes with both ranges', [kubernetesAt('10.0.0.1')], BOTH, CREATED, [V4, V6]],
    ['creates the ServiceCIDR kubernetes even if another ServiceCIDR exists', [OTHER], {}, CREATED, [V4]],
    ['adds the second range of the spec to the ServiceCIDR', [cidrOf([V4])], BOTH, UPDATED, [V4, V6]],
    ['does not change the ServiceCIDR if its first range is not that of the spec', [cidrOf([V4B])], BOTH, [], [V4B]],
    ['does not change the ServiceCIDR if its only range is the second of the spec', [cidrOf([V6])], BOTH, [], [V6]],
    ['does not remove a second range that the spec does not contain', [cidrOf([V4, V6])], {}, [], [V4, V6]],
    ['does not change the ServiceCIDR while it is being deleted', [DELETED], BOTH, [], [V4]],
    ['does not change the ServiceCIDR while it is not ready', [NOT_READY], BOTH, [], [V4]],
    ['does not create the ServiceCIDR without repair.ipAddresses', [], OFF, [], undefined],
    ['does not create the ServiceCIDR with allocator: table', [], { ...OFF, allocator: 'table' }, [], undefined],
  ])('a pass %s', async (_, objects, spec, writes, after) => {
    const { report, ...made } = await passOver(objects, spec);
    expect(report.errors).toEqual([]);
    expect(report.findings.filter(({ type }) => type === 'notCorrected')).toEqual([]);
    expect([made.writes, made.cidrs]).toEqual([writes, after]);
  });

  test('a pass that adds the second range keeps the labels and finalizers of the ServiceCIDR, and uses both ranges', async () => {
    const { report, cluster } = await passOver([cidrOf([V4], { labels: { a: 'b' } })], BOTH);
    expect(cluster.find(CIDR)).toMatchObject({ metadata: { labels: { a: 'b' }, finalizers: [FINALIZER] } });
    expect(report.changes).toContain(`updated servicecidr kubernetes: ${V4} ${V6}`);
    expect(report.state).toMatchObject({ networks: [{ cidr: V4 }, { cidr: V6 }] });
  });

  test('a pass that creates the ServiceCIDR also creates the IPAddresses of Services in the range of the ServiceCIDR', async () => {
    const { report } = await passOver([kubernetesAt('10.0.0.1')]);
    expect(report.changes.filter((change) => /servicecidr|IPAddress/.test(change))).toEqual([
      `created servicecidr kubernetes: ${V4}`,
      'created IPAddress 10.0.0.1 for Service default/kubernetes',
    ]);
  });

  test('a pass does not create the ServiceCIDR if the Service kubernetes is headless, because the API servers might have other ranges than the spec', async () => {
    const { report, writes } = await passOver([kubernetesAt('None')]);
    expect(writes).toEqual([]);
    const message = expect.stringMatching(/^ServiceCIDR kubernetes is not corrected \(create\): .* not 10\.0\.0\.1\. /);
    expect(report.findings).toContainEqual({ type: 'notCorrected', message, item: 'servicecidrs' });
    expect(report.errors).toEqual([]);
  });

  test('a pass changes and reports nothing if the API server does not serve ServiceCIDRs', async () => {
    const { report } = await passOver([], {}, answering('Rejected'));
    expect(report).toMatchObject({ errors: [], findings: [] });
    expect(report.changes.filter((change) => change.includes('servicecidr'))).toEqual([]);
  });

  test.each([
    ['a webhook does not answer', [cidrOf([V4])], BOTH, 'Unavailable', 'update'],
    ['a policy refuses the second range', [cidrOf([V4])], BOTH, { outcome: 'invalid', message: 'no' }, 'update'],
  ] as const)('a pass reports a finding and continues if %s', async (_, objects, spec, answer, verb) => {
    const { report } = await passOver(objects, spec, answering(answer));
    const message = expect.stringContaining(`ServiceCIDR kubernetes is not corrected (${verb}): n`);
    expect(report).toMatchObject({ errors: [], findings: [{ type: 'notCorrected', message, item: 'servicecidrs' }] });
    expect(report.counts).toHaveProperty('services');
  });

  test('a pass does not add the second range if another writer has changed the ServiceCIDR since the pass listed it', async () => {
    const { writes, cidrs } = await passOver([cidrOf([V4])], BOTH, (cluster) => {
      const { get } = cluster.port;
      const changedFirst: typeof get = (ref) => {
        cluster.place(cidrOf([V4, 'fd01::/112']));
        return get(ref);
      };
      Object.assign(cluster.port, { get: changedFirst });
    });
    expect([writes, cidrs]).toEqual([[], [V4, 'fd01::/112']]);
  });
});
