import { type AdmissionOptions, admission } from '../../lib/admission/admission.ts';
import type { WebhookReply } from '../../lib/admission/request.ts';
import type { PatchOperation, RefusalStatus } from '../../lib/admission/response.ts';
import type { AdmissionSettings } from '../../lib/admission/settings.ts';
import type { ReadSecretText } from '../../lib/aws/store-client.ts';
import type { Environment } from '../../lib/runtime/environment.ts';
import { type UrlRequest, urlEvent } from '../../local/serve-admission.ts';
import { aReview, type ReviewFields } from './admission-review.ts';
import { type AllocateWorldOptions, anAllocateWorld } from './allocate-world.ts';
import { pickLowest } from './ranges.ts';

export const TOKEN = 'the-token-of-demo-that-nobody-guesses';

export interface Answered {
  readonly uid: string;
  readonly allowed: boolean;
  readonly patch?: readonly PatchOperation[];
  readonly status?: RefusalStatus;
}

export type AdmissionWorld = Awaited<ReturnType<typeof anAdmissionWorld>>;

export interface AdmissionWorldOptions extends Pick<AllocateWorldOptions, 'spec' | 'environment' | 'isRepaired'> {
  readonly settings?: Partial<AdmissionSettings>;
  readonly readTokens?: ReadSecretText;
  readonly wait?: AdmissionOptions['wait'];
}

const tokenOfDemo: ReadSecretText = async (name) =>
  name === 'p/admission/demo' ? { outcome: 'read', text: TOKEN } : { outcome: 'absent' };

const SETTINGS = { onFailure: 'refuse', deadlineMs: 8_000, tokenStore: 'secretsManager', secretsPrefix: 'p/' } as const;
const AUTHORIZED = { authorization: `Bearer ${TOKEN}` };

/** Returns one cluster in mode enforce, whose ranges a pass has saved, and the handler of the webhook URL. */
export async function anAdmissionWorld(options: AdmissionWorldOptions = {}) {
  const { spec, environment = {}, settings, wait = () => Promise.resolve() } = options;
  const { readTokens = tokenOfDemo } = options;
  const world = await anAllocateWorld({ environment, ...(spec && { spec }) });
  let generated = 0;
  const newSuffix = () => `0000${++generated}`;
  const settled = { settings: { ...SETTINGS, ...settings }, readTokens, pick: pickLowest, newSuffix, wait };
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
    return handle(urlEvent({ headers: AUTHORIZED, ...sent }), table);
  };
  const ask = async (fields: ReviewFields = {}, table = world.table): Promise<Answered> => {
    const { body } = await send({ body: JSON.stringify(aReview(fields)) }, table);
    const { patch, ...response } = JSON.parse(body).response;
    return patch === undefined ? response : { ...response, patch: JSON.parse(Buffer.from(patch, 'base64').toString()) };
  };
  return { ...world, ask, send, handle, restart };
}
