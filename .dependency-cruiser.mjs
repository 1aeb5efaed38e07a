import { createRequire } from 'node:module';

/**
 * The allowed imports between folders: arrows go one way. A folder may always import itself; any other import is
 * forbidden, and so is a folder of `lib` without a line here.
 */
const values = ['lib/allocator', 'lib/util', 'lib/spec'];
const facts = [...values, 'lib/cluster'];
const decisions = [...facts, 'lib/leases', 'lib/range', 'lib/repair', 'lib/endpoints'];
const ports = ['lib/table', 'lib/kubernetes', 'lib/aws', 'lib/telemetry'];
const arrows = {
  'lib/allocator': [],
  'lib/util': ['lib/allocator'],
  'lib/spec': ['lib/allocator', 'lib/util'],
  'lib/cluster': values,
  'lib/leases': facts,
  'lib/range': facts,
  'lib/repair': [...facts, 'lib/range'],
  'lib/endpoints': [...facts, 'lib/leases'],
  'lib/table': [...facts, 'lib/leases', 'lib/range', 'lib/aws'],
  'lib/kubernetes': facts,
  'lib/aws': [...facts, 'lib/kubernetes'],
  'lib/telemetry': facts,
  'lib/api-servers': [...facts, 'lib/leases', 'lib/endpoints', 'lib/table', 'lib/kubernetes', 'lib/telemetry'],
  'lib/loops': [...decisions, 'lib/api-servers', 'lib/table', 'lib/kubernetes'],
  'lib/runtime': [...facts, ...ports, 'lib/leases', 'lib/api-servers'],
  'lib/dispatch': [...facts, ...ports, 'lib/leases', 'lib/api-servers', 'lib/loops', 'lib/runtime'],
  'lib/deregister': [
    ...facts,
    ...ports,
    'lib/leases',
    'lib/endpoints',
    'lib/api-servers',
    'lib/runtime',
    'lib/dispatch',
  ],
  'lib/allocate': [...facts, 'lib/range', 'lib/table', 'lib/kubernetes', 'lib/telemetry', 'lib/runtime'],
  'lib/admission': [...facts, 'lib/range', 'lib/table', 'lib/aws', 'lib/telemetry', 'lib/runtime'],
  'lib/doctor': [
    ...facts,
    ...ports,
    'lib/range',
    'lib/leases',
    'lib/endpoints',
    'lib/api-servers',
    'lib/loops',
    'lib/runtime',
    'lib/dispatch',
  ],
  functions: ['lib'],
  'cli/spec': values,
  local: ['lib', 'cli/spec'],
  cli: ['lib', 'local', 'tools/check-node.mjs'],
};

/** The folders without I/O, a clock or randomness. The linter forbids globals such as `fetch` and `Date` in these folders. */
const linted = createRequire(import.meta.url)('./.oxlintrc.json').overrides;
const pure = linted
  .find(({ rules }) => 'eslint/no-restricted-globals' in rules)
  .files.map((glob) => glob.replace('/**', ''));

/** Packages that open connections, and the only deployed folder that may import each. */
const owners = [
  { name: 'aws-sdk-only-in-its-adapters', packages: '@aws-sdk|@smithy', folder: 'lib/(table|aws)' },
  { name: 'http-only-in-kubernetes', packages: 'https?', folder: 'lib/kubernetes' },
  // client-node runs the plugins of a kubeconfig: no function may contain it. Its types are erased (.oxlintrc.json).
  {
    name: 'kubernetes-client-only-in-local',
    packages: '@kubernetes/client-node',
    folder: 'lib/(cluster|kubernetes)',
  },
  { name: 'powertools-only-in-telemetry', packages: '@aws-lambda-powertools', folder: 'lib/telemetry' },
];

const packagePath = (names) => `(^|/)(node_modules/)?(${names})(/|$)`;
/** Matches folders, or single files. */
const anyOf = (paths) =>
  `^(${paths.map((path) => (path.endsWith('.mjs') ? path.replace('.', '\\.') : `${path}/`)).join('|')})`;

const layers = Object.entries(arrows).map(([folder, allowed]) => ({
  name: `arrows-of-${folder.replace('/', '-')}`,
  severity: 'error',
  from: { path: `^${folder}/` },
  to: { path: '^(functions|lib|cli|local|test|tools)/', pathNot: anyOf([folder, ...allowed]) },
}));

const clients = owners.map(({ name, packages, folder }) => ({
  name,
  severity: 'error',
  from: { path: '^(lib|functions)/', pathNot: `^${folder}/` },
  to: { path: packagePath(packages) },
}));

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    ...layers,
    ...clients,
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'folder-without-arrows',
      severity: 'error',
      from: {},
      to: { path: '^lib/', pathNot: anyOf(Object.keys(arrows)) },
    },
    {
      name: 'pure-imports-no-node-builtin',
      severity: 'error',
      from: { path: anyOf(pure) },
      // The functions of node:util only compute.
      to: { dependencyTypes: ['core'], pathNot: '^util$' },
    },
    {
      name: 'pure-imports-only-what-computes',
      severity: 'error',
      from: { path: anyOf(pure) },
      to: {
        pathNot: ['^(lib|cli/spec)/', packagePath('fastest-levenshtein|ipaddr\\.js|yaml|zod|@kubernetes/client-node')],
        dependencyTypesNot: ['core'],
      },
    },
    {
      name: 'embedded-table-is-never-deployed',
      severity: 'error',
      from: { path: '^(lib|functions)/' },
      to: { path: packagePath('dynalite') },
    },
    {
      name: 'imports-resolve',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'types', 'default'] },
  },
};
