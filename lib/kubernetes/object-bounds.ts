import { BOUNDS, fieldOver, LONGEST_TEXT, longTextIn, type OverBoundField } from '../cluster/bounds.ts';
import type { KubernetesObject } from '../cluster/kubernetes-objects.ts';
import type { EndpointsObject } from '../endpoints/objects.ts';
import { repackedAddresses } from '../endpoints/repack-subsets.ts';
import type { Kind } from './cluster-port.ts';
import { OverBound } from './reply-bounds.ts';

/** Throws `OverBound` for an object that would cost its pass more than others have: no pass sees it. */
export function requireObjectBounds(kind: Kind, object: KubernetesObject): void {
  refuse(kind, fieldOver(object, BOUNDS['each object']) ?? fieldOver(object, BOUNDS[kind]));
  if (kind === 'Endpoints') refuse(`${kind}, repacked,`, repackedOver(object));
  const place = longTextIn(object);
  if (place !== undefined) throw new OverBound(`more than ${LONGEST_TEXT} characters in ${place} of ${kind}`);
}

/** Throws `OverBound` for a list with too many items. */
export function requireListBounds(kind: Kind, items: readonly unknown[]): void {
  const most = BOUNDS['each list'][kind];
  if (items.length > most) refuse(`a list of ${kind}`, { field: 'items', entries: items.length, most });
}

function repackedOver({ subsets }: EndpointsObject): OverBoundField | undefined {
  const field = 'subsets[].addresses';
  const most = BOUNDS['Endpoints, repacked'][field];
  const entries = repackedAddresses(subsets ?? []);
  return entries > most ? { field, entries, most } : undefined;
}

function refuse(what: string, over: OverBoundField | undefined): void {
  if (over === undefined) return;
  const { field, entries, most } = over;
  throw new OverBound(`${entries} entries in ${field} of ${what} (the limit is ${most})`);
}
