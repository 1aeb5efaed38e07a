import { parse } from 'yaml';
import type { Action, Story } from './play-page.ts';

const SHOP = '/api/v1/namespaces/shop/services';
const FUNCTION = 'kube-bootstrap-controller-prod-allocate:live';
const nothing: Action = () => undefined;

/**
 * Returns the story of a cluster that allocates through the table and has one Service.
 * @param serviceFile The file of a Service on the page.
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
      'kbctl get holds prod-eu-1': /10\.0\.0\.(?!9$)\d+$/m,
    },
    elsewhere: {
      [`aws lambda invoke --function-name ${FUNCTION} --payload file://request.json --cli-binary-format raw-in-base64-out answer.json`]:
        nothing,
      [`cd examples && go run . ${FUNCTION} prod-eu-1 shop-7f3a`]: nothing,
      [`python examples/allocate.py ${FUNCTION} prod-eu-1 shop-7f3a`]: nothing,
      'kubectl apply -f edge.yaml': ({ call }) => call('POST', SHOP, parse(serviceFile) as object),
    },
  };
}
