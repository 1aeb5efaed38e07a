import { type AdmissionOptions, type AdmissionSettings, admission } from '../../lib/admission/admission.ts';
import type { WebhookReply } from '../../lib/admission/request.ts';
import type { PatchOperation, RefusalStatus } from '../../lib/admission/response.ts';
import { type AllocationHandler, allocation } from '../../lib/allocate/allocation.ts';
import type { Answer } from '../../lib/allocate/answer.ts';
import type { AllocateRequest } from '../../lib/allocate/request.ts';
import type { ReadSecretText } from '../../lib/aws/store-client.ts';
import { holdsByItem } from '../../lib/range/hold.ts';
import type { StoredRange } from '../../lib/range/stored-range.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import type { ClusterSpec } from '../../lib/spec/cluster-spec.ts';
import { type RangeKey, rangesOf } from '../../lib/spec/spec-ranges.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import type { KeyValueTable } from '../../lib/table/key-value-table.ts';
import { readRange, saveRange } from '../../lib/table/ranges.ts';
import { urlEvent } from '../../local/serve-admission.ts';
import { aClusterSpec } from './a-cluster-spec.ts';
import { aReview, type ReviewFields } from './admission-review.ts';
import { aDispatchWorld } from './dispatch-world.ts';
import { found } from './found.ts';
import { memoryTable } from './memory-table.ts';
import { itemsIn, pickLowest, storedRange } from './ranges.ts';
import { repairedAt } from './run-records.ts';

export const CLUSTER = 'demo';
const PRIMARY = '10.0.0.0/24';
const SECONDARY = 'fd00::/112';
/** A range with a static band from 30000 to 30015. */
const PORTS = '30000-30127';

export type AllocateWorld = Awaited<ReturnType<typeof anAllocateWorld>>;

export interface AllocateWorldOptions {
  readonly spec?: Partial<ClusterSpec>;
  readonly table?: KeyValueTable;
  /** The handler. Default: the handler of a new process for each invocation. */
  readonly handler?: AllocationHandler;
  readonly environment?: Partial<Environment>;
  /** The clock. Default: a clock of the world. */
  readonly clock?: { nowMs: number };
  /** A repair succeeds just before each request. Default: true. */
  readonly isRepaired?: boolean;
}

/** Returns one cluster in mode enforce, whose ranges a pass has saved, and the handler that allocates from them. */
export async function anAllocateWorld(options: AllocateWorldOptions = {}) {
  const world = aDispatchWorld(options.environment);
  const clock = options.clock ?? world.clock;
  const nowMs = () => clock.nowMs;
  const table = options.table ?? memoryTable({ nowMs });
  const ranges = { serviceClusterIPRanges: [PRIMARY, SECONDARY], serviceNodePortRange: PORTS } as const;
  const spec = aClusterSpec({ name: CLUSTER, allocator: 'table', ...ranges, ...options.spec });
  await registerCluster(table, spec);

  const store = async (key: RangeKey, changed: Partial<StoredRange>) => {
    const previous = await readRange(table, CLUSTER, key);
    const range = rangesOf(spec).find((each) => each.key === key)?.configured ?? '';
    const stored = { ...(previous?.stored ?? storedRange({ range, data: new Uint8Array(0) })), ...changed };
    await saveRange(table, CLUSTER, key, stored, previous?.item);
  };
  for (const { key } of rangesOf(spec)) await store(key, {});

  const stored = async (key: RangeKey) => found(await readRange(table, CLUSTER, key)).stored;
  const repair = (startedAtMs: number) => repairedAt(table, startedAtMs, CLUSTER);
  const { isRepaired = true } = options;
  /** Sends the event unchanged. The handler uses the given table. */
  const send = async (event: unknown, through: KeyValueTable = table): Promise<Answer> => {
    if (isRepaired) await repair(nowMs());
    const environment = { ...world.environment, nowMs, table: () => through };
    const { handler = allocation({ pause: () => Promise.resolve(), pick: pickLowest }) } = options;
    return handler(event, { getRemainingTimeInMillis: () => 30_000, environment });
  };
  const ask = (request: Partial<AllocateRequest> & object, through?: KeyValueTable) =>
    send({ requestId: 'r1', cluster: CLUSTER, operation: 'allocate', items: [], ...request }, through);
  return {
    environment: world.environment,
    telemetry: world.telemetry,
    clock,
    table,
    send,
    ask,
    /**
     * Sends the request again. If the answer is that an earlier invocation might still be running, advances the clock until the
     * time of that invocation is over, and sends the request once more.
     */
    askAgain: async (request: Partial<AllocateRequest>) => {
      const answer = await ask(request);
      if (answer.error?.code !== 'InProgress') return answer;
      clock.nowMs += 30_000;
      return ask(request);
    },
    store,
    stored,
    /** Returns the taken items of all ranges as text, each with the id of the request that holds it, if any. */
    taken: async () => {
      const found: Record<string, string | undefined> = {};
      for (const { key } of rangesOf(spec)) {
        const { range, data, holds } = await stored(key);
        const byItem = holdsByItem(holds);
        for (const item of itemsIn({ range, data })) found[item] = byItem.get(item)?.requestId;
      }
      return found;
    },
    /** Returns all table items of the cluster that a request can change. The registration and the run records are omitted. */
    items: async () => (await table.list(CLUSTER, '')).filter(({ key }) => !key.startsWith('runs/')),
    repair,
  };
}

export const TOKEN = 'the-token-of-demo-that-is-not-guessed';

export interface Answered {
  readonly uid: string;
  readonly allowed: boolean;
  readonly patch?: readonly PatchOperation[];
  readonly status?: RefusalStatus;
}

export interface AdmissionWorldOptions extends AllocateWorldOptions {
  readonly settings?: Partial<AdmissionSettings>;
  readonly readTokens?: ReadSecretText;
  readonly pick?: AdmissionOptions['pick'];
  readonly wait?: AdmissionOptions['wait'];
}

export type AdmissionWorld = Awaited<ReturnType<typeof anAdmissionWorld>>;

const tokenOfDemo: ReadSecretText = async (name) =>
  name === 'p/admission/demo' ? { outcome: 'read', text: TOKEN } : { outcome: 'absent' };

const SETTINGS = { onFailure: 'refuse', deadlineMs: 8_000, tokenStore: 'secretsManager', secretsPrefix: 'p/' } as const;
const AUTHORIZED = { authorization: `Bearer ${TOKEN}` };

interface UrlRequest {
  readonly method?: string;
  readonly path?: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly cameAtMs?: number;
}

/** Returns one cluster in mode enforce, whose ranges a pass has saved, and the handler of the webhook URL. */
export async function anAdmissionWorld(options: AdmissionWorldOptions = {}) {
  const { settings, readTokens = tokenOfDemo, pick = pickLowest, wait = () => Promise.resolve() } = options;
  const world = await anAllocateWorld(options);
  const settled = { settings: { ...SETTINGS, ...settings }, readTokens, pick, wait };
  let handler = admission(settled);
  const restart = () => {
    handler = admission(settled);
  };
  /** Returns the answer to any event. The handler uses the given table. */
  const handle = (event: object, table = world.table): Promise<WebhookReply> => {
    const environment: Environment = { ...world.environment, table: () => table };
    return handler(event, { environment, getRemainingTimeInMillis: () => 30_000 });
  };
  /** Returns the answer to any request. */
  const send = async (sent: UrlRequest, table = world.table) => {
    if (options.isRepaired ?? true) await world.repair(world.clock.nowMs);
    const { method = 'POST', path = '/demo', query = '', headers = AUTHORIZED, body, cameAtMs } = sent;
    const event = urlEvent({ method, url: `${path}?${query}`, headers }, '');
    // An event has no field `body` if the request has no body.
    return handle({ ...event, body, requestContext: { ...event.requestContext, timeEpoch: cameAtMs } }, table);
  };
  const ask = async (fields: ReviewFields = {}, table = world.table): Promise<Answered> => {
    const { body } = await send({ body: JSON.stringify(aReview(fields)) }, table);
    const { patch, ...response } = JSON.parse(body).response;
    return patch === undefined ? response : { ...response, patch: JSON.parse(Buffer.from(patch, 'base64').toString()) };
  };
  return { ...world, ask, send, handle, restart };
}
