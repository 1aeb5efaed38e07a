import { beforeEach, expect, test } from '@jest/globals';
import { LOOPS } from '../../lib/spec/cluster-spec.ts';
import { aMisbehavingWorld, type MisbehavingWorld } from './misbehaving-world.ts';

let world: MisbehavingWorld;

beforeEach(async () => {
  world = await aMisbehavingWorld();
});

/* test/kubernetes has the other faults. */
test.each(LOOPS)(
  'a pass of %s fails and changes nothing if the API server does not answer before the deadline of the pass, and the next pass succeeds',
  async (loop) => {
    let asked = false;
    world.cluster.misbehave(() => {
      if (!asked) world.expireDeadlines();
      asked = true;
      return { hang: true };
    });
    const pattern = /https.* did not answer "(get|list) .*" before the deadline of the pass/;
    await world.expectFailedPass(loop, pattern);
    await world.expectFirstFailure(loop, 'DeadlineExceeded', pattern);
    await world.cluster.recover();
    await world.expectNextPass(loop);
  },
);

/* Bodies that no API server sends with the status 200. */
test.each(['{}', '<html>Welcome</html>', '[]'])(
  'passes fail and free or remove nothing if an API server answers each request with 200 and %s',
  async (body) => {
    for (const loop of LOOPS) expect(await world.tick(loop)).toMatchObject({ failed: 0 });
    const before = await world.state();
    expect(JSON.stringify(before)).toMatch(/10\.9\.8\.7.*ranges\/serviceips/);
    world.cluster.misbehave(() => ({ body }));
    for (let pass = 0; pass < 4; pass += 1) {
      for (const loop of LOOPS) expect(await world.tick(loop)).toMatchObject({ failed: 1 });
    }
    expect(await world.state()).toEqual(before);
  },
);
