import { parse } from 'yaml';
import { fromBits } from '../../lib/allocator/snapshot-bytes.ts';
import { rangeAllocationToStorage } from '../../lib/exchange/range-allocation.ts';
import type { TaskWorld } from '../support/task-world.ts';
import type { Action, Story } from './play-page.ts';

const SHOP = '/api/v1/namespaces/shop/services';
const ADDRESSES = '10.0.0.0/24';
const FUNCTION = 'kube-bootstrap-controller-prod-allocate';
const nothing: Action = () => undefined;

/**
 * Returns the story of a cluster that allocates through the table and has one Service. Its page also imports the bitmap of
 * another cluster.
 * @param serviceFile that the page shows.
 */
export function allocatingStory(serviceFile: string): Story {
  return {
    async begins(world) {
      world.allocateBy(world.tableAllocation);
      await world.begin({ allocator: 'table' });
      await world.tick();
      const web = { clusterIP: '10.0.0.77', ports: [{ port: 80 }] };
      await world.call('POST', SHOP, { metadata: { name: 'web' }, spec: web });
      await world.tick();
    },
    random: {
      'kbctl allocate ip prod-eu-1 --hold 1h --owner shop': /^10\.0\.0\.\d+$/m,
      'kbctl get holds prod-eu-1': /10\.0\.0\.(?!9 )\d+(?= )/,
    },
    elsewhere: {
      [`aws lambda invoke --function-name ${FUNCTION} --payload file://request.json --cli-binary-format raw-in-base64-out answer.json`]:
        nothing,
      [`cd examples && go run . ${FUNCTION} prod-eu-1 shop-7f3a`]: nothing,
      [`python examples/allocate.py ${FUNCTION} prod-eu-1 shop-7f3a`]: nothing,
      'kubectl apply -f edge.yaml': ({ call }) => call('POST', SHOP, parse(serviceFile) as object),
      'etcdctl get --print-value-only /registry/ranges/serviceips > serviceips': (world) =>
        printFromEtcd(world, 'serviceips', ADDRESSES, [0, 11, 76]),
      'etcdctl get --print-value-only /registry/ranges/servicenodeports > servicenodeports': async (world) => {
        await printFromEtcd(world, 'servicenodeports', '30000-32767', [31, 80, 81]);
        const ports = [{ port: 80, nodePort: 30_031 }];
        world.restoreService('legacy', '10.0.0.12', { type: 'NodePort', ports });
      },
      'etcdctl put /registry/ranges/servicenodeports < servicenodeports': nothing,
    },
  };
}

/** As etcdctl prints a value: with a newline at its end. */
async function printFromEtcd(world: TaskWorld, name: string, range: string, bits: readonly number[]): Promise<void> {
  const bytes = rangeAllocationToStorage({ range, data: fromBits(bits) });
  const { code } = await world.run(`{ base64 -d <<< ${Buffer.from(bytes).toString('base64')}; echo; } > ${name}`);
  if (code !== 0) throw new Error(`${name} was not written`);
}
