/**
 * The allowed imports between folders: arrows go one way. A folder may always import itself; any other import is
 * forbidden, and so is a folder of `lib` without a line here.
 */
const arrows = {
  'lib/allocator': [],
  'lib/cluster': ['lib/allocator'],
  'lib/range': ['lib/allocator', 'lib/cluster'],
  'lib/repair': ['lib/allocator', 'lib/cluster', 'lib/range'],
  'lib/endpoints': ['lib/allocator', 'lib/cluster'],
  'lib/table': ['lib/allocator', 'lib/cluster', 'lib/range', 'lib/aws'],
  'lib/kubernetes': ['lib/allocator', 'lib/cluster', 'lib/endpoints'],
  'lib/aws': ['lib/cluster', 'lib/kubernetes'],
  'lib/telemetry': ['lib/cluster'],
  'lib/api-servers': ['lib/allocator', 'lib/cluster', 'lib/endpoints', 'lib/table', 'lib/kubernetes', 'lib/telemetry'],
  'lib/loops': [
    'lib/allocator',
    'lib/cluster',
    'lib/range',
    'lib/repair',
    'lib/endpoints',
    'lib/api-servers',
    'lib/table',
    'lib/kubernetes',
  ],
  'lib/runtime': ['lib/cluster', 'lib/table', 'lib/kubernetes', 'lib/aws', 'lib/telemetry'],
  'lib/dispatch': [
    'lib/allocator',
    'lib/cluster',
    'lib/endpoints',
    'lib/table',
    'lib/kubernetes',
    'lib/aws',
    'lib/telemetry',
    'lib/api-servers',
    'lib/loops',
    'lib/runtime',
  ],
  'lib/allocate': [
    'lib/allocator',
    'lib/cluster',
    'lib/range',
    'lib/table',
    'lib/kubernetes',
    'lib/telemetry',
    'lib/runtime',
  ],
  'lib/admission': [
    'lib/allocator',
    'lib/cluster',
    'lib/range',
    'lib/table',
    'lib/aws',
    'lib/telemetry',
    'lib/runtime',
  ],
  'lib/doctor': [
    'lib/allocator',
    'lib/cluster',
    'lib/endpoints',
    'lib/table',
    'lib/kubernetes',
    'lib/aws',
    'lib/telemetry',
    'lib/api-servers',
    'lib/loops',
    'lib/runtime',
    'lib/dispatch',
  ],
  'lib/environment': [
    'lib/cluster',
    'lib/endpoints',
    'lib/api-servers',
    'lib/table',
    'lib/kubernetes',
    'lib/aws',
    'lib/telemetry',
    'lib/runtime',
    'lib/dispatch',
    'lib/doctor',
  ],
  functions: ['lib'],
  'cli/spec': ['lib/allocator', 'lib/cluster'],
  local: ['lib', 'cli/spec'],
  cli: ['lib', 'local', 'tools/check-node.mjs'],
};

/** These folders have no I/O, no clock and no randomness: their only packages compute. */
const pure = '^(lib/(allocator|cluster|range|repair|endpoints)|cli/spec)/';

/** Packages that open connections, and the only deployed folder that may import each. */
const owners = [
  { name: 'aws-sdk-only-in-its-adapters', packages: '@aws-sdk|@smithy', folder: 'lib/(table|aws)' },
  { name: 'http-only-in-kubernetes', packages: 'https?', folder: 'lib/kubernetes' },
  // client-node runs the plugins of a kubeconfig: no function may contain it. Its types are erased (.oxlintrc.json).
  {
    name: 'kubernetes-client-only-in-local',
    packages: '@kubernetes/client-node',
    folder: 'lib/(cluster|endpoints|kubernetes)',
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
      from: { path: pure },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'pure-imports-only-what-computes',
      severity: 'error',
      from: { path: pure },
      to: {
        pathNot: ['^(lib|cli/spec)/', packagePath('ipaddr\\.js|yaml|zod|@kubernetes/client-node')],
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
