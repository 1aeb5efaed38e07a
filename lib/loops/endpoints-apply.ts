import { removeWithdrawn } from '../api-servers/remove-address.ts';
import { writeEndpoints } from '../api-servers/write-endpoints.ts';
import { afterWrite } from '../endpoints/contested-writes.ts';
import { plainValue } from '../table/item-values.ts';
import { type EndpointsPlan, type Publication, versionsOf, type World } from './endpoints-decide.ts';
import { ensureService } from './ensure-service.ts';
import type { PassContext, PassReport } from './pass.ts';

/** Writes the Service, the Endpoints, the slice, and removes addresses that were deregistered during the writes; then reports. */
export async function apply(context: PassContext, world: World, plan: EndpointsPlan): Promise<PassReport> {
  const service = await ensureService(context, plan.service);
  const errors = service.error === undefined ? [] : [service.error];
  const changes = [...world.lines, ...service.changes];
  if (!service.exists) return { changes, findings: world.findings, counts: {}, errors };
  const { publication, findings, counts } = plan;
  if (publication === undefined) {
    return { changes, findings, counts, errors: [...errors, ...plan.errors], state: plainValue(plan.contest) };
  }
  const written = await publish(context, world, publication);
  return {
    ...written,
    changes: [...changes, ...written.changes],
    findings,
    counts,
    errors: [...errors, ...written.errors],
  };
}

async function publish(
  context: PassContext,
  world: World,
  { endpoints, slice, verdict, wanted, removals }: Publication,
): Promise<Pick<PassReport, 'changes' | 'wouldWrite' | 'errors' | 'state'>> {
  const current = world.endpoints;
  const written = await writeEndpoints(context.kubernetes, endpoints, slice);
  const errors = written.error === undefined ? [] : [written.error];
  const removed = written.endpoints === undefined ? [] : removals;
  if (written.withheld) {
    const wouldWrite = removed.map((line) => `remove ${line}`);
    return { changes: written.changes, wouldWrite, errors, state: plainValue(verdict.state) };
  }
  // Another writer can only undo a write that was made.
  const versions = versionsOf(written.endpoints, written.slice);
  const after = errors.length === 0 ? afterWrite(verdict, { wanted, versions, nowMs: world.nowMs }) : verdict.state;
  const withdrawn = await removeWithdrawn(context, { current, slice }, written);
  return {
    changes: [...written.changes, ...withdrawn.changes, ...removed.map((line) => `removed ${line}`)],
    errors: withdrawn.error === undefined ? errors : [withdrawn.error, ...errors],
    state: plainValue(after),
  };
}
