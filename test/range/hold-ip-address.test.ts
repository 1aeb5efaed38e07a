import { expect, test } from '@jest/globals';
import { holdIn, ipAddressOfHold } from '../../lib/range/hold-ip-address.ts';

const terms = { owner: 'shop', takenUpBy: 'any', untilMs: 1_800_000_000_123, requestId: 'r-1' } as const;

test('an IPAddress stores the owner, the end and the request id of a hold, and which Services are allowed to claim it', () => {
  expect(holdIn(ipAddressOfHold('10.0.0.5', terms))).toEqual({ ...terms, items: ['10.0.0.5'] });
  expect(holdIn(ipAddressOfHold('fd00::5', { owner: 'a', takenUpBy: 'any' }))).toEqual({
    owner: 'a',
    takenUpBy: 'any',
    items: ['fd00::5'],
  });
});

test('the IPAddress of a held address references no Service, and its labels contain the family, the manager, the owner and the request id', () => {
  expect(ipAddressOfHold('10.0.0.5', terms)).toMatchObject({
    metadata: {
      labels: {
        'ipaddress.kubernetes.io/ip-family': 'IPv4',
        'ipaddress.kubernetes.io/managed-by': 'kube-bootstrap-controller',
        'kube-bootstrap-controller/hold-owner': 'shop',
        'kube-bootstrap-controller/hold-request': 'r-1',
      },
      annotations: { 'kube-bootstrap-controller/hold-until': '2027-01-15T08:00:00.123Z' },
    },
    spec: { parentRef: { group: 'kube-bootstrap-controller', resource: 'holds', name: 'shop' } },
  });
});

test('a hold with an invalid end never ends, and an IPAddress of another manager is no hold', () => {
  const { metadata, ...object } = ipAddressOfHold('10.0.0.5', terms);
  const annotations = { 'kube-bootstrap-controller/hold-until': 'soon' };
  expect(holdIn({ ...object, metadata: { ...metadata, annotations } })).not.toHaveProperty('untilMs');
  const labels = { ...metadata.labels, 'ipaddress.kubernetes.io/managed-by': 'ipallocator.k8s.io' };
  expect(holdIn({ ...object, metadata: { ...metadata, labels } })).toBeUndefined();
  expect(holdIn({ metadata: { name: '10.0.0.5' } })).toBeUndefined();
});
