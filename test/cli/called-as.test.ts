import { describe, expect, test } from '@jest/globals';
import { calledAs } from '../../cli/commands/run.ts';

describe('the command line that runs kbctl', () => {
  test.each([
    { by: 'npm start', script: '/src/cli/kbctl.mjs', env: { npm_lifecycle_event: 'start' }, as: 'npx kbctl' },
    { by: 'npx', script: '/src/node_modules/.bin/kbctl', env: { npm_lifecycle_event: 'npx' }, as: 'npx kbctl' },
    { by: "a package's own .bin", script: '/src/node_modules/.bin/kbctl', env: {}, as: 'npx kbctl' },
    { by: 'node and its file', script: '/src/cli/kbctl.mjs', env: {}, as: 'npx kbctl' },
    { by: 'its name, installed for all', script: '/usr/local/bin/kbctl', env: {}, as: 'kbctl' },
  ])('is $as when run by $by', ({ script, env, as }) => {
    expect(calledAs(script, env)).toBe(as);
  });
});
