import { expect, test } from '@jest/globals';
import { differenceLine, specDifference } from '../../../cli/spec/written-spec.ts';
import type { ClusterSpec } from '../../../lib/spec/cluster-spec.ts';
import { aClusterSpec, aHost, aServer } from '../../support/a-cluster-spec.ts';

const first = aServer('10.9.8.7');
const second = aServer('10.9.8.8');
const host = aHost('api.example.com');
const port = { name: 'konnectivity', protocol: 'TCP', port: 8132 } as const;
const { endpoints } = aClusterSpec();

function lines(before: Partial<ClusterSpec>, after: Partial<ClusterSpec>): string[] {
  return specDifference(aClusterSpec(before), aClusterSpec(after)).map(differenceLine);
}

const ranges: [string, string] = ['10.0.0.0/16', 'fd00:10::/112'];
const [file, ssm] = [{ kubeconfig: { file: 'a' } }, { kubeconfig: { ssm: '/a' } }];
const namespaces = (...systemNamespaces: string[]) => ({ systemNamespaces });
test.each<[string, Partial<ClusterSpec>, Partial<ClusterSpec>, string[]]>([
  ['nothing if they are equal', {}, {}, []],
  ['a value', { mode: 'observe' }, { mode: 'enforce' }, ['mode: observe -> enforce']],
  ['a nested field', {}, { endpoints: { ...endpoints, leaseSeconds: 30 } }, ['endpoints.leaseSeconds: 15 -> 30']],
  ['ranges as in a file', {}, { serviceClusterIPRanges: ranges }, [`serviceClusterIPRange: 10.0.0.0/24 -> ${ranges}`]],
  ['the store of a kubeconfig', file, ssm, ['kubeconfig.ssm: <none> -> /a', 'kubeconfig.file: a -> <none>']],
  ['both whole lists of names', namespaces('a'), namespaces('a', 'b'), ['systemNamespaces: [a] -> [a, b]']],
  [
    'API servers by their addresses, whatever their positions in the list',
    { apiServers: [first, second] },
    { apiServers: [host, aServer('10.9.8.8', { path: '/livez' })] },
    [
      'apiServers[api.example.com]: <none> -> {host: api.example.com, kind: shared, probe: {path: /readyz, authenticate: false}}',
      'apiServers[10.9.8.8].probe.path: /readyz -> /livez',
      'apiServers[10.9.8.7]: {address: 10.9.8.7, kind: server, probe: {path: /readyz, authenticate: false}} -> <none>',
    ],
  ],
  [
    'only the order if the same API servers are in another order',
    { apiServers: [first, second] },
    { apiServers: [second, first] },
    ['apiServers (order): [10.9.8.7, 10.9.8.8] -> [10.9.8.8, 10.9.8.7]'],
  ],
  [
    'an extra port by its name',
    {},
    { endpoints: { ...endpoints, extraPorts: [port] } },
    ['endpoints.extraPorts[konnectivity]: <none> -> {name: konnectivity, protocol: TCP, port: 8132}'],
  ],
])('the difference of two specs shows %s', (_, before, after, expected) => {
  expect(lines(before, after)).toEqual(expected);
});
