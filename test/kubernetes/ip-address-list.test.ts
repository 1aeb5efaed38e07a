import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ADDRESS_MANAGED_BY_LABEL, FAMILY_LABEL, type IPAddressRecord } from '../../lib/cluster/kubernetes-objects.ts';
import type { HttpReply } from '../../lib/kubernetes/http-client.ts';
import { portAnswering, protobuf, reply } from './port-answering.ts';
import { envelope, type Field, message } from './protobuf-writer.ts';

const GROUP_VERSION = 'networking.k8s.io/v1';

async function listed(answer: HttpReply): Promise<IPAddressRecord[]> {
  return (await Array.fromAsync(portAnswering(answer).port.ipAddresses())).flat();
}

function inProtobuf(records: readonly IPAddressRecord[]): HttpReply {
  const items = records.map(({ parent, ...record }): Field => {
    const label = (name: string, value: string): Field => [11, message([1, name], [2, value])];
    const metadata = message(
      [1, record.name],
      [3, ''],
      [5, record.uid],
      [6, record.resourceVersion],
      [8, message([1, record.createdAtMs / 1000], [2, 0])],
      label('app', 'web'),
      label(FAMILY_LABEL, record.family),
      label(ADDRESS_MANAGED_BY_LABEL, record.managedBy),
      [12, message([1, 'note'], [2, 'x'])],
    );
    const parentRef = message([1, parent.group], [2, parent.resource], [3, parent.namespace], [4, parent.name], [9, 7]);
    return [2, message([1, metadata], [2, message([1, parentRef], [9, 'new'])])];
  });
  return protobuf(envelope(GROUP_VERSION, 'IPAddressList', message([1, message([2, '9'])], ...items)));
}

function inJson(records: readonly IPAddressRecord[]): HttpReply {
  const items = records.map(({ name, uid, resourceVersion, createdAtMs, family, managedBy, parent }) => {
    const labels = { app: 'web', [FAMILY_LABEL]: family, [ADDRESS_MANAGED_BY_LABEL]: managedBy };
    const creationTimestamp = new Date(createdAtMs).toISOString();
    return { metadata: { name, uid, resourceVersion, creationTimestamp, labels }, spec: { parentRef: parent } };
  });
  const metadata = { resourceVersion: '9' };
  return reply(200, { apiVersion: GROUP_VERSION, kind: 'IPAddressList', metadata, items });
}

const text = fc.string({ maxLength: 40, unit: 'grapheme' });
const likely = (...texts: readonly string[]) => fc.oneof(fc.constantFrom(...texts), text);
const namespace = likely('default', 'kube-system');
const aRecord = fc.record({
  name: fc.string({ minLength: 1, maxLength: 40, unit: 'grapheme' }),
  uid: text,
  resourceVersion: text,
  createdAtMs: fc.nat({ max: 4_294_967_295 }).map((seconds) => seconds * 1000),
  family: likely('IPv4', 'IPv6'),
  managedBy: likely('ipallocator.k8s.io'),
  parent: fc.record({ group: text, resource: likely('services'), namespace, name: text }),
});

test('a list of IPAddresses is read back unchanged from protobuf and from JSON', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(aRecord, { maxLength: 6 }), async (records) => {
      await expect(listed(inProtobuf(records))).resolves.toEqual(records);
      await expect(listed(inJson(records))).resolves.toEqual(records);
    }),
  );
});

test('the absent fields of an IPAddress are empty in protobuf and in JSON', async () => {
  const bare = message([1, message([1, '10.0.0.1'])], [2, message([1, message([4, 's'])])]);
  const list = envelope(GROUP_VERSION, 'IPAddressList', message([1, message([2, '9'])], [2, bare], [2, bare]));
  const expected = { name: '10.0.0.1', uid: '', resourceVersion: '', createdAtMs: 0, family: '', managedBy: '' };
  const record = { ...expected, parent: { group: '', resource: '', namespace: '', name: 's' } };
  await expect(listed(protobuf(list))).resolves.toEqual([record, record]);
  const items = [{ metadata: { name: '10.0.0.1' }, spec: { parentRef: { name: 's' } } }];
  const json = { apiVersion: GROUP_VERSION, kind: 'IPAddressList', metadata: { resourceVersion: '9' }, items };
  await expect(listed(reply(200, json))).resolves.toEqual([record]);
});

test('very long texts of a parentRef are cut, so that one IPAddress does not make a pass fail', async () => {
  const long = 'x'.repeat(2_000);
  const parent = { group: long, resource: long, namespace: long, name: long };
  const record = { uid: 'u', resourceVersion: '1', createdAtMs: 0, family: 'IPv4', managedBy: '', parent };
  const records = ['10.0.0.1', '10.0.0.2'].map((name) => ({ ...record, name }));
  const start = 'x'.repeat(1_024);
  const read = { parent: { group: start, resource: start, namespace: start, name: start } };
  await expect(listed(inProtobuf(records))).resolves.toMatchObject([read, read]);
  await expect(listed(inJson(records))).resolves.toMatchObject([read, read]);
});
