import { randomUUID } from 'node:crypto';
import { kubeconfigSources } from '../../lib/aws/read-kubeconfig.ts';
import { kubeconfigLoader } from '../../lib/aws/stored-kubeconfig.ts';
import { deregistration } from '../../lib/deregister/deregistration.ts';
import { startDeadline } from '../../lib/runtime/deadline.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import { LOOPS, type Loop } from '../../lib/spec/cluster-spec.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { dynamoDbTable } from '../../lib/table/dynamodb/dynamodb-table.ts';
import { readRunRecord } from '../../lib/table/run-records.ts';
import type { FieldValue } from '../../lib/telemetry/telemetry.ts';
import { LOOP_HANDLERS } from '../../local/clock-driven-runner.ts';
import { LOCAL_TABLE, localEnvironment } from '../../local/local-environment.ts';
import { tableServerClient } from '../../local/table-client.ts';
import { startTableServer } from '../../local/table-server.ts';
import { specIn } from './a-cluster-spec.ts';
import { recordingTelemetry } from './recording-telemetry.ts';

export const CLUSTER = 'demo';

/** Deadlines and pauses are longer than deployed ones by this factor, so that a slow machine causes no failure. */
const PATIENCE = 10;

export interface HandlersOptions {
  /** The kubeconfig file, whose content may change between passes. Default: `kubeconfig` of the spec. */
  readonly kubeconfigFile?: string;
  /** Fields of the spec besides its name and kubeconfig file. Default mode: enforce. */
  readonly spec: object;
  /** Returns the endpoint through which the handlers reach the table. */
  readonly tableThrough?: (endpoint: string) => Promise<string>;
  /** The clock. Default: that of this machine. */
  readonly clock?: () => number;
}

export type Invoked = Awaited<ReturnType<typeof invoke>>;

export type Handlers = Awaited<ReturnType<typeof startHandlers>>;

/** Starts the handlers of the loops over a DynamoDB table in this process and registers one cluster. Invokes no handler. */
export async function startHandlers(options: HandlersOptions) {
  const { kubeconfigFile, clock = Date.now, tableThrough } = options;
  let fields = options.spec;
  let aheadMs = 0;
  const nowMs = () => clock() + aheadMs;
  const tableServer = await startTableServer({ key: 'test' });
  const direct = tableServer.client;
  const endpoint = await tableThrough?.(tableServer.endpoint);
  const client = endpoint === undefined ? direct : tableServerClient(endpoint, tableServer.key);
  const tableOf = (by: typeof client) => (deadline: AbortSignal) =>
    dynamoDbTable({ client: by, tableName: LOCAL_TABLE, deadline, nowMs, newWriteId: randomUUID });
  const openTable = tableOf(client);
  const table = tableOf(direct)(new AbortController().signal);
  const loadKubeconfig = kubeconfigLoader('.', kubeconfigSources());
  const local = localEnvironment({ client, loadKubeconfig, telemetry: recordingTelemetry });
  const environment: Environment = {
    ...local.environment,
    nowMs,
    startDeadline: (ms) => startDeadline(ms * PATIENCE),
    table: openTable,
    reportingInstance: 'test',
  };
  const close = async () => {
    await local.close();
    client.destroy();
    await tableServer.close();
  };
  const register = async (changed: object) => {
    fields = { ...fields, ...changed };
    const spec = { name: CLUSTER, mode: 'enforce', kubeconfig: { file: kubeconfigFile }, ...fields };
    await registerCluster(table, specIn(JSON.stringify(spec)));
  };
  try {
    await register({});
  } catch (error) {
    await close();
    throw error;
  }
  return {
    /** Invokes a loop once, even if it is not due. */
    run: (loop: Loop) => invoke(environment, loop, { force: true }),
    tick: (loop: Loop) => {
      const time = new Date(nowMs()).toISOString().replace(/\.\d+/, '');
      return invoke(environment, loop, { 'detail-type': 'Scheduled Event', time });
    },
    /** Withdraws an address of the cluster, as the shutdown hook of an API server does. */
    deregister: (address: string) =>
      deregistration()({ cluster: CLUSTER, address }, { environment, getRemainingTimeInMillis: () => 60_000 }),
    register,
    record: async (loop: Loop) => (await readRunRecord(table, CLUSTER, loop))?.record,
    advance: (ms: number) => {
      aheadMs += ms;
    },
    table,
    close,
  };
}

export async function runAllLoops(handlers: Handlers): Promise<Invoked[]> {
  const invoked: Invoked[] = [];
  for (const loop of LOOPS) invoked.push(await handlers.run(loop));
  return invoked;
}

async function invoke(environment: Environment, loop: Loop, event: object) {
  const telemetry = recordingTelemetry();
  const context = {
    environment: { ...environment, telemetry: () => telemetry },
    getRemainingTimeInMillis: () => 60_000,
  };
  const summary = await LOOP_HANDLERS[loop](event, context);
  const fields = telemetry.lines.find(({ message }) => message.startsWith('pass '))?.fields ?? {};
  return {
    summary,
    changes: sentences(fields['changes']),
    /** The findings as text, such as `twoOwners: the endpoints of ...`. */
    findings: sentences(fields['findings']),
    /** The errors as text, such as `Forbidden: unable to ...`. */
    errors: sentences(fields['errors']),
    wouldWrite: sentences(fields['wouldWrite']),
    /** The counters above 0, by `name{type=value}`. */
    counters: Object.fromEntries(Object.entries(telemetry.counters).filter(([, count]) => count > 0)),
  };
}

function sentences(value: FieldValue): readonly string[] {
  return Array.isArray(value) ? value : [];
}
