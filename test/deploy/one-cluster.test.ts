import { afterAll, describe, expect, test } from '@jest/globals';
import type { DoctorAnswer } from '../../lib/doctor/doctor.ts';
import { LOOPS } from '../../lib/spec/cluster-spec.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { claimCluster, readCluster } from '../../lib/table/clusters.ts';
import { readLeases } from '../../lib/table/leases.ts';
import { readRunRecord } from '../../lib/table/run-records.ts';
import { specIn } from '../support/a-cluster-spec.ts';
import { texts } from '../support/emulator-aws.ts';
import { storedService } from '../support/etcd-client.ts';
import { kubeconfigTo } from '../support/kubeconfig-to.ts';
import { versionsOf } from '../support/kubernetes-service-objects.ts';
import { serviceAccount } from '../support/shipped-rbac.ts';
import type { AwsCall } from './emulator-calls.ts';
import { readLines, sumOf } from './emulator-logs.ts';
import { CLUSTER, deployedCluster, FIRST, registerWith, SECOND, SECRET } from './two-api-servers.ts';
import { messages, STACK, textsIn } from './world.ts';

const TICK_MS = 10_000;
const [OF_GROUP, OF_SERVICE] = ['10.9.8.5', '10.9.8.6'] as const;
const MANAGEMENT_SECRET = 'kube-bootstrap-controller/dev/management';
const force = { clusters: [CLUSTER], force: true };

/* The tests run in order in one deployed stack: each starts with the state that the previous test left. */
const our = deployedCluster();

test('the first scheduled event publishes the API servers of a registered cluster', async () => {
  const { answer, logs, metrics } = await our.deployed.fire('kubernetes-service');

  expect(answer).toMatchObject({ passes: 1, failed: 0 });
  expect(textsIn(logs, 'errors')).toEqual([]);
  await our.controlPlane.expectPublished(FIRST, SECOND);
  expect(await readCluster(our.world.table(), CLUSTER)).toMatchObject({ generation: 1, owner: { stack: STACK } });
  expect(sumOf(metrics, 'clustersRegistered')).toBe(1);
  expect(sumOf(metrics, 'clustersOverdue')).toBe(0);
  expect(sumOf(metrics, 'activeLeases')).toBe(2);
});

const withIp = (clusterIP: string) => ({ clusterIP, clusterIPs: [clusterIP] });

test('system-namespaces creates the missing namespace, and the repair loops report wrong claims of Services', async () => {
  const nodePorts = [{ port: 80, nodePort: 20_000 }];
  await our.controlPlane.etcd.putServices([
    storedService('default', 'stray-ip', { ...withIp('192.168.77.7'), ports: [{ port: 80 }] }),
    storedService('default', 'stray-port', { ...withIp('None'), type: 'NodePort', ports: nodePorts }),
  ]);

  const namespaces = await our.deployed.fire('system-namespaces');
  const addresses = await our.deployed.fire('cluster-ip-repair');
  const ports = await our.deployed.fire('node-port-repair');

  expect(textsIn(namespaces.logs, 'changes')).toEqual(['created namespace platform']);
  expect(textsIn(addresses.logs, 'findings')).toEqual([expect.stringMatching(/^outOfRange: .*192\.168\.77\.7/)]);
  expect(textsIn(ports.logs, 'findings')).toEqual([expect.stringMatching(/^outOfRange: .*20000/)]);
  for (const { answer, metrics } of [namespaces, addresses, ports]) {
    expect(answer).toMatchObject({ passes: 1, failed: 0 });
    expect(sumOf(metrics, 'passes')).toBe(1);
    expect(sumOf(metrics, 'failures')).toBe(0);
  }
  const outOfRange = { type: 'outOfRange' };
  expect(sumOf(addresses.metrics, 'apiserver_clusterip_repair_ip_errors_total', outOfRange)).toBe(1);
  expect(sumOf(ports.metrics, 'apiserver_nodeport_repair_port_errors_total', outOfRange)).toBe(1);
  const { status } = await our.controlPlane.first.request('GET', '/api/v1/namespaces/platform');
  expect(status).toBe(200);
  const { body } = await our.controlPlane.first.request<{
    items: { reportingController: string; reportingInstance: string }[];
  }>('GET', '/apis/events.k8s.io/v1/namespaces/default/events');
  const ours = body.items.filter(({ reportingInstance }) => reportingInstance === STACK);
  expect(ours.map(({ reportingController }) => reportingController).sort()).toEqual([
    'kube-bootstrap-controller/cluster-ip-repair',
    'kube-bootstrap-controller/node-port-repair',
  ]);
  for (const loop of LOOPS) {
    expect((await readRunRecord(our.world.table(), CLUSTER, loop))?.record).toMatchObject({ outcome: 'succeeded' });
  }
});

test('after one scheduled event, ticks probe an API server every ten seconds', async () => {
  const queue = await our.deployed.queueOf('kubernetes-service');
  // Removes the messages of the previous tests.
  await queue.purge();
  await our.controlPlane.second.kill();
  await our.deployed.fire('kubernetes-service');
  expect(await queue.waiting()).toBe(5);
  const deliveries = [await queue.deliver(), await queue.deliver()];

  await our.controlPlane.expectPublished(FIRST);
  expect(deliveries.map(({ error }) => error)).toEqual([undefined, undefined]);
  const [firstMs, secondMs] = deliveries.map(({ body }) => JSON.parse(body).dueAtMs);
  expect(secondMs - firstMs).toBe(TICK_MS);
  const { logs, metrics } = readLines(deliveries.flatMap(({ lines }) => lines));
  expect(textsIn(logs, 'changes')).toContainEqual(expect.stringContaining(`removed ${SECOND}`));
  expect(sumOf(metrics, 'failures')).toBe(0);
  await our.controlPlane.second.restart();
  await our.deployed.run('kubernetes-service', force);
  await our.controlPlane.expectPublished(FIRST, SECOND);
});

test('deregister removes an API server, and the next tick does not add it again', async () => {
  const { answer, logs } = await our.deployed.run('deregister', { cluster: CLUSTER, address: SECOND, untilMinutes: 5 });

  expect(answer).toMatchObject({ outcome: 'deregistered', stillPublished: false });
  expect(messages(logs)).toContain('deregister: deregistered');
  await our.controlPlane.expectPublished(FIRST);
  const tick = await our.deployed.run('kubernetes-service', force);
  expect(tick.answer).toMatchObject({ passes: 1, failed: 0 });
  await our.controlPlane.expectPublished(FIRST);
});

test('if a withdrawn server goes down and comes back, it is published again before the withdrawal ends', async () => {
  await our.controlPlane.second.kill();
  await our.deployed.run('kubernetes-service', force);
  await our.controlPlane.second.restart();
  await our.deployed.run('kubernetes-service', force);

  await our.controlPlane.expectPublished(FIRST, SECOND);
});

test('with the shipped permissions, no check of the doctor fails', async () => {
  const { answer } = await our.deployed.run('doctor', {});

  const { ok, lines } = answer as DoctorAnswer;
  expect(lines.filter(({ level }) => level === 'fail')).toEqual([]);
  expect(ok).toBe(true);
  const checks = new Set(lines.map(({ check }) => check));
  expect([...checks]).toEqual(
    expect.arrayContaining(['table', 'queue', 'kubeconfig', 'api server', 'probe', 'rights']),
  );
});

describe('failures of AWS', () => {
  afterAll(() => our.world?.emulator.recorder.decide(() => 'answered'));

  async function expectNextTickFine(): Promise<void> {
    our.world.emulator.recorder.decide(() => 'answered');
    const { answer } = await our.deployed.run('kubernetes-service', force);
    expect(answer).toMatchObject({ passes: 1, failed: 0 });
    await our.controlPlane.expectPublished(FIRST, SECOND);
  }

  test('an invocation that is killed while it writes its leases changes nothing, and the next tick succeeds', async () => {
    const before = await versionsOf(our.controlPlane.first);
    our.world.emulator.recorder.decide(({ action }) => (action === 'dynamodb:PutItem' ? 'unanswered' : 'answered'));

    const killed = await our.deployed.function('kubernetes-service').invoke(force, { killedAfterMs: 1_500 });

    expect(killed.error).toMatchObject({ errorType: 'Sandbox.Timedout' });
    expect(await versionsOf(our.controlPlane.first)).toEqual(before);
    await expectNextTickFine();
    expect((await readLeases(our.world.table(), CLUSTER)).leases).toHaveLength(2);
  });

  test.each<[string, () => unknown]>([
    ['does not exist', () => our.world.emulator.aws.json('secretsmanager', 'secretsmanager.DeleteSecret', deletion)],
    ['cannot be read in time', () => our.world.emulator.recorder.decide(unansweredSecrets)],
  ])('if the kubeconfig secret %s, the error contains its name, and the next tick succeeds', async (_, spoil) => {
    const cold = () => our.deployed.function('kubernetes-service').stop();
    await spoil();
    await cold();

    const { answer, logs } = await our.deployed.run('kubernetes-service', force);

    expect(answer).toMatchObject({ passes: 1, failed: 1 });
    expect(textsIn(logs, 'errors')).toEqual([expect.stringContaining(SECRET)]);
    await our.world.putSecret(SECRET, our.controlPlane.kubeconfigYaml);
    await expectNextTickFine();
  });
});

test('the addresses of a target group and of a Service in a management cluster stay published after the target group and the Service are deleted', async () => {
  const aws = (fields: Readonly<Record<string, string>>) =>
    our.world.emulator.aws.form('elasticloadbalancing', { Version: '2015-12-01', ...fields });
  const networks = await our.world.emulator.aws.form('ec2', { Action: 'DescribeVpcs', Version: '2016-11-15' });
  const [VpcId = ''] = texts(networks, 'vpcId');
  const group = { Name: 'prod', Protocol: 'TCP', Port: '6443', TargetType: 'ip', VpcId };
  const targetGroupArn = texts(await aws({ Action: 'CreateTargetGroup', ...group }), 'TargetGroupArn')[0] ?? '';
  await aws({ Action: 'RegisterTargets', TargetGroupArn: targetGroupArn, 'Targets.member.1.Id': OF_GROUP });
  await exposeByService(OF_SERVICE);
  const management = await serviceAccount(our.controlPlane.first, 'management');
  await management.grant([
    { apiGroups: [''], resources: ['services'], verbs: ['get'] },
    { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list'] },
  ]);
  await our.world.putSecret(MANAGEMENT_SECRET, management.kubeconfigYaml);
  const serviceRef = { namespace: 'default', name: 'tenant', kubeconfig: { secretsManager: MANAGEMENT_SECRET } };
  const probe = { url: `${our.controlPlane.first.url}/readyz` };

  await registerWith(our, [
    { targetGroupArn, probe },
    { serviceRef, probe },
  ]);
  await our.deployed.run('kubernetes-service', force);
  await our.controlPlane.expectPublished(OF_GROUP, OF_SERVICE, FIRST, SECOND);

  await aws({ Action: 'DeleteTargetGroup', TargetGroupArn: targetGroupArn });
  await our.controlPlane.first.request('DELETE', '/api/v1/namespaces/default/services/tenant');
  const { logs } = await our.deployed.run('kubernetes-service', force);
  expect(textsIn(logs, 'findings')).toEqual([
    expect.stringContaining('there is no such target group'),
    expect.stringContaining('Service default/tenant of the management cluster does not exist'),
  ]);
  await our.controlPlane.expectPublished(OF_GROUP, OF_SERVICE, FIRST, SECOND);
});

async function exposeByService(address: string): Promise<void> {
  const service = { metadata: { name: 'tenant' }, spec: { clusterIP: 'None', ports: [{ port: 6443 }] } };
  const labels = { 'kubernetes.io/service-name': 'tenant' };
  const endpoints = [{ addresses: [address], conditions: { ready: true } }];
  const slice = { metadata: { name: 'tenant-1', labels }, addressType: 'IPv4', endpoints, ports: [{ port: 6443 }] };
  const created = [
    await our.controlPlane.first.request('POST', '/api/v1/namespaces/default/services', service),
    await our.controlPlane.first.request('POST', '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices', slice),
  ];
  expect(created.map(({ status }) => status)).toEqual([201, 201]);
}

test.each([
  { name: 'loopback', host: '127.0.0.1' },
  { name: 'metadata', host: 'metadata.example.com' },
])('a function does not connect to $host, or to an address to which $host resolves', async ({ name, host }) => {
  const secretsManager = `kube-bootstrap-controller/dev/${name}`;
  await our.world.putSecret(
    secretsManager,
    kubeconfigTo(`https://${host}:${our.controlPlane.first.port}`, { ca: our.controlPlane.first.ca }),
  );
  const spec = { name, mode: 'enforce', kubeconfig: { secretsManager }, apiServers: [{ address: OF_GROUP }] };
  await registerCluster(our.world.table(), specIn(JSON.stringify(spec)));
  await claimCluster(our.world.table(), name, STACK);

  const { answer, logs } = await our.deployed.run('system-namespaces', { clusters: [name], force: true });

  expect(answer).toMatchObject({ passes: 1, failed: 1 });
  expect(textsIn(logs, 'errors')).toEqual([expect.stringContaining('to which functions do not connect')]);
});

/* A promise that rejects after an answer would write other lines, and the process would lose its next event. */
test('no output line of a function contains a credential, and each line is a log line or a metric', async () => {
  for (const loop of LOOPS) await our.deployed.run(loop, force);
  const lines = our.world.lines();
  const { logs, metrics } = readLines(lines);

  expect(logs.length).toBeGreaterThan(20);
  expect(new Set(metrics.map(({ namespace }) => namespace))).toEqual(new Set(['kube-bootstrap-controller']));
  const { token } = our.controlPlane;
  for (const credential of [token, our.controlPlane.first.token, Buffer.from(token).toString('base64')]) {
    expect(lines.filter((line) => line.includes(credential))).toEqual([]);
  }
});

test('the role of each function grants every call that the function makes', () => {
  expect(our.world.emulator.recorder.calls.map(({ action }) => action)).toEqual(
    expect.arrayContaining(['dynamodb:PutItem', 'sqs:SendMessage', 'secretsmanager:GetSecretValue']),
  );
  expect(our.world.callsNotGranted()).toEqual([]);
});

const unansweredSecrets = ({ action }: AwsCall) => (action.startsWith('secretsmanager:') ? 'unanswered' : 'answered');
const deletion = { SecretId: SECRET, ForceDeleteWithoutRecovery: true };
