import type { ProbeReply } from '../cluster/probe-reply.ts';
import type { ApiServerKind } from '../spec/cluster-spec.ts';
import { boundedText, cutText } from '../util/values.ts';

/**
 * The meaning of an answer for the lease. `ready` and `alive` refresh the lease, but only `ready` ends a withdrawal or shutdown.
 * `error` and `silence` can count as a miss, `unknown` only if it is late. An `odd` answer is reported as a finding.
 */
export interface ProbeOutcome {
  readonly verdict: 'ready' | 'alive' | 'shuttingDown' | 'error' | 'silence' | 'unknown';
  readonly odd: boolean;
  /** True if this process was busy while it waited for the answer. */
  readonly late?: true;
  /** True if the server refused the request: 401 or 403. */
  readonly refused?: true;
  /** The text for logs and findings: `answered 503`, `no answer: connect ECONNREFUSED`. */
  readonly detail: string;
}

const LONGEST_DETAIL = 200;

/**
 * Matches the report of a shutdown: a line in the answer of `/readyz`, or the answer of `/readyz/shutdown`
 * (`pkg/server/healthz/healthz.go` of k8s.io/apiserver).
 */
const SHUTTING_DOWN = /^\[-\]shutdown failed: |^internal server error: process is shutting down/m;

export function probeOutcome(answer: ProbeReply): ProbeOutcome {
  return { ...outcomeOf(answer), ...(answer.late && { late: true }) };
}

function outcomeOf(answer: ProbeReply): ProbeOutcome {
  switch (answer.kind) {
    case 'silence':
      return { verdict: 'silence', odd: false, detail: `no answer: ${answer.message}` };
    case 'unknown':
      return { verdict: 'unknown', odd: false, detail: `not known: ${answer.message}` };
    case 'tlsFailure':
      return { verdict: 'silence', odd: true, detail: `TLS failed: ${answer.message}` };
    case 'status':
      return statusOutcome(answer.status, answer.body);
  }
}

/** Returns true if the server answered, which proves that the network path is open. */
export function hasAnswered({ verdict }: ProbeOutcome): boolean {
  return verdict !== 'silence' && verdict !== 'unknown';
}

export function isAnyAnswered(outcomes: ReadonlyMap<string, ProbeOutcome>): boolean {
  return [...outcomes.values()].some(hasAnswered);
}

export function outcomesOf(
  outcomes: ReadonlyMap<string, ProbeOutcome>,
  isOf: (address: string) => boolean,
): ReadonlyMap<string, ProbeOutcome> {
  return new Map([...outcomes].filter(([address]) => isOf(address)));
}

/** Returns the verdict for a kind of address. For a shared address, the reported shutdown of one server counts as `alive`. */
export function verdictFor(kind: ApiServerKind, { verdict }: ProbeOutcome): ProbeOutcome['verdict'] {
  return kind === 'shared' && verdict === 'shuttingDown' ? 'alive' : verdict;
}

/** Returns the detail for the lease, as one line of at most 200 characters. A part of the detail may come from the server. */
export function shortDetail({ detail }: ProbeOutcome): string {
  return cutText(detail.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ').trim(), LONGEST_DETAIL);
}

function statusOutcome(status: number, body: string): ProbeOutcome {
  const detail = `answered ${status}`;
  if (status === 200) return { verdict: 'ready', odd: false, detail };
  if (status === 401 || status === 403) return { verdict: 'alive', odd: false, refused: true, detail };
  if (status === 429) return { verdict: 'alive', odd: false, detail };
  if (status === 500 && SHUTTING_DOWN.test(body)) {
    return { verdict: 'shuttingDown', odd: false, detail: `${detail}: it is shutting down` };
  }
  const odd = status < 500 || status > 599;
  return { verdict: 'error', odd, detail: `${detail}${failedChecks(body)}` };
}

/** Returns the names of the failed checks of `/readyz`, such as `: etcd, poststarthook/rbac/bootstrap-roles`. */
function failedChecks(body: string): string {
  const names = [...body.matchAll(/^\[-\](\S+) failed/gm)].flatMap(([, name]) => name ?? []);
  return names.length > 0 ? `: ${boundedText(names.slice(0, 5).join(', '))}` : '';
}
