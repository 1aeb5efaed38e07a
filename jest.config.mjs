const common = {
  rootDir: import.meta.dirname,
  transform: {},
  extensionsToTreatAsEsm: ['.ts'],
  testEnvironment: 'node',
};

/** `unit` needs nothing but npm; `conformance` needs a real kube-apiserver and etcd. */
export default {
  reporters: ['default', '<rootDir>/tools/upstream-tests-reporter.ts'],
  projects: [
    {
      ...common,
      displayName: 'unit',
      testMatch: ['<rootDir>/test/**/*.test.ts'],
      testPathIgnorePatterns: ['/node_modules/', '<rootDir>/test/conformance/'],
    },
    { ...common, displayName: 'conformance', testMatch: ['<rootDir>/test/conformance/**/*.test.ts'] },
  ],
};
