import './test/support/temporary-files.mjs';

const common = {
  rootDir: import.meta.dirname,
  transform: {},
  extensionsToTreatAsEsm: ['.ts'],
  testEnvironment: 'node',
  // zod's index imports its 64 locales, of which the project uses none. Each test file would load all of them.
  moduleNameMapper: { '^\\.\\./locales/index\\.js$': '<rootDir>/node_modules/zod/v4/locales/en.js' },
};

/** Separate projects, each in a folder of the same name, because they take longer or need more than npm. */
const apart = ['template', 'conformance', 'deploy', 'page', 'tables'];

/**
 * `unit` and `template` need only npm. `conformance` needs a real kube-apiserver and etcd, `deploy` also the AWS emulator, `page`
 * a Chromium, and `tables` other table engines.
 */
export default {
  // By default one core would be left idle, half of a small machine.
  maxWorkers: '100%',
  // Ends a test that hangs, also on a busy machine. More runs of properties take longer.
  testTimeout: 180_000 * Number(process.env['FC_RUNS'] ?? 1),
  // A worker that has run a hundred files takes more than the default 500 ms to free its memory on a busy machine.
  workerGracefulExitTimeout: 10_000,
  // Prints failures and counts: `--reporters default` shows each file, and with `--verbose` each test.
  reporters: [['summary', { summaryThreshold: 0 }]],
  projects: [
    {
      ...common,
      displayName: 'unit',
      testMatch: ['<rootDir>/test/**/*.test.ts'],
      testPathIgnorePatterns: ['/node_modules/', ...apart.map((name) => `<rootDir>/test/${name}/`)],
    },
    ...apart.map((name) => ({ ...common, displayName: name, testMatch: [`<rootDir>/test/${name}/**/*.test.ts`] })),
  ],
};
