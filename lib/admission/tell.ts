import type { Invocation } from '../runtime/invocation.ts';
import type { Verdict } from './admit.ts';
import type { HttpReply } from './http.ts';
import type { OtherReview, Review } from './review.ts';

/** Nobody has checked a Service's name by now: it may be as long as its object. */
const LONGEST_TEXT = 1_000;

/** One line for what is no review that was asked by who may. Nothing of the token is in it. */
export function tellFault(
  { telemetry }: Invocation,
  reply: HttpReply,
  cluster: string | undefined,
  reason: string,
): HttpReply {
  const { statusCode } = reply;
  telemetry.log('warn', 'admission: not answered', { cluster, statusCode, reason });
  // Not by cluster: names that strangers make up would each become a series, which costs money.
  telemetry.count('allocationsRefused', 1, { type: `Http${statusCode}` });
  return reply;
}

export function tellOther({ telemetry }: Invocation, cluster: string, { uid, other }: OtherReview): void {
  telemetry.log('info', 'admission: leftAlone', { cluster, request: uid, reason: other });
}

export function tellVerdict(
  { telemetry }: Invocation,
  cluster: string,
  review: Review,
  verdict: Verdict,
  retries: number,
): void {
  const { uid, operation, namespace, service, dryRun } = review;
  const { name, generateName } = service.metadata;
  const isFine = verdict.outcome !== 'refused' && verdict.outcome !== 'failed' && verdict.outcome !== 'notRegistered';
  telemetry.log(isFine ? 'info' : 'warn', `admission: ${verdict.outcome}`, {
    cluster,
    request: uid,
    operation,
    service: shortened(`${namespace}/${name === '' ? `${generateName}*` : name}`),
    ...(dryRun && { dryRun }),
    ...fieldsOf(verdict),
    retries,
  });
  telemetry.count('allocationRetries', retries, { cluster });
  if (verdict.outcome === 'refused' || verdict.outcome === 'failed') {
    telemetry.count('allocationsRefused', 1, { type: verdict.code, cluster });
  }
  if (verdict.outcome === 'allocated' && !dryRun) {
    telemetry.count('allocations', verdict.items.addresses.length + verdict.items.ports.length, { cluster });
  }
}

function fieldsOf(verdict: Verdict): Readonly<Record<string, string | readonly string[] | undefined>> {
  switch (verdict.outcome) {
    case 'allocated':
      return { clusterIPs: verdict.items.addresses, nodePorts: verdict.items.ports.map(String) };
    case 'refused':
      return { reason: shortened(verdict.status.message) };
    case 'failed':
      return { reason: `${verdict.code}: ${verdict.message}` };
    case 'leftAlone':
      return { reason: verdict.reason };
    case 'observed':
      return { wouldBe: verdict.wouldBe.outcome, ...fieldsOf(verdict.wouldBe) };
    case 'notRegistered':
      return {};
  }
}

function shortened(text: string): string {
  return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT).toWellFormed()}…` : text;
}
