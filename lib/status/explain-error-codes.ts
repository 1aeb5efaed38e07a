import { APPLY_SPEC, DOCTOR, type Entry, HOLDS, REBUILD, RUNS, step } from './explanation.ts';

const REPEATS = step('If it stays, run the checks.', 'kbctl doctor <cluster>');
const REDEPLOY = step('Deploy again.', 'npm run deploy');
const OWNER = step('See the owner.', 'kbctl cluster get <cluster>');
const RUN_PASSES = step(
  'Run the passes.',
  'kbctl run-once cluster-ip-repair <cluster>',
  'kbctl run-once node-port-repair <cluster>',
);
const STATUS = step('If it stays, check the passes.', 'kbctl status <cluster>');

const FAILS = { severity: 'action required', alarm: 'clusters-failing' } as const;
const ACTION_REQUIRED = { severity: 'action required' } as const;
const RESOLVES = { severity: 'resolves automatically' } as const;

/** Codes of the table, or of table and API server alike. */
const OF_THE_TABLE = {
  TableMissing: {
    title: 'The table does not exist',
    what: 'It is not in this region and account.',
    causes: ['Its name or region is wrong.', 'The stack is not deployed, or the table was deleted.'],
    resolution: [step('List the tables, then correct the name or deploy the stack.', 'aws dynamodb list-tables')],
    ...FAILS,
    hint: 'correct the table name or the region, or deploy the stack',
  },
  AccessDenied: {
    title: 'AWS denied access to the table',
    what: 'The error names the action.',
    causes: [
      'The credentials expired, or are of another account.',
      'The role, or a policy above it, does not allow the action.',
    ],
    resolution: [
      step('See your identity.', 'aws sts get-caller-identity'),
      step('Allow the action; `deploy/roles.ts` has the roles of the functions.'),
    ],
    ...FAILS,
    hint: 'allow the action that the error names',
  },
  Throttled: {
    title: 'The table or the API server throttled requests',
    what: 'Retries failed until the deadline; a write may have been made.',
    causes: [
      'The API server is busy, or gives this user little priority.',
      'The table, the account or the secret store is at its limits.',
    ],
    resolution: [step('If it stays, raise the limits that the error names.')],
    ...RESOLVES,
    hint: 'no action, unless it stays: then raise the limits that the error names',
  },
  Unavailable: {
    title: 'The table or the API server cannot be reached',
    what: 'No connection, no DNS answer, or a status of 500 or above; a write may have been made.',
    causes: [
      'The API server is down, or its URL is unreachable from the functions.',
      'A security group, route or firewall blocks it.',
      'The VPC has no endpoint or NAT gateway to AWS.',
    ],
    resolution: [DOCTOR],
    ...FAILS,
    hint: 'kbctl doctor <cluster> shows what cannot be reached',
  },
  DeadlineExceeded: {
    title: 'The deadline of the pass was exceeded',
    what: 'The error names the call; a write may have been made.',
    causes: [
      'The API server or the table answers slowly.',
      'There are many Services, and the function has too little memory.',
      'A tick had too many clusters.',
    ],
    resolution: [REPEATS, step('Raise `memorySize` in `serverless.yml`, or the parameter `tickConcurrency`.')],
    ...RESOLVES,
    hint: 'no action, unless it stays: then kbctl doctor <cluster>',
  },
  ItemTooLarge: {
    title: 'An item is larger than 400 KB',
    what: 'A range has too many holds, or a spec is too long. Nothing was written.',
    resolution: [HOLDS],
    ...FAILS,
    hint: 'release holds that are not needed: kbctl get holds <cluster>',
  },
  SchemaTooNew: {
    title: 'A later version wrote an item',
    what: 'An upgrade was rolled back, or two stacks have different versions. Nothing was written.',
    resolution: [step('Use the later version here and in the stack.', 'npm run deploy')],
    ...FAILS,
    hint: 'deploy the later version again',
  },
  Corrupt: {
    title: 'An item in the table does not parse',
    what: 'The error names the item, which stays unchanged.',
    causes: ['It was edited, or restored only in part.'],
    resolution: [
      step('Spec: apply it again. Lease or run record: delete the item.', 'kbctl cluster apply -f cluster.yml'),
      REBUILD,
    ],
    ...FAILS,
    hint: 'apply the spec again, or rebuild the range: the error names the item',
  },
  Contended: {
    title: 'Other writers wrote the same item first',
    what: 'Many Services are being created, or passes overlap. Nothing was overwritten.',
    resolution: [REPEATS],
    ...RESOLVES,
    hint: 'no action: the next pass tries again',
  },
  OwnedElsewhere: {
    title: 'The cluster belongs to another stack',
    what: 'Nothing was changed. Only the owner changes its spec.',
    causes: ['The `cluster.yml` of that stack registers it.', 'The command names the wrong stack or table.'],
    resolution: [OWNER, step('Change it there, or take it over.', 'kbctl cluster take-over <cluster> --stack <stack>')],
    ...ACTION_REQUIRED,
    hint: 'change it in the stack that kbctl cluster get <cluster> names, or take it over',
  },
  ChangedMeanwhile: {
    title: 'The spec changed after you compared it',
    what: 'Another user or stack applied a spec at the same time. Yours was not written.',
    resolution: [
      step(
        'Compare again, then apply.',
        'kbctl cluster apply -f cluster.yml --dry-run',
        'kbctl cluster apply -f cluster.yml',
      ),
    ],
    ...ACTION_REQUIRED,
    hint: 'compare again, then apply: kbctl cluster apply -f cluster.yml --dry-run',
  },
  Unexpected: {
    title: 'An unexpected error',
    what: 'A `TypeError` or the like, or an unknown answer of AWS.',
    causes: ['A defect of this project.', 'The keys of the table are not `cluster` and `key`.'],
    resolution: [RUNS, step('Report it with its stack trace from the log.')],
    ...FAILS,
    hint: 'read the error with kbctl get runs <cluster> -o yaml, and report it',
  },
} as const satisfies Readonly<Record<string, Entry>>;

/** Codes of the API server and of the connection to it. */
const OF_THE_API_SERVER = {
  Unauthorized: {
    title: 'The API server does not accept the credential (401)',
    what: 'The kubeconfig was read again, and refused again.',
    causes: [
      'The token expired, or its service account was deleted.',
      'The kubeconfig is of another cluster.',
      'With `webIdentity`: the AuthenticationConfiguration of the API server has another issuer, audience or role.',
    ],
    resolution: [
      step(
        'Create a token and replace the kubeconfig (docs/kubeconfig-secret.md). It is read within a minute.',
        'kubectl create token kube-bootstrap-controller -n kube-system --duration=2160h',
      ),
    ],
    ...FAILS,
    hint: 'replace the kubeconfig by one with a valid token, see docs/kubeconfig-secret.md',
  },
  Forbidden: {
    title: 'The credential lacks a permission (403)',
    what: 'The error names the verb and the resource.',
    causes: ['The roles in the cluster are of an older version.', 'The kubeconfig is of another user.'],
    resolution: [step('Apply the roles of this version.', 'kubectl apply -f deploy/rbac.yaml'), DOCTOR],
    ...FAILS,
    hint: 'kubectl apply -f deploy/rbac.yaml',
  },
  TlsFailure: {
    title: 'The certificate of the API server is not valid',
    what: 'No request was sent.',
    causes: ['It lacks the host of the server URL, has expired, or is of another CA.', 'A proxy terminates TLS.'],
    resolution: [DOCTOR, step('Correct the CA or the server URL in the kubeconfig.')],
    ...FAILS,
    hint: 'correct the CA or the server URL in the kubeconfig',
  },
  MalformedReply: {
    title: 'The answer is not from a Kubernetes API server',
    what: 'It is not JSON, of another kind, or incomplete.',
    causes: ['The server URL of the kubeconfig is wrong.', 'A proxy changes answers.'],
    resolution: [step('See what answers.', "kubectl get --raw '/version'"), DOCTOR],
    ...FAILS,
    hint: 'correct the server URL in the kubeconfig',
  },
  ReplyTooLarge: {
    title: 'The answer of an API server is too large',
    what: 'The limits are 2 MiB for an object, and 256 MiB and 200,000 Services for the list. Nothing was changed.',
    causes: [
      'The server URL leads to another, perhaps hostile, server.',
      'An object is larger than any API server stores.',
    ],
    resolution: [
      step('Measure the list.', "kubectl get --raw '/api/v1/services' | wc -c"),
      step('Remove the object, or correct the server URL.'),
    ],
    ...FAILS,
    hint: 'remove the object that is too large, or correct the server URL in the kubeconfig',
  },
  Rejected: {
    title: 'The API server rejected a request',
    what: 'The error has its message. That request changed nothing.',
    causes: [
      'An admission webhook or policy refuses it.',
      'The API server is too old.',
      'A name in `systemNamespaces` is not valid.',
    ],
    resolution: [
      RUNS,
      step('List the webhooks.', 'kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations'),
    ],
    ...FAILS,
    hint: 'kbctl get runs <cluster> shows the message of the API server',
  },
  BadKubeconfig: {
    title: 'The kubeconfig cannot be used',
    what: 'It cannot be read, does not parse, or uses a refused feature: `exec`, files, a proxy, http.',
    causes: [
      'The secret does not exist in this region.',
      'The functions may not read it: its name must start with `secretsPrefix`.',
      'It refers to files or commands.',
    ],
    resolution: [
      DOCTOR,
      step(
        'Create a self-contained one and store it (docs/kubeconfig-secret.md).',
        'kubectl config view --minify --raw --flatten',
      ),
    ],
    ...FAILS,
    hint: 'kbctl doctor <cluster> shows what is wrong; see docs/kubeconfig-secret.md',
  },
} as const satisfies Readonly<Record<string, Entry>>;

/** Codes of decisions and writes of a loop. `Full`, `Unknown`, `CorruptSnapshot` and `NoLiveLease` are explained as findings. */
const OF_THE_LOOPS = {
  BadRange: {
    title: 'A range in the spec is not valid',
    what: 'It does not parse, or both ranges are of one family. Nothing was repaired.',
    resolution: [APPLY_SPEC],
    ...FAILS,
    hint: 'correct serviceClusterIPRange or serviceNodePortRange in the spec, and apply it',
  },
  OlderSpec: {
    title: 'The spec changed during the pass',
    what: 'Nothing was written.',
    causes: ['The spec was applied.', 'Two stacks use the table with different specs.'],
    resolution: [step('If it stays, see the owner.', 'kbctl cluster get <cluster>')],
    ...RESOLVES,
    hint: 'no action: the next pass reads the new spec',
  },
  Conflict: {
    title: 'Another writer changed an object first',
    what: 'The kubernetes Service, its Endpoints or its EndpointSlice was not overwritten.',
    causes: ['A user or controller wrote it at the same time.', 'Two owners write the endpoints: see `twoOwners`.'],
    resolution: [REPEATS],
    ...RESOLVES,
    hint: 'no action: the next pass tries again',
  },
  AlreadyExists: {
    title: 'Another writer created an object first',
    what: 'An API server that starts creates the same objects.',
    resolution: [REPEATS],
    ...RESOLVES,
    hint: 'no action: the next pass reads it',
  },
  Invalid: {
    title: 'The API server refused an object as invalid',
    what: 'The error has its message. The finding `invalid` is unrelated.',
    causes: [
      'The first address of `serviceClusterIPRange` is taken or not allowed.',
      '`service.nodePort` is taken or not allowed.',
      'The cluster does not have the IP family of the Service.',
    ],
    resolution: [RUNS, step('See which Service has the address.', 'kbctl show ip <cluster> <item>'), APPLY_SPEC],
    ...FAILS,
    hint: 'kbctl get runs <cluster> shows the message of the API server; correct the spec or the conflicting Service',
  },
  NamespaceUnavailable: {
    title: 'The namespace `default` does not exist',
    what: 'The kubernetes Service needs it. The loop `system-namespaces` creates it.',
    causes: ['The cluster is new.', 'It is being deleted, or missing in `systemNamespaces`.'],
    resolution: [step('Create it, if it does not appear.', 'kubectl create namespace default')],
    ...RESOLVES,
    hint: 'no action: the loop system-namespaces creates it; otherwise kubectl create namespace default',
  },
  LeaseNotFound: {
    title: 'The address has no valid lease',
    what: 'It expired, was deregistered before, or is another address.',
    resolution: [step('List the leases.', 'kbctl get leases <cluster>')],
    severity: 'information',
    hint: 'no action, if the address is right: kbctl get leases <cluster>',
  },
  NotRegistered: {
    title: 'The cluster is not registered',
    what: 'Nothing was done.',
    causes: ['The name or the table is wrong.', 'The cluster was removed.'],
    resolution: [step('List the clusters, or register it.', 'kbctl cluster get', 'kbctl cluster apply -f cluster.yml')],
    ...ACTION_REQUIRED,
    hint: 'kbctl cluster get shows the names; kbctl cluster apply registers one',
  },
  BadEvent: {
    title: 'A function got a payload that is not valid',
    what: 'The error shows what it expects.',
    resolution: [step('Correct the payload.')],
    ...ACTION_REQUIRED,
    hint: 'correct the payload, see the error',
  },
  BadEnvironment: {
    title: 'An environment variable of a function is missing or wrong',
    what: '`serverless.yml` sets all of them.',
    resolution: [REDEPLOY],
    ...ACTION_REQUIRED,
    hint: 'deploy again: npm run deploy',
  },
} as const satisfies Readonly<Record<string, Entry>>;

/** Why a range refuses to allocate or release. `Full` is explained as a finding. */
const OF_RANGES = {
  AlreadyAllocated: {
    title: 'The address or port is taken',
    what: 'Nothing was allocated.',
    causes: [
      'A Service has it.',
      'It is held for another owner, or was until the last pass.',
      'It leaked: the third pass frees it.',
    ],
    resolution: [
      step('See its owner, and take another.', 'kbctl show ip <cluster> <item>'),
      step('If it is held without need, release it.', 'kbctl release ip <cluster> <item>'),
    ],
    ...ACTION_REQUIRED,
    hint: 'kbctl show <kind> <cluster> <item> shows its owner; take another',
  },
  NotInRange: {
    title: 'The address or port is outside the range',
    what: 'Nothing was allocated. Network and broadcast address do not count.',
    causes: ['The request names a wrong address, cluster or range.', 'The range was changed.'],
    resolution: [step('See the ranges.', 'kbctl get ranges <cluster>')],
    ...ACTION_REQUIRED,
    hint: 'request one inside the ranges: kbctl get ranges <cluster>',
  },
  MismatchedRange: {
    title: 'The stored range differs from the spec',
    what: 'A pass in `enforce` must save the new range first.',
    causes: ['The spec was applied, or the table restored.', 'Passes are paused, fail, or only observe.'],
    resolution: [RUN_PASSES, STATUS],
    ...RESOLVES,
    hint: 'run a pass in enforce: kbctl run-once cluster-ip-repair <cluster>, or node-port-repair',
  },
  NotReady: {
    title: 'Nothing can be allocated or released in the range yet',
    what: 'A pass in `enforce` must save the range after each change, and have succeeded within three intervals.',
    causes: [
      'The cluster is new, or its spec or ranges were changed.',
      'Passes are paused, fail, or only observe.',
      'With `allocator: apiserver`, only the API servers allocate.',
    ],
    resolution: [RUN_PASSES, STATUS],
    ...RESOLVES,
    hint: 'run a pass in enforce: kbctl run-once cluster-ip-repair <cluster>, or node-port-repair',
  },
  BadHold: {
    title: 'The hold is not valid',
    what: 'Its end is past, or its owner is not 1 to 63 of `A-Z a-z 0-9 - _ .`. Nothing was allocated.',
    causes: ['The clock of the caller is wrong.', 'An old request was sent again.'],
    resolution: [step('Send a new request id with a later end, or another owner.')],
    ...ACTION_REQUIRED,
    hint: 'request a later end, or another owner',
  },
  NotHeld: {
    title: 'The address or port is not held as the request expects',
    what: 'It has no hold, or another one. It was not changed.',
    causes: ['A Service claimed it.', 'The hold ended or was released.', 'Another owner holds it.'],
    resolution: [step('See the holds.', 'kbctl get holds <cluster>'), step('If it is free, allocate it again.')],
    ...ACTION_REQUIRED,
    hint: 'kbctl get holds <cluster> shows the holds; allocate it again, if it is free',
  },
  HoldsFull: {
    title: 'A range has no room for more holds',
    what: 'The holds of a range have 64 KB. Nothing was allocated.',
    resolution: [HOLDS, step('Hold several items with one request, for a shorter time.')],
    ...ACTION_REQUIRED,
    hint: 'release holds that are not needed: kbctl get holds <cluster>',
  },
  TooManyUnclaimed: {
    title: 'New Services of a namespace took too much of a range',
    what: 'Until a pass sees them, they may take at most what is left for others. The Service was refused (429).',
    causes: [
      'Services are refused after the webhook, and created again.',
      'Many Services are created at once in a small range.',
      'Repair passes do not run.',
    ],
    resolution: [RUN_PASSES],
    ...RESOLVES,
    hint: 'wait for the next pass, or run it: kbctl run-once cluster-ip-repair <cluster>, or node-port-repair',
  },
} as const satisfies Readonly<Record<string, Entry>>;

/** Why a request is not started. `NotRegistered` is explained above. */
const OF_REQUESTS = {
  ObserveOnly: {
    title: 'The cluster is in mode observe',
    what: 'Nothing was changed.',
    resolution: [
      step(
        'Check what passes would write, then enforce.',
        'kbctl status <cluster>',
        'kbctl cluster set-mode enforce <cluster>',
      ),
    ],
    ...ACTION_REQUIRED,
    hint: 'kbctl cluster set-mode enforce <cluster>, when its passes would write what you expect',
  },
  CallerRefused: {
    title: 'The cluster does not accept this caller',
    what: 'The request has no key from `callerKeys` of the spec. Nothing was changed.',
    causes: ['The request names the wrong cluster.', 'The key was changed.'],
    resolution: [step('Compare the hashes.', 'printf %s "$KEY" | sha256sum', 'kbctl cluster get <cluster>')],
    ...ACTION_REQUIRED,
    hint: 'send a callerKey whose hash is in callerKeys of the spec',
  },
  OtherStack: {
    title: 'Another stack allocates for the cluster',
    what: 'Nothing was changed.',
    resolution: [OWNER],
    ...ACTION_REQUIRED,
    hint: 'invoke the function of the stack that kbctl cluster get <cluster> names',
  },
  NoSecondaryRange: {
    title: 'The cluster has no second range of cluster IPs',
    what: 'Nothing was changed.',
    causes: ['The request names the wrong cluster, or its spec lacks the second range.'],
    resolution: [step('See the ranges.', 'kbctl get ranges <cluster>')],
    ...ACTION_REQUIRED,
    hint: 'request from serviceips: kbctl get ranges <cluster>',
  },
  RequestIdTaken: {
    title: 'Another request has this id',
    what: 'An id is kept for a day, and as long as it holds anything. Nothing was changed.',
    resolution: [step('Give each request its own id.')],
    ...ACTION_REQUIRED,
    hint: 'give each request its own id',
  },
  InProgress: {
    title: 'Another invocation of the same release may still run',
    what: 'Its result is known after 35 seconds at most.',
    resolution: [step('Send it again with the same id at the time in the message.')],
    ...RESOLVES,
    hint: 'send the same request again at the time in the message',
  },
} as const satisfies Readonly<Record<string, Entry>>;

/** Codes that a pass may record or a request may be refused with. */
export const ERROR_CODES = { ...OF_THE_TABLE, ...OF_THE_API_SERVER, ...OF_THE_LOOPS, ...OF_RANGES, ...OF_REQUESTS };
