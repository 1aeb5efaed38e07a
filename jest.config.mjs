const common = {
  rootDir: import.meta.dirname,
  transform: {},
  extensionsToTreatAsEsm: ['.ts'],
  testEnvironment: 'node',
};

/** What `unit` leaves to the other projects. */
const apart = ['conformance', 'deploy', 'page'].map((folder) => `<rootDir>/test/${folder}/`);

/**
 * `unit` needs nothing but npm; `conformance` a real kube-apiserver and etcd; `deploy` those and the AWS emulator; `page`
 * a Chromium.
 */
export default {
  // By default one core would be left idle, half of a small machine.
  maxWorkers: '100%',
  // No test waits for it: it ends one that hangs, also on a machine that is busy with something else.
  testTimeout: 60_000,
  projects: [
    {
      ...common,
      displayName: 'unit',
      testMatch: ['<rootDir>/test/**/*.test.ts'],
      testPathIgnorePatterns: ['/node_modules/', ...apart],
    },
    { ...common, displayName: 'conformance', testMatch: ['<rootDir>/test/conformance/**/*.test.ts'] },
    { ...common, displayName: 'deploy', testMatch: ['<rootDir>/test/deploy/**/*.test.ts'] },
    { ...common, displayName: 'page', testMatch: ['<rootDir>/test/page/**/*.test.ts'] },
  ],
};
