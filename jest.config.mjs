const common = {
  rootDir: import.meta.dirname,
  transform: {},
  extensionsToTreatAsEsm: ['.ts'],
  testEnvironment: 'node',
};

/** `unit` needs nothing but npm; `conformance` a real kube-apiserver and etcd; `deploy` those and the AWS emulator. */
export default {
  reporters: ['default', '<rootDir>/tools/upstream-tests-reporter.ts'],
  projects: [
    {
      ...common,
      displayName: 'unit',
      testMatch: ['<rootDir>/test/**/*.test.ts'],
      testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/conformance/', '<rootDir>/test/deploy/'],
    },
    { ...common, displayName: 'conformance', testMatch: ['<rootDir>/test/conformance/**/*.test.ts'] },
    { ...common, displayName: 'deploy', testMatch: ['<rootDir>/test/deploy/**/*.test.ts'] },
  ],
};
