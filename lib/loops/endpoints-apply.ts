import { removeWithdrawn } from '../api-servers/remove-address.ts';
import { applySliceWrite, writeEndpoints } from '../api-servers/write-endpoints.ts';
import { afterWrite, type ContestState } from '../endpoints/contested-writes.ts';
import { plainValue } from '../table/item-values.ts';
import type { EndpointsPlan, Publication, World } from './endpoints-decide.ts';
import { ensureService } from './ensure-service.ts';
import type { PassContext, PassReport } from './pass.ts';
import { versionsOf } from './slices-decide.ts';

/** Writes the Service, the Endpoints, the slices, and removes addresses that were deregistered during the writes; then reports. */
export async function apply(context: PassContext, world: World, plan: EndpointsPlan): Promise<PassReport> {
  const service = await ensureService(context, plan.service);
  const errors = service.error === undefined ? [] : [service.error];
  const changes = [...world.lines, ...service.changes];
  if (!service.exists) return { changes, findings: world.findings, counts: {}, errors };
  const { publication, findings, counts } = plan;
  const unwritten: Written = { changes: [], errors: plan.errors, state: plan.contest };
  const written = publication === undefined ? unwritten : await publish(context, world, publication);
  // Another writer's slice may be the only one that has addresses.
  const isDeleting = written.errors.length === 0;
  const writes = plan.slices.writes.filter(({ verb }) => isDeleting || verb !== 'delete');
  const slices = await publishSlices(context, world, { ...plan.slices, writes });
  const wouldWrite = [...(written.wouldWrite ?? []), ...(slices.wouldWrite ?? [])];
  const state = { ...written.state, ...(slices.state && { slices: slices.state }) };
  return {
    changes: [...changes, ...written.changes, ...slices.changes],
    ...(wouldWrite.length > 0 && { wouldWrite }),
    findings,
    counts,
    errors: [...errors, ...written.errors, ...slices.errors],
    state: plainValue(state),
  };
}

type Written = Pick<PassReport, 'changes' | 'wouldWrite' | 'errors'> & { readonly state?: ContestState };

/** Writes the other slices one after the other. An error ends the writes; the next pass tries again. */
async function publishSlices(context: PassContext, world: World, plan: EndpointsPlan['slices']): Promise<Written> {
  const { writes, current, wanted, verdict, removals } = plan;
  const unwritten = { changes: [], errors: [], ...(verdict && { state: verdict.state }) };
  const changes: string[] = [];
  let versions = versionsOf(current);
  let isWithheld = false;
  for (const write of writes) {
    const { slice, withheld = false, error, ...written } = await applySliceWrite(context.kubernetes, write);
    changes.push(...written.changes);
    if (error !== undefined) return { ...unwritten, changes, errors: [error] };
    isWithheld ||= withheld;
    if (slice === undefined || withheld) continue;
    versions = versionsOf(slice);
    const withdrawn = await removeWithdrawn(context, { slice: current }, { slice });
    changes.push(...withdrawn.changes);
    if (withdrawn.error !== undefined) return { ...unwritten, changes, errors: [withdrawn.error] };
  }
  if (isWithheld) return { ...unwritten, wouldWrite: removals.map((line) => `remove ${line}`) };
  const state = verdict && writes.length > 0 && afterWrite(verdict, { wanted, versions, nowMs: world.nowMs });
  if (writes.length > 0) changes.push(...removals.map((line) => `removed ${line}`));
  return { ...unwritten, changes, ...(state && { state }) };
}

async function publish(
  context: PassContext,
  world: World,
  { endpoints, slice, verdict, wanted, removals }: Publication,
): Promise<Written> {
  const current = world.endpoints;
  const written = await writeEndpoints(context.kubernetes, endpoints, slice);
  const errors = written.error === undefined ? [] : [written.error];
  const removed = written.endpoints === undefined ? [] : removals;
  if (written.withheld) {
    const wouldWrite = removed.map((line) => `remove ${line}`);
    return { changes: written.changes, wouldWrite, errors, state: verdict.state };
  }
  // Another writer can only undo a write that was made.
  const versions = versionsOf(written.endpoints, written.slice);
  const after = errors.length === 0 ? afterWrite(verdict, { wanted, versions, nowMs: world.nowMs }) : verdict.state;
  const withdrawn = await removeWithdrawn(context, { current, slice }, written);
  return {
    changes: [...written.changes, ...withdrawn.changes, ...removed.map((line) => `removed ${line}`)],
    errors: withdrawn.error === undefined ? errors : [withdrawn.error, ...errors],
    state: after,
  };
}
