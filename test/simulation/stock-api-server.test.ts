import { type Asked, type StockCluster, stockAllocationContract } from '../contract/stock-allocation.ts';
import { stockCidr, stockRecord } from '../support/stock-objects.ts';
import { Chance } from './clock.ts';
import { ControlPlane, isIPv6, type StoredService } from './control-plane.ts';
import { type Admission, addressesOf, parentOf, StockApiServer } from './stock-api-server.ts';

const NAMESPACE = 'default';
const LATER_MS = 10_000;

function standIn(): StockCluster {
  const plane = new ControlPlane();
  const api = new StockApiServer(plane, new Chance(1));
  let nowMs = 0;
  plane.nowMs = () => nowMs;
  const admission =
    ({ isRefused }: Asked): Admission =>
    async () =>
      isRefused ? 'refused' : 'allowed';
  const find = (name: string) => plane.find<StoredService>('services', NAMESPACE, name);
  const atOnce = async () => {};
  const createCidr = async (name: string, ...cidrs: readonly string[]) => {
    plane.place('servicecidrs', { ...stockCidr(...cidrs), metadata: { name } });
  };
  void createCidr('kubernetes', '10.0.0.0/24', 'fd00:10::/112');
  return {
    async create(name, wanted, asked = {}) {
      const metadata = { namespace: NAMESPACE, name, ...(asked.isFinalized && { finalizers: ['example.com/waits'] }) };
      const service: StoredService = {
        apiVersion: 'v1',
        kind: 'Service',
        metadata,
        spec: { type: 'ClusterIP', ports: [] },
      };
      return (await api.create(service, wanted, admission(asked), asked.isDryRun)).outcome;
    },
    async change(name, families, asked = {}) {
      const before = find(name) as StoredService;
      const has = addressesOf(before);
      const added = families.filter((family) => !has.some((address) => isIPv6(address) === (family === 'IPv6')));
      const changed =
        added.length > 0
          ? api.upgrade(before, added, admission(asked), asked.isDryRun)
          : api.downgrade(before, families.length, admission(asked), atOnce);
      return (await changed).outcome;
    },
    remove: (name) => api.remove(NAMESPACE, name, atOnce),
    removeFinalizer: (name) => api.finalize(NAMESPACE, name, atOnce),
    addressesOf: async (name) => {
      const service = find(name);
      return service && addressesOf(service);
    },
    records: async () =>
      Object.fromEntries(
        api.addresses().map((record) => {
          const { resource } = record.spec.parentRef;
          return [record.metadata.name, `${resource} ${parentOf(record)}`];
        }),
      ),
    async placeRecord(address, parent) {
      const managed = stockRecord(address, `${NAMESPACE}/${parent}`);
      const parentRef = { group: 'example.com', resource: 'holds', namespace: '', name: 'held' };
      const other = { ...managed, metadata: { name: address }, spec: { parentRef } };
      plane.place('ipaddresses', parent === undefined ? other : managed);
    },
    removeRecord: async (address) => plane.remove('ipaddresses', '', address),
    createCidr,
    removeCidr: async (name) => plane.remove('servicecidrs', '', name),
    repair: async () => {
      nowMs += LATER_MS;
      api.repair();
    },
    eventually: (check) => check(),
  };
}

stockAllocationContract('the stand-in of the simulation', standIn());
