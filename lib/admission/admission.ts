import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod/mini';
import type { PickIndex } from '../allocator/range-allocator.ts';
import { type ReadSecretText, secretTextReader } from '../aws/store-client.ts';
import { answerBudgetMs, DispatchError, withDeadline } from '../runtime/deadline.ts';
import type { TableEnvironment } from '../runtime/environment.ts';
import { type Handler, type Invocation, runInvocation } from '../runtime/invocation.ts';
import { shapeFaults } from '../spec/shapes.ts';
import { clusterNames } from '../table/clusters.ts';
import { TableError } from '../table/key-value-table.ts';
import { changesInTurn, Turns } from '../table/turns.ts';
import { errorSentence } from '../telemetry/telemetry.ts';
import { unlessAborted } from '../util/async.ts';
import { anyPartOf } from '../util/back-off.ts';
import { cutText } from '../util/values.ts';
import { admit, failed, type Verdict } from './admit.ts';
import {
  type AdmissionHttpRequest,
  httpReply,
  httpRequestIn,
  type Review,
  type ReviewResponse,
  reviewIn,
  reviewReply,
  unauthorized,
  unknownToken,
  type WebhookReply,
} from './request.ts';
import { failure } from './response.ts';
import { ClusterTokens, Rate, REVIEWS, type TokenCheck } from './tokens.ts';

const settingsShape = z.pipe(
  z.object({
    ADMISSION_ON_FAILURE: z.enum(['refuse', 'allow']),
    ADMISSION_DEADLINE_SECONDS: z.pipe(z.pipe(z.string(), z.transform(Number)), z.number().check(z.gte(1), z.lte(28))),
    ADMISSION_TOKEN_STORE: z.enum(['secretsManager', 'ssm']),
    SECRETS_PREFIX: z.string().check(z.minLength(1)),
  }),
  z.transform((variables) => ({
    /** The answer if the table cannot allocate. `refuse`: the Service is refused. `allow`: the API server allocates. */
    onFailure: variables.ADMISSION_ON_FAILURE,
    /** The time limit for an answer. It must be less than the webhook's `timeoutSeconds`. */
    deadlineMs: variables.ADMISSION_DEADLINE_SECONDS * 1000,
    tokenStore: variables.ADMISSION_TOKEN_STORE,
    secretsPrefix: variables.SECRETS_PREFIX,
  })),
);

export type AdmissionSettings = Readonly<z.infer<typeof settingsShape>>;

/** Reads the environment variables of the function. Throws a `DispatchError` with code `BadEnvironment`. */
export function admissionSettings(variables: Readonly<Record<string, string | undefined>>): AdmissionSettings {
  const { data, error } = settingsShape.safeParse(variables);
  if (error === undefined) return data;
  const faults = shapeFaults(error, 'the environment');
  throw new DispatchError('BadEnvironment', `Environment variables are wrong, which serverless.yml sets: ${faults}.`);
}

/** Returns the name of the secret with the tokens of a cluster. In Parameter Store, the name begins with `/`. */
export function tokensNameOf({ tokenStore, secretsPrefix }: AdmissionSettings, cluster: string): string {
  return `${tokenStore === 'ssm' ? '/' : ''}${secretsPrefix}admission/${cluster}`;
}

export interface AdmissionOptions {
  /** If absent, the settings come from the environment variables. */
  readonly settings?: AdmissionSettings;
  /** Reads the tokens of a cluster. If this function is absent, the tokens are read from the AWS store in the settings. */
  readonly readTokens?: ReadSecretText;
  readonly pick?: PickIndex;
  /** Waits after a lost attempt. The first attempt has number 0. Default: a random time. */
  readonly wait?: (attempt: number, tookMs: number) => Promise<void>;
}

export type AdmissionHandler = Handler<WebhookReply, TableEnvironment>;

/** The maximum wait after each lost attempt of a review. Waits get shorter, so that newer reviews do not always win. */
const WAITS_MS = [120, 100, 80, 60, 40];
/** The attempt duration that `WAITS_MS` is for. After a longer attempt, the wait is up to `LONGEST_FACTOR` times longer. */
const ATTEMPT_MS = 12;
const LONGEST_FACTOR = 10;
/** A review with more bytes counts as several reviews against the rate limit of the cluster. */
const BYTES_OF_REVIEW = 16 * 1024;
/** The part of the API server's timeout that is reserved for the network. */
const NETWORK_MS = 500;
/** The time after the deadline that is reserved for the release of allocated items. */
const RELEASING_MS = 400;

/** Returns the handler behind the function URL. A request is `POST /<cluster>` with a review and the token of this cluster. */
export function admission(options: AdmissionOptions = {}): AdmissionHandler {
  let known: ReturnType<typeof open> | undefined;
  return (event, context) =>
    runInvocation('admission', context, async (invocation) => {
      known ??= open(options, invocation);
      const work = { ...known, invocation, options };
      const request = httpRequestIn(event);
      if ('statusCode' in request) return logFault(invocation, request, undefined, 'not a request for a review');
      const { environment, remainingMs } = invocation;
      const { timeoutMs = Number.POSITIVE_INFINITY, cameAtMs } = request;
      const waitedMs = cameAtMs === undefined ? 0 : Math.max(0, environment.nowMs() - cameAtMs);
      // The answer comes before the API server stops waiting and before the function's timeout.
      const longestMs = Math.min(known.settings.deadlineMs, timeoutMs - waitedMs - NETWORK_MS);
      const budgetMs = answerBudgetMs(remainingMs, longestMs);
      return withDeadline(environment, budgetMs, (signal) =>
        withDeadline(environment, budgetMs + RELEASING_MS, (closing) => answer(request, { ...work, signal, closing })),
      );
    });
}

interface Work extends ReturnType<typeof open> {
  readonly invocation: Invocation<TableEnvironment>;
  readonly options: AdmissionOptions;
  readonly signal: AbortSignal;
  readonly closing: AbortSignal;
}

function open(options: AdmissionOptions, { environment }: Invocation<TableEnvironment>) {
  const settings = options.settings ?? admissionSettings(process.env);
  const read = options.readTokens ?? secretTextReader(settings.tokenStore);
  const nameOf = (cluster: string) => tokensNameOf(settings, cluster);
  const listClusters = (signal: AbortSignal) => clusterNames(environment.table(signal));
  const tokens = new ClusterTokens({ read, nameOf, listClusters, nowMs: environment.nowMs });
  return { settings, tokens, rate: new Rate(REVIEWS), turns: new Turns() };
}

async function answer(request: AdmissionHttpRequest, work: Work): Promise<WebhookReply> {
  const { invocation, rate } = work;
  const { cluster, bodyBytes } = request;
  const check = await checked(request, work);
  if (check.outcome === 'wrong') return logFault(invocation, unauthorized(), cluster, 'wrong token');
  if (check.outcome === 'unknown') return logFault(invocation, unknownToken(), cluster, check.reason);
  if (!rate.admits(cluster, invocation.environment.nowMs(), Math.max(1, bodyBytes / BYTES_OF_REVIEW))) {
    return logFault(invocation, httpReply(429, 'too many reviews'), cluster, 'too many reviews of this cluster');
  }
  const body = request.body();
  if (typeof body !== 'string') return logFault(invocation, body, cluster, 'a body that is too large');
  const review = reviewIn(body);
  if ('fault' in review) return logFault(invocation, httpReply(400, review.fault), cluster, review.fault);
  if ('other' in review) {
    const { uid, other: reason } = review;
    invocation.telemetry.log('info', 'admission: leftAlone', { cluster, request: uid, reason });
    return reviewReply(uid, { allowed: true });
  }
  const verdict = await judge(cluster, review, work);
  if (verdict.outcome === 'notRegistered') return unauthorized();
  return reviewReply(review.uid, responseOf(verdict, work.settings));
}

function checked({ cluster, token }: AdmissionHttpRequest, { tokens, signal }: Work): Promise<TokenCheck> {
  return unlessAborted(signal, () => tokens.check(cluster, token, signal)).catch((error: unknown) => {
    if (!(error instanceof DispatchError)) throw error;
    return { outcome: 'unknown', reason: errorSentence(error) };
  });
}

async function judge(cluster: string, review: Review, work: Work): Promise<Verdict> {
  const { invocation, options, turns, signal, closing } = work;
  const { environment, telemetry } = invocation;
  const { pick = randomInt, wait = shorterEachTime } = options;
  const { nowMs, stack } = environment;
  const attempts = changesInTurn({ turns, signal, nowMs, wait });
  // An allocation whose outcome is unclear can be repeated, because the range records the items that were allocated for
  // each Service. This record stays until a pass has seen the items in the Service.
  const update = { ...attempts.update, isRepeatable: true };
  const logUnreleased = (error: TableError) => {
    telemetry.log('warn', 'admission: not released', { cluster, errors: [errorSentence(error)] });
  };
  const tables = { table: environment.table(signal), closingTable: environment.table(closing) };
  const admitted = () => admit(cluster, review, { ...tables, stack, pick, update, nowMs, logUnreleased });
  const verdict = await unlessAborted(closing, admitted).catch((error: unknown): Verdict => {
    if (!(error instanceof TableError || error instanceof DispatchError)) throw error;
    return failed(error.code, errorSentence(error));
  });
  logVerdict(invocation, cluster, review, verdict, attempts.retries());
  return verdict;
}

function responseOf(verdict: Verdict, { onFailure }: AdmissionSettings): ReviewResponse {
  if (verdict.outcome === 'allocated') return { allowed: true, patch: verdict.patch };
  if (verdict.outcome === 'refused') return { allowed: false, status: verdict.status };
  if (verdict.outcome !== 'failed' || onFailure === 'allow') return { allowed: true };
  // The reason is only in the log, because it contains the name of the table.
  const message = `no address or port can be allocated from the table now (${verdict.code}): try again, or contact the administrator of this cluster`;
  return { allowed: false, status: failure(503, 'ServiceUnavailable', message) };
}

async function shorterEachTime(attempt: number, tookMs: number): Promise<void> {
  const factor = Math.min(LONGEST_FACTOR, Math.max(1, tookMs / ATTEMPT_MS));
  await sleep(anyPartOf(factor * (WAITS_MS[attempt] ?? WAITS_MS.at(-1) ?? 0), Math.random));
}

/** The longest text in a log line. An invalid name in a review may be almost as long as the whole review. */
const LONGEST_TEXT = 1_000;

/** Logs the refusal of an HTTP request that the webhook does not review. The log line contains no part of the token. */
function logFault(
  { telemetry }: Invocation<TableEnvironment>,
  reply: WebhookReply,
  cluster: string | undefined,
  reason: string,
): WebhookReply {
  const { statusCode } = reply;
  telemetry.log('warn', 'admission: not answered', { cluster, statusCode, reason });
  telemetry.count('allocationsRefused', 1, `Http${statusCode}`);
  return reply;
}

function logVerdict(
  { telemetry }: Invocation<TableEnvironment>,
  cluster: string,
  review: Review,
  verdict: Verdict,
  retries: number,
): void {
  const { uid, operation, namespace, service, dryRun } = review;
  const { name, generateName } = service.metadata;
  const isFine = verdict.outcome !== 'notRegistered' && !('code' in verdict);
  telemetry.log(isFine ? 'info' : 'warn', `admission: ${verdict.outcome}`, {
    cluster,
    request: uid,
    operation,
    service: cutText(`${namespace}/${name === '' ? `${generateName}*` : name}`, LONGEST_TEXT),
    ...(dryRun && { dryRun }),
    ...fieldsOf(verdict),
    retries,
  });
  telemetry.count('allocationRetries', retries);
  if ('code' in verdict) telemetry.count('allocationsRefused', 1, verdict.code);
  if (verdict.outcome === 'allocated' && !dryRun) {
    telemetry.count('allocations', verdict.items.addresses.length + verdict.items.ports.length);
  }
}

function fieldsOf(verdict: Verdict): Readonly<Record<string, string | readonly string[] | undefined>> {
  if (verdict.outcome === 'observed') return { wouldBe: verdict.wouldBe.outcome, ...fieldsOf(verdict.wouldBe) };
  if (verdict.outcome !== 'allocated') return { reason: verdict.reason && cutText(verdict.reason, LONGEST_TEXT) };
  return { clusterIPs: verdict.items.addresses, nodePorts: verdict.items.ports.map(String) };
}
