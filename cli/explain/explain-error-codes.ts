import { APPLY_SPEC, DOCTOR, group, HOLDS, OWNER, RANGES, REBUILD, RUNS, step } from './explanation.ts';

const REPEATS = step('If it stays, run the checks.', 'kbctl doctor <cluster>');
const RUN_PASSES = step(
  'Run the passes.',
  'kbctl run-once cluster-ip-repair <cluster>',
  'kbctl run-once node-port-repair <cluster>',
);

const OF_FAILING_PASSES = group(
  { severity: 'action required', alarm: 'clusters-failing' },
  {
    TableMissing: {
      title: 'The table does not exist in this region and account',
      what: 'Its name or region is wrong, the stack is not deployed, or the table was deleted.',
      resolution: [step('List the tables, then correct the name or deploy the stack.', 'aws dynamodb list-tables')],
    },
    AccessDenied: {
      title: 'AWS denied access to the table',
      what: 'The credentials expired or are of another account, or a policy does not allow the action in the error.',
      resolution: [
        step('See your identity.', 'aws sts get-caller-identity'),
        step('Allow the action; `deploy/roles.ts` has the roles of the functions.'),
      ],
    },
    Unavailable: {
      title: 'The table or the API server cannot be reached',
      what: 'No connection, no DNS answer, or a status of 500 or above; a write may have been made. The API server may be down, or a security group, route, firewall or missing VPC endpoint blocks it.',
      resolution: [DOCTOR],
    },
    ItemTooLarge: {
      title: 'An item is larger than 400 KB',
      what: 'A range has too many holds, or a spec is too long. Nothing was written.',
      resolution: [HOLDS],
    },
    SchemaTooNew: {
      title: 'A later version wrote an item',
      what: 'An upgrade was rolled back, or two stacks have different versions. Nothing was written.',
      resolution: [step('Use the later version here and in the stack.', 'npm run deploy')],
    },
    Corrupt: {
      title: 'An item in the table does not parse',
      what: 'It was edited, or restored only in part. The error names the item, which stays unchanged.',
      resolution: [
        step('Spec: apply it again. Lease or run record: delete the item.', 'kbctl cluster apply -f cluster.yml'),
        REBUILD,
      ],
    },
    Unexpected: {
      title: 'An unexpected error',
      what: 'A `TypeError` or the like, an unknown answer of AWS, or a table whose keys are not `cluster` and `key`.',
      resolution: [RUNS, step('Report it with its stack trace from the log.')],
    },
    Unauthorized: {
      title: 'The API server does not accept the credential (401)',
      what: 'The kubeconfig was read again, and refused again: its token expired, its service account was deleted, or it is of another cluster. With `webIdentity`, the AuthenticationConfiguration of the API server has another issuer, audience or role.',
      resolution: [
        step(
          'Create a token and replace the kubeconfig (docs/kubeconfig-secret.md). It is read within a minute.',
          'kubectl create token kube-bootstrap-controller -n kube-system --duration=2160h',
        ),
      ],
    },
    Forbidden: {
      title: 'The credential lacks a permission (403)',
      what: 'The roles in the cluster are of an older version, the kubeconfig is of another user, or an admission policy refuses the object.',
      resolution: [
        step('Apply the roles of this version.', 'kubectl apply -f deploy/rbac.yaml'),
        step('For `ipaddresses`, add the verb that the message names: the shipped roles only read them.'),
        DOCTOR,
      ],
    },
    TlsFailure: {
      title: 'The certificate of the API server is not valid',
      what: 'It lacks the host of the server URL, has expired, or is of another CA, or a proxy terminates TLS. No request was sent.',
      resolution: [DOCTOR, step('Correct the CA or the server URL in the kubeconfig.')],
    },
    MalformedReply: {
      title: 'The answer is not from a Kubernetes API server',
      what: 'The server URL of the kubeconfig is wrong, or a proxy changes answers.',
      resolution: [step('Check the answer.', "kubectl get --raw '/version'"), DOCTOR],
    },
    ReplyTooLarge: {
      title: 'The answer of an API server is too large',
      what: 'The limits are 2 MiB for an object, and 64 MiB and 100,000 Services for the list (8 MiB as JSON); the error has the limit and the object. The server URL may lead to another, perhaps hostile, server. Nothing that depends on it was changed.',
      resolution: [
        step('Measure the list.', "kubectl get --raw '/api/v1/services' | wc -c"),
        step('Remove the object, or correct the server URL.'),
      ],
    },
    Rejected: {
      title: 'The API server rejected a request',
      what: 'The error has its message: an admission webhook or policy refuses it, the API server is too old, or a name in `systemNamespaces` is not valid. That request changed nothing.',
      resolution: [
        RUNS,
        step('List the webhooks.', 'kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations'),
      ],
    },
    BadKubeconfig: {
      title: 'The kubeconfig cannot be used',
      what: 'It cannot be read (the name of its secret must start with `secretsPrefix`), does not parse, or uses a refused feature: `exec`, files, a proxy, http.',
      resolution: [
        DOCTOR,
        step(
          'Create a self-contained one and store it (docs/kubeconfig-secret.md).',
          'kubectl config view --minify --raw --flatten',
        ),
      ],
    },
    BadRange: {
      title: 'A range in the spec is not valid',
      what: 'It does not parse, or both ranges are of one family. Nothing was repaired.',
      resolution: [APPLY_SPEC],
    },
    Invalid: {
      title: 'The API server refused an object as invalid',
      what: 'The error has its message: the first address of `serviceClusterIPRange`, or `service.nodePort`, is taken or not allowed, or the cluster does not have the IP family. The finding `invalid` is unrelated.',
      resolution: [RUNS, step('See which Service has the address.', 'kbctl show ip <cluster> <item>'), APPLY_SPEC],
    },
  },
);

const OF_LATER_PASSES = group(
  { severity: 'resolves automatically' },
  {
    Throttled: {
      title: 'The table or the API server throttled requests',
      what: 'The API server is busy, or the table, the account or the secret store is at its limits. Retries failed until the deadline; a write may have been made.',
      resolution: [step('If it stays, raise the limits that the error names.')],
    },
    DeadlineExceeded: {
      title: 'The deadline of the pass was exceeded',
      what: 'The error names the call, which was answered slowly; a write may have been made. The function may have too little memory for many Services, or a tick too many clusters.',
      resolution: [REPEATS, step('Raise the parameter `loopMemory`, `repairMemory` or `tickConcurrency`.')],
    },
    Contended: {
      title: 'Other writers wrote the same item first',
      what: 'Many Services are being created, or passes overlap. Nothing was overwritten.',
      resolution: [REPEATS],
    },
    OlderSpec: {
      title: 'The registration changed during the pass',
      what: 'The spec was applied, the cluster was paused, unregistered or taken over, or two stacks use the table with different specs. The pass ended before its next write.',
      resolution: [OWNER],
    },
    ControlPlaneMoved: {
      title: 'The kubeconfig now leads to another control plane',
      what: 'Its server or CA changed after the pass listed the Services. Nothing was freed or saved, and strikes restart at zero.',
      resolution: [REPEATS],
    },
    Conflict: {
      title: 'Another writer changed or created an object first',
      what: 'A user, a controller or an API server that starts wrote it at the same time. It was not overwritten. For endpoints, see `twoOwners`.',
      resolution: [REPEATS],
    },
    NamespaceUnavailable: {
      title: 'The namespace `default` does not exist',
      what: 'The kubernetes Service needs it. The loop `system-namespaces` creates it in a new cluster, unless it is being deleted or missing in `systemNamespaces`.',
      resolution: [step('Create it, if it does not appear.', 'kubectl create namespace default')],
    },
    NotReady: {
      title: 'Nothing can be allocated or released in the range yet',
      what: 'A pass in `enforce` must save the range after each change of the spec or the table, and have succeeded within three intervals.',
      resolution: [RUN_PASSES, step('If it stays, check the passes.', 'kbctl status <cluster>')],
    },
    TooManyUnclaimed: {
      title: 'New Services of a namespace took too much of a range',
      what: 'Until a pass sees them, they may take at most what is left for others. The Service was refused (429). Services may be refused after the webhook and created again, or repair passes do not run.',
      resolution: [RUN_PASSES],
    },
  },
);

/** Codes whose messages kubectl prints. */
const OF_REFUSED_SERVICES = group(
  { severity: 'action required' },
  {
    AlreadyAllocated: {
      title: 'The address or port is taken',
      what: 'A Service has it, it is held for another owner, or it leaked: the third pass frees it.',
      resolution: [
        step('See its owner, and take another.', 'kbctl show ip <cluster> <item>'),
        step('If it is held without need, release it.', 'kbctl release ip <cluster> <item>'),
      ],
    },
    NotInRange: {
      title: 'The address or port is outside the range',
      what: 'The item, cluster or range of the request is wrong, or the range was changed. Network and broadcast addresses are not in a range.',
      resolution: [RANGES],
    },
  },
);

/**
 * The explained error codes, without the refusals that docs/ explains, and without the codes that findings explain: `Full`,
 * `Unknown`, `CorruptSnapshot` and `NoLiveLease`.
 */
export const ERROR_CODES = { ...OF_FAILING_PASSES, ...OF_LATER_PASSES, ...OF_REFUSED_SERVICES };

export const OTHER_CODES = {
  AlreadyExists: 'Conflict',
  MismatchedRange: 'NotReady',
  Error: 'Unexpected',
  RangeError: 'Unexpected',
  TypeError: 'Unexpected',
} as const satisfies Readonly<Record<string, keyof typeof ERROR_CODES>>;
