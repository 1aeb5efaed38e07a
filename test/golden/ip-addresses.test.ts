import { expect } from '@jest/globals';
import { familyOf } from '../../lib/allocator/ip-address.ts';
import { parseCidr } from '../../lib/allocator/network.ts';
import {
  ADDRESS_MANAGED_BY_LABEL,
  FAMILY_LABEL,
  type IPAddressRecord,
  type KubernetesObject,
  type ServiceClaim,
} from '../../lib/cluster/kubernetes-objects.ts';
import { SERVICE_READER } from '../../lib/kubernetes/item-reader.ts';
import { servedAddresses } from '../../lib/kubernetes/service-cidrs.ts';
import {
  type AddressFault,
  type AddressView,
  addressFaults,
  MANAGED_BY_API_SERVERS,
  serviceKey,
} from '../../lib/repair/address-faults.ts';
import { isSelected } from '../repair/services.ts';
import { goldenTests } from './golden.ts';

interface IPAddressJson {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>> | null;
  readonly parentRef?: Partial<IPAddressRecord['parent']> | null;
}

interface Scenario {
  readonly serviceCIDRs: readonly { readonly name: string; readonly cidrs: readonly string[] }[] | null;
  readonly services: readonly (KubernetesObject & { readonly ageSeconds: number })[] | null;
  readonly ipAddresses: readonly (IPAddressJson & { readonly ageSeconds: number })[] | null;
  readonly passes: number;
}

interface ExpectedPass {
  readonly events: readonly object[] | null;
  readonly ipAddresses: readonly (IPAddressJson & { readonly kept: boolean })[] | null;
}

const NOW_MS = 1_800_000_000_000;
const NEW = 'created by a pass';

/** Returns the fields of an IPAddress that a repair reads. */
function contentOf({ name, labels, parentRef }: IPAddressJson) {
  const parent = { group: '', resource: '', namespace: '', name: '', ...parentRef };
  return { name, family: labels?.[FAMILY_LABEL] ?? '', managedBy: labels?.[ADDRESS_MANAGED_BY_LABEL] ?? '', parent };
}

function recordOf(json: IPAddressJson & { readonly ageSeconds: number }): readonly [string, IPAddressRecord] {
  const createdAtMs = NOW_MS - json.ageSeconds * 1000;
  return [json.name, { ...contentOf(json), uid: 'uid', resourceVersion: '1', createdAtMs }];
}

/**
 * Applies a correction without a precondition, as upstream does. test/loops/repair-ip-addresses.test.ts tests the writes of this
 * project.
 */
function written(addresses: Map<string, IPAddressRecord>, { item, service, correction }: AddressFault): void {
  if (correction === 'delete') addresses.delete(item);
  if (correction === 'none' || correction === 'delete') return;
  const [namespace = '', name = ''] = service?.split('/') ?? [];
  const labels = { family: familyOf(item) ?? '', managedBy: MANAGED_BY_API_SERVERS };
  const parent = { group: '', resource: 'services', namespace, name };
  addresses.set(item, { name: item, uid: NEW, resourceVersion: '2', createdAtMs: NOW_MS, ...labels, parent });
}

function eventsOf(faults: readonly AddressFault[]): object[] {
  return faults.flatMap(({ finding }) => {
    const { event } = finding?.() ?? {};
    if (event === undefined) return [];
    const { regarding, reason, action, note } = event;
    const { kind, namespace, name } = regarding;
    const object = namespace === '' ? name : serviceKey({ namespace, name });
    return [{ regarding: `${kind} ${object}`, type: 'Warning', reason, action, note }];
  });
}

/**
 * The one difference: no IPAddress is deleted or replaced before it is as old as the longest request of an API server. Upstream
 * waits for 60 s, 5 s or not at all.
 */
const SETTLED_AFTER_SECONDS = 65;

function isSettled({ record }: AddressFault): boolean {
  return record === undefined || record.createdAtMs <= NOW_MS - SETTLED_AFTER_SECONDS * 1000;
}

/** Returns what is expected of the other addresses than `items`. */
function without(items: ReadonlySet<string>, { events, ipAddresses }: ExpectedPass) {
  const names = ({ note, regarding }: Readonly<Record<string, string>>) =>
    `${note?.replaceAll(']:', ' ')} ${regarding}`.split(/[\s:,]\s|\s/);
  return {
    events: (events ?? []).filter((event) => !names(Object(event)).some((name) => items.has(name))),
    ipAddresses: (ipAddresses ?? []).filter(({ name }) => !items.has(name)),
  };
}

/** Returns the JSON of the objects in alphabetical order, because any order of the objects is correct. */
function inOrder(objects: readonly object[] | null): string[] {
  return (objects ?? []).map((object) => JSON.stringify(object, Object.keys(object).sort())).sort();
}

/** Returns one text for an IPAddress after a pass, and whether the pass kept it. */
function summaryOf({ name, family, managedBy, parent }: ReturnType<typeof contentOf>, kept: boolean): object {
  return { name, family, managedBy, kept, parent: `${parent.group}/${parent.resource}/${serviceKey(parent)}` };
}

goldenTests<Scenario, readonly ExpectedPass[]>(
  'repair-ip-addresses.jsonl',
  'the repair has the results of upstream: $scenario.name',
  ({ scenario, expected }) => {
    const cidrs = (scenario.serviceCIDRs ?? []).map(({ name, cidrs: texts }) => ({
      name,
      networks: texts.map(parseCidr).filter((network) => network !== undefined),
    }));
    const services = (scenario.services ?? []).map((service) => ({
      ...SERVICE_READER.fromJson(service),
      createdAtMs: NOW_MS - service.ageSeconds * 1000,
    }));
    const addresses = new Map((scenario.ipAddresses ?? []).map(recordOf));
    // A pass lists Services with cluster IPs, and also reads those that IPAddresses reference.
    const referenced = new Set([...addresses.values()].map(({ parent }) => serviceKey(parent)));
    const isRead = (service: ServiceClaim) =>
      isSelected(service, 'withClusterIPs') || referenced.has(serviceKey(service));
    const waiting = new Set<string>();
    const answers = expected.map(() => {
      const view: AddressView = {
        services: new Map(services.filter(isRead).map((service) => [serviceKey(service), service])),
        addresses,
        isServed: servedAddresses(cidrs),
      };
      const faults = [...addressFaults(view)];
      for (const fault of faults) {
        if (isSettled(fault)) written(addresses, fault);
        else waiting.add(fault.item);
      }
      return { faults: faults.filter(isSettled), addresses: [...addresses.values()] };
    });
    expect(answers).toHaveLength(scenario.passes);
    for (const item of waiting) expect(addresses.get(item)).toMatchObject({ uid: 'uid' });
    expect(
      answers.map(({ faults, addresses: after }) => ({
        events: inOrder(eventsOf(faults.filter(({ item }) => !waiting.has(item)))),
        addresses: inOrder(
          after.filter(({ name }) => !waiting.has(name)).map((each) => summaryOf(each, each.uid !== NEW)),
        ),
      })),
    ).toEqual(
      expected.map((pass) => {
        const { events, ipAddresses } = without(waiting, pass);
        const summaries = ipAddresses.map((each) => summaryOf(contentOf(each), each.kept));
        return { events: inOrder(events), addresses: inOrder(summaries) };
      }),
    );
  },
);
