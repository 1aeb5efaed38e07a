import { type ClusterSpec, LOOPS } from '../cluster/cluster-spec.ts';
import type { ItemFields } from './item-fields.ts';
import type { TableValue } from './key-value-table.ts';
import { fieldsIn } from './values.ts';

/** As it is stored: a spec is plain data. */
export function specValue(spec: ClusterSpec): TableValue {
  return spec as unknown as TableValue;
}

/**
 * The spec in `value`, whose fields are `fields`. It was validated before it was registered; what is looked at here is
 * that all of it is there and of its kind, whoever wrote it.
 * @throws TableError `Corrupt`.
 */
export function specFrom(value: TableValue, fields: ItemFields): ClusterSpec {
  fields.text('name');
  fields.oneOf('mode', ['observe', 'enforce']);
  fields.oneOf('allocator', ['table', 'apiserver']);
  checkKubeconfig(fields.fields('kubeconfig'));
  fields.list('apiServers').forEach(checkApiServer);
  fields.texts('serviceClusterIPRanges', 1);
  fields.text('serviceNodePortRange');
  checkEndpoints(fields.fields('endpoints'));
  checkService(fields.fields('service'));
  fields.texts('systemNamespaces', 0);
  for (const loop of LOOPS) fields.fields('intervalSeconds').count(loop);
  fields.count('maxEventsPerPass');
  if (fieldsIn(value)?.['callerKeys'] !== undefined) fields.texts('callerKeys', 0);
  return value as unknown as ClusterSpec;
}

function checkKubeconfig(kubeconfig: ItemFields): void {
  const stored = kubeconfig.optionalText('secretsManager') ?? kubeconfig.optionalText('ssm');
  if (stored === undefined) kubeconfig.text('file');
  kubeconfig.optionalText('roleArn');
  kubeconfig.optionalText('context');
}

function checkApiServer(server: ItemFields): void {
  if (server.optionalText('host') === undefined) server.text('address');
  server.oneOf('kind', ['server', 'shared']);
  const probe = server.fields('probe');
  probe.optionalText('url');
  probe.text('path');
  probe.optionalText('serverName');
  probe.flag('authenticate');
}

function checkEndpoints(endpoints: ItemFields): void {
  endpoints.oneOf('reconciler', ['lease', 'master-count', 'none']);
  endpoints.count('masterCount');
  endpoints.count('leaseSeconds');
  endpoints.flag('reconcilePorts');
  endpoints.list('extraPorts').forEach(checkPort);
}

function checkService(service: ItemFields): void {
  for (const field of ['port', 'securePort', 'nodePort']) service.count(field);
  service.list('extraPorts').forEach((port) => {
    checkPort(port);
    port.count('targetPort');
    port.optionalNumber('nodePort');
  });
  service.flag('reconcile');
}

function checkPort(port: ItemFields): void {
  port.text('name');
  port.oneOf('protocol', ['TCP', 'UDP', 'SCTP']);
  port.count('port');
}
