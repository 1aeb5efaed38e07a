import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PickIndex } from '../allocator/range-allocator.ts';
import { type ReadSecretText, secretTextReader } from '../aws/store-client.ts';
import { answerBudgetMs, DispatchError } from '../runtime/deadline.ts';
import type { TableEnvironment } from '../runtime/environment.ts';
import { type Handler, type Invocation, runInvocation } from '../runtime/invocation.ts';
import { clusterNames } from '../table/clusters.ts';
import { TableError } from '../table/key-value-table.ts';
import { changesInTurn, Turns } from '../table/turns.ts';
import { errorSentence } from '../telemetry/telemetry.ts';
import { unlessAborted } from '../util/async.ts';
import { anyPartOf } from '../util/back-off.ts';
import { admit, logFault, logVerdict, type Verdict } from './admit.ts';
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
import { unavailable } from './response.ts';
import { suffix } from './service.ts';
import { type AdmissionSettings, admissionSettings, tokensNameOf } from './settings.ts';
import { ClusterTokens, Rate, REVIEWS, type TokenCheck } from './tokens.ts';

export interface AdmissionOptions {
  /** If absent, the settings come from the environment variables. */
  readonly settings?: AdmissionSettings;
  /** Reads the tokens of a cluster. If absent, they are read from the AWS store in the settings. */
  readonly readTokens?: ReadSecretText;
  readonly pick?: PickIndex;
  /** Returns a random suffix for `generateName`. Default: five random letters or digits. */
  readonly newSuffix?: () => string;
  /** Waits after a lost attempt. The first attempt has number 0. Default: a random time. */
  readonly wait?: (attempt: number, tookMs: number) => Promise<void>;
}

export type AdmissionHandler = Handler<WebhookReply, TableEnvironment>;

/** The maximum wait after each lost attempt of a review. Waits get shorter, so that newer reviews do not always win. */
const WAITS_MS = [120, 100, 80, 60, 40];
/** `WAITS_MS` is for attempts of this duration. A longer attempt lengthens its wait in proportion, up to `LONGEST_FACTOR`. */
const ATTEMPT_MS = 12;
const LONGEST_FACTOR = 10;
/** A longer review counts as several reviews against the rate limit of its cluster. */
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
      const request = httpRequestIn(event);
      if ('statusCode' in request) return logFault(invocation, request, undefined, 'not a request for a review');
      const budgetMs = budgetOf(request, known.settings, invocation);
      const deadline = invocation.environment.startDeadline(budgetMs);
      const closing = invocation.environment.startDeadline(budgetMs + RELEASING_MS);
      const signals = { signal: deadline.signal, closing: closing.signal };
      try {
        return await answer(request, { ...known, ...signals, invocation, options });
      } finally {
        deadline.cancel();
        closing.cancel();
      }
    });
}

/** Returns the time for an answer in ms. It ends before the API server stops waiting and before the function's timeout. */
function budgetOf(
  { timeoutMs = Number.POSITIVE_INFINITY, cameAtMs }: AdmissionHttpRequest,
  { deadlineMs }: AdmissionSettings,
  invocation: Invocation<TableEnvironment>,
): number {
  const waitedMs = cameAtMs === undefined ? 0 : Math.max(0, invocation.environment.nowMs() - cameAtMs);
  return answerBudgetMs(invocation.remainingMs, Math.min(deadlineMs, timeoutMs - waitedMs - NETWORK_MS));
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
  if (check.outcome === 'unknown') {
    return logFault(invocation, unknownToken(), cluster, check.reason);
  }
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
  const { verdict, retries } = await judge(cluster, review, work);
  logVerdict(invocation, cluster, review, verdict, retries);
  if (verdict.outcome === 'notRegistered') return unauthorized();
  return reviewReply(review.uid, responseOf(verdict, work.settings));
}

async function checked({ cluster, token }: AdmissionHttpRequest, { tokens, signal }: Work): Promise<TokenCheck> {
  try {
    return await unlessAborted(signal, () => tokens.check(cluster, token, signal));
  } catch (error) {
    if (!(error instanceof DispatchError)) throw error;
    return { outcome: 'unknown', reason: errorSentence(error) };
  }
}

async function judge(
  cluster: string,
  review: Review,
  { invocation, options, turns, signal, closing }: Work,
): Promise<{ readonly verdict: Verdict; readonly retries: number }> {
  const { environment, telemetry } = invocation;
  const { pick = randomInt, newSuffix = () => suffix(randomInt), wait = shorterEachTime } = options;
  const { nowMs, stack } = environment;
  const attempts = changesInTurn({ turns, signal, nowMs, wait });
  // An allocation whose outcome is unclear can be repeated, because the range records the items that were allocated for
  // each Service. This record stays until a pass has seen the items in the Service.
  const update = { ...attempts.update, isRepeatable: true };
  const logUnreleased = (error: TableError) => {
    telemetry.log('warn', 'admission: not released', { cluster, errors: [errorSentence(error)] });
  };
  const tables = { table: environment.table(signal), closingTable: environment.table(closing) };
  const admitted = () => admit(cluster, review, { ...tables, stack, pick, newSuffix, update, nowMs, logUnreleased });
  const verdict = await unlessAborted(closing, admitted).catch((error: unknown): Verdict => {
    if (!(error instanceof TableError || error instanceof DispatchError)) throw error;
    return { outcome: 'failed', code: error.code, message: errorSentence(error) };
  });
  return { verdict, retries: attempts.retries() };
}

function responseOf(verdict: Verdict, { onFailure }: AdmissionSettings): ReviewResponse {
  switch (verdict.outcome) {
    case 'allocated':
      return { allowed: true, patch: verdict.patch };
    case 'refused':
      return { allowed: false, status: verdict.status };
    case 'failed':
      return onFailure === 'allow'
        ? { allowed: true }
        : { allowed: false, status: unavailable(publicMessage(verdict.code)) };
    case 'leftAlone':
    case 'observed':
    case 'notRegistered':
      return { allowed: true };
  }
}

/** Returns the message for users of the cluster. It does not contain the name of the table, which is only in the log. */
function publicMessage(code: string): string {
  return `no address or port can be allocated from the table now (${code}): try again, or contact the administrator of this cluster`;
}

async function shorterEachTime(attempt: number, tookMs: number): Promise<void> {
  const factor = Math.min(LONGEST_FACTOR, Math.max(1, tookMs / ATTEMPT_MS));
  await sleep(anyPartOf(factor * (WAITS_MS[attempt] ?? WAITS_MS.at(-1) ?? 0), Math.random));
}
