const production = process.argv.includes('--production');

/**
 * Run twice: with the tests, and as `--production` without them, where an export that only tests use is unused. What its
 * own file uses, too, has a user there.
 * @type {import('knip').KnipConfig}
 */
export default {
  entry: [
    'functions/*.ts!',
    'cli/main.ts!',
    'deploy/esbuild-plugins.ts!',
    'deploy/resources.cjs!',
    'tools/*.mjs!',
    'tools/{audit-lock,bench,bench/repair-passes,bench/tick-passes,mutants,mutants/worker,release,write-docs}.ts!',
    'test/**/*.test.ts',
    // Run by a process of their own.
    'test/deploy/name-server.ts',
    'test/hostile/count-steps.ts',
    'test/hostile/passes-at-bounds.ts',
    'test/simulation/{simulate,stand-in-http-client}.ts',
  ],
  project: ['{functions,lib,cli,local,tools,deploy}/**/*.{ts,mjs,cjs}!', 'test/**/*.ts'],
  ignoreExportsUsedInFile: production || { interface: true, type: true },
  ignoreBinaries: ['go', 'mkfifo', 'sha256sum'],
  ignoreDependencies: ['@swc/core', 'node24'],
};
