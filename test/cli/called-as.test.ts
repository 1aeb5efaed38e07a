import { expect, test } from '@jest/globals';
import { calledAs } from '../../cli/commands/run.ts';

test.each([
  { by: 'npm start or node', script: '/src/cli/kbctl.mjs', as: 'node cli/kbctl.mjs' },
  { by: 'node, of a clone elsewhere', script: '/my clone/cli/kbctl.mjs', as: "node '../my clone/cli/kbctl.mjs'" },
  { by: 'its name', script: '/usr/local/bin/kbctl', as: 'kbctl' },
])('the command line that runs kbctl is $as when run by $by', ({ script, as }) => {
  expect(calledAs(script, '/src')).toBe(as);
});
