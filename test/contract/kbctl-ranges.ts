import { expect, test } from '@jest/globals';
import { addressesOf, portsOf } from '../support/kbctl-ranges.ts';
import { CLUSTER, documentIn, expectPrinted, type KbctlWorlds, ran, registered } from '../support/kbctl-world.ts';

const HOUR_MS = 3_600_000;

export function describeRanges(worlds: KbctlWorlds): void {
  const world = worlds.each(registered);
  const untilMs = Date.now() + HOUR_MS;

  test('kbctl get holds reports that nothing is held', async () => {
    expect(await world().kbctl(['get', 'holds'])).toEqual(
      ran(0, '', expect.stringMatching(/^There are no holds in the table\. Name a cluster .*\n$/)),
    );
  });

  test('kbctl get holds lists the held items, their owners and the ends of the holds', async () => {
    const { table } = world();
    await world().runAllLoops();
    const ci = { owner: 'ci', untilMs, takenUpBy: 'any', requestId: 'request-1' } as const;
    await (await addressesOf(table)).allocate(['10.0.0.9', '10.0.0.10'], { hold: ci });
    const forGood = { owner: 'balancer', takenUpBy: 'owner' } as const;
    await (await portsOf(table)).allocate(['30080'], { hold: forGood });
    const until = new Date(untilMs).toISOString();
    expect(documentIn(await world().kbctl(['get', 'holds', '-o', 'json']))).toMatchObject({
      kind: 'HoldList',
      items: [
        { cluster: CLUSTER, key: 'ranges/serviceips', items: ['10.0.0.9', '10.0.0.10'], owner: 'ci', until },
        { key: 'ranges/servicenodeports', items: ['30080'], owner: 'balancer' },
      ],
    });
    // No row is padded to the longest list of items.
    const rows = /^RANGE +OWNER +ENDS +TAKEN UP BY +ITEMS\n.* 10\.0\.0\.9,10\.0\.0\.10\n/;
    expectPrinted(await world().kbctl(['get', 'holds', CLUSTER]), 0, rows);
  });
}
