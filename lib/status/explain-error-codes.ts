import { type Entry, step } from './explanation.ts';

const DOCTOR = step('See what is reached and allowed, with what to do.', 'kbctl doctor <cluster>');
const NOTHING = step('Nothing: the next pass reads everything anew.');
const RUNS = step('Read the whole error.', 'kbctl get runs <cluster> -o yaml', 'kbctl logs-query <cluster>');
const APPLY_SPEC = step(
  'Correct the spec, and apply it.',
  'kbctl cluster apply -f cluster.yml --dry-run',
  'kbctl cluster apply -f cluster.yml',
);

const FAILS = { severity: 'action required', alarm: 'clusters-failing' } as const;
const PASSES = { severity: 'resolves automatically' } as const;

/** Of the table, or of table and API server alike. */
const OF_THE_TABLE = {
  TableMissing: {
    title: 'The table does not exist',
    what: 'Not under this name, or not in this region or account.',
    causes: ['The name or the region is another one.', 'The stack is not deployed yet.', 'The table was deleted.'],
    mending: [
      step('See which tables there are.', 'aws dynamodb list-tables'),
      step('Correct the name or the region; or deploy the stack, which makes the table.', 'npm run deploy'),
    ],
    ...FAILS,
    hint: 'correct the name of the table or the region, or deploy the stack',
  },
  AccessDenied: {
    title: 'The table may not be used',
    what: 'AWS refused the call, or could not tell who makes it.',
    causes: [
      'The credentials have ended, or are of another account.',
      'The role or user has no right to this action on this table: the error names it.',
      'A policy of the organization or of a VPC endpoint denies it.',
    ],
    mending: [
      step('See who you are.', 'aws sts get-caller-identity'),
      step('Allow the action on the table to the role or user. The roles of the functions are in `deploy/roles.yml`.'),
    ],
    ...FAILS,
    hint: 'allow the action that the error names to the role or user',
  },
  Throttled: {
    title: 'Table or API server ask for less',
    what: 'The call was refused because there were too many (429, or a throttling exception), and again after as many tries as the time of the pass allowed. What was to be written may or may not have been.',
    causes: [
      'The API server is busy, or its priority levels give this user little.',
      'The table or the account is at its limits for reads or writes.',
      'Secrets Manager or Parameter Store throttle: very many clusters at once.',
    ],
    mending: [
      step('Nothing, if it is seen once: the next pass tries again.'),
      step('If it stays, raise the limits that the error names, or find out who else uses them.'),
    ],
    ...PASSES,
    hint: 'nothing, unless it stays: then raise the limits that the error names',
  },
  Unavailable: {
    title: 'Table or API server cannot be reached',
    what: 'No connection, no address for the name, a connection that broke, or an answer of 500 and above. What was to be written may or may not have been; the next pass reads what is.',
    causes: [
      'The API server is down, or is being replaced.',
      'Security group, route or firewall do not let the functions through.',
      'In a VPC there is no way to AWS: a gateway endpoint for DynamoDB, interface endpoints for the others, or a NAT gateway.',
      'The server URL of the kubeconfig is not one that the functions reach.',
    ],
    mending: [
      DOCTOR,
      step('Ask the API server yourself.', "kubectl get --raw '/readyz?verbose'"),
      step('All clusters at once: it is the table, the secrets, or the network of the functions.', 'kbctl doctor'),
    ],
    ...FAILS,
    hint: 'kbctl doctor <cluster> says what is not reached',
  },
  DeadlineExceeded: {
    title: 'The time of the pass ran out',
    what: 'It was given up, and what was under way was ended. What was to be written may or may not have been; the next pass reads what is.',
    causes: [
      'The API server or the table answers slowly, or not at all: the error says which call waited.',
      'There are very many Services, or the function has too little memory and so too little processor.',
      'A tick had many clusters, and this one came last.',
    ],
    mending: [
      step('Nothing, if it is seen once.'),
      DOCTOR,
      step(
        'If it stays, give the function more `memorySize` in `serverless.yml`, or the stack more `tickConcurrency`.',
        'npm run deploy',
      ),
    ],
    ...PASSES,
    hint: 'nothing, unless it stays: then kbctl doctor <cluster>',
  },
  ItemTooLarge: {
    title: 'An item is larger than the table takes',
    what: 'More than 400 KB. Nothing was written.',
    causes: ['A range with more holds than an item can carry.', 'A spec with a very long list.'],
    mending: [step('End holds that nobody needs.', 'kbctl get holds <cluster>'), step('Or make the spec shorter.')],
    ...FAILS,
    hint: 'end holds that nobody needs: kbctl get holds <cluster>',
  },
  SchemaTooNew: {
    title: 'An item was written by a later version',
    what: 'This version does not know its layout. The item is left as it is, and the pass did nothing.',
    causes: ['An upgrade was rolled back.', 'Two stacks, or a stack and this command, are of different versions.'],
    mending: [step('Use the later version, here and in the stack.', 'kbctl --version', 'npm run deploy')],
    ...FAILS,
    hint: 'deploy the later version again',
  },
  Corrupt: {
    title: 'An item in the table does not parse',
    what: 'The error names it. It is left as it is.',
    causes: ['It was changed by hand, or by another program.', 'A copy of the table was put back in part.'],
    mending: [
      step('A registration: apply its spec anew, the whole of it.', 'kbctl cluster apply -f cluster.yml'),
      step(
        'A range: rebuild it from the Services.',
        'kbctl repair cluster-ip <cluster> --rebuild --dry-run',
        'kbctl repair cluster-ip <cluster> --rebuild',
      ),
      step('A lease or a run record: remove the item. The next pass makes it anew.'),
    ],
    ...FAILS,
    hint: 'apply the spec anew, or rebuild the range: the error names the item',
  },
  Contended: {
    title: 'Others wrote the same item first',
    what: 'Each of several tries lost, or the answer to a write was lost and others wrote since. Nothing was overwritten.',
    causes: ['Many Services are being created, with `allocator: table`.', 'Two passes of one loop ran at once.'],
    mending: [NOTHING],
    ...PASSES,
    hint: 'nothing to do: the next pass reads anew',
  },
  OwnedElsewhere: {
    title: 'The registration belongs to another stack',
    what: "It was not changed. A cluster belongs to the stack whose passes came first; one that a stack's `cluster.yml` registers is changed there alone.",
    causes: [
      'The cluster is registered by the `cluster.yml` of a stack.',
      'You named another stack, or another table, than you thought.',
    ],
    mending: [
      step('See who owns it.', 'kbctl cluster get <cluster>'),
      step(
        'Change it where it is registered, and deploy; or take it over first.',
        'kbctl cluster take-over <cluster> --stack <stack>',
      ),
    ],
    severity: 'action required',
    hint: 'change it in the stack that owns it, or take it over: kbctl cluster get <cluster> names it',
  },
  ChangedMeanwhile: {
    title: 'The registration is not the one that was looked at',
    what: 'Somebody else wrote it between the look at the difference and the write. Theirs stands, and nothing was overwritten.',
    causes: [
      'Two people apply at once.',
      'A stack registered its `cluster.yml`, or took the cluster over, at the same moment.',
    ],
    mending: [
      step(
        'Look at what is there now, and apply again.',
        'kbctl cluster get <cluster>',
        'kbctl cluster apply -f cluster.yml --dry-run',
        'kbctl cluster apply -f cluster.yml',
      ),
    ],
    severity: 'action required',
    hint: 'look at the difference again, and apply again: kbctl cluster apply -f cluster.yml --dry-run',
  },
  Unexpected: {
    title: 'Something failed unexpectedly',
    what: 'A fault of this project (`TypeError` and the like), or an answer of AWS that it does not know. The log has the stack.',
    causes: [
      'A fault of this project.',
      'A table whose keys are not `cluster` (partition) and `key` (sort), both text.',
    ],
    mending: [RUNS, step('Report it, with the error and the stack.')],
    ...FAILS,
    hint: 'read the whole error with kbctl get runs <cluster> -o yaml, and report it',
  },
} as const satisfies Readonly<Record<string, Entry>>;

/** Of the API server, and of the way to it. */
const OF_THE_API_SERVER = {
  Unauthorized: {
    title: 'The API server does not accept the credential (401)',
    what: 'The kubeconfig was read anew, and refused again.',
    causes: [
      'The token has ended, or its service account was deleted.',
      'The kubeconfig is of another cluster, or its CA was replaced.',
    ],
    mending: [
      step(
        'Make a new token, and put the kubeconfig in the place of the old one, as docs/kubeconfig-secret.md says. It is read within five minutes, without a deployment.',
        'kubectl create token kube-bootstrap-controller -n kube-system --duration=2160h',
        'aws secretsmanager put-secret-value --secret-id kube-bootstrap-controller/<stage>/<cluster> --secret-string file://<cluster>.kubeconfig',
      ),
      DOCTOR,
    ],
    ...FAILS,
    hint: 'put a kubeconfig with a current token in the place of the old one, as docs/kubeconfig-secret.md says',
  },
  Forbidden: {
    title: 'The credential may not do this (403)',
    what: 'The error names the verb and the kind of object. Other loops may need other rights, and go on.',
    causes: [
      'The roles in the cluster are of an older version of this project.',
      'The kubeconfig is of another user than the service account of `deploy/rbac.yaml`.',
    ],
    mending: [
      step('Apply the roles of this version.', 'kubectl apply -f deploy/rbac.yaml'),
      step(
        'See what the service account may do.',
        'kubectl auth can-i --list --as system:serviceaccount:kube-system:kube-bootstrap-controller',
        'kbctl doctor <cluster>',
      ),
    ],
    ...FAILS,
    hint: 'kubectl apply -f deploy/rbac.yaml',
  },
  TlsFailure: {
    title: 'The certificate of the API server does not verify',
    what: 'No request was sent.',
    causes: [
      'The certificate does not carry the address or name of the server URL in the kubeconfig.',
      'It has ended, or is of another CA than the kubeconfig has.',
      'Something in between ends TLS with a certificate of its own.',
    ],
    mending: [
      step('See what the error says of the certificate.', 'kbctl doctor <cluster>'),
      step('Put the CA of today, or a server URL that the certificate carries, into the kubeconfig.'),
    ],
    ...FAILS,
    hint: 'put the right CA, or a server URL that the certificate carries, into the kubeconfig',
  },
  MalformedReply: {
    title: 'Something answered that is no Kubernetes API server',
    what: 'The answer was not what the API promises: no JSON, another kind of object, half a list.',
    causes: [
      'The server URL of the kubeconfig leads to something else: a load balancer, a login page, another service.',
      'A proxy in between changes answers.',
    ],
    mending: [
      step('See what is there.', "kubectl get --raw '/version'", 'kbctl doctor <cluster>'),
      step('Correct the server URL in the kubeconfig.'),
    ],
    ...FAILS,
    hint: 'correct the server URL in the kubeconfig',
  },
  ReplyTooLarge: {
    title: 'An API server sent more than a pass accepts',
    what:
      'A pass accepts 2 MiB for an object, and for the list of Services 256 MiB, 200,000 Services, and 65,536 ports and 16 cluster IPs in each. ' +
      'Above that the pass stops reading and changes nothing, so that one API server cannot use up the memory of the function. Other clusters are not affected.',
    causes: [
      'The server URL of the kubeconfig leads to something that is no API server, or to one that means harm.',
      'An object has annotations or a list of ports that no API server would store.',
    ],
    mending: [
      step('Compare the size with that of a direct request.', "kubectl get --raw '/api/v1/services' | wc -c"),
      step('Remove the object that is too large, or correct the server URL in the kubeconfig.'),
    ],
    ...FAILS,
    hint: 'remove the object that is too large, or correct the server URL in the kubeconfig',
  },
  Rejected: {
    title: 'The API server refused a request as wrong',
    what: 'The error has its words. Nothing was changed by that request.',
    causes: [
      'An admission webhook or policy of the cluster refuses it.',
      'The API server is older than what was asked of it.',
      'A namespace of `systemNamespaces` has a name that it does not take.',
    ],
    mending: [
      RUNS,
      step(
        'See which webhooks there are.',
        'kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations',
      ),
      APPLY_SPEC,
    ],
    ...FAILS,
    hint: 'kbctl get runs <cluster> has the words of the API server',
  },
  BadKubeconfig: {
    title: 'The kubeconfig cannot be used',
    what: 'It cannot be read, does not parse, or asks for what is refused (`exec`, files beside it, a proxy, a credential over http). The error says which.',
    causes: [
      'The secret or parameter that the spec names does not exist, or in another region.',
      'The role of the functions may not read it, or not its key: its name must begin as the parameter `secretsPrefix` says.',
      'It refers to files or commands that are not there: certificates and token must be in it.',
    ],
    mending: [
      DOCTOR,
      step('Make it self-contained.', 'kubectl config view --minify --raw --flatten'),
      step('Put it where the spec says, as docs/kubeconfig-secret.md says, or correct `kubeconfig` in the spec.'),
      APPLY_SPEC,
    ],
    ...FAILS,
    hint: 'kbctl doctor <cluster> says what is wrong with it; docs/kubeconfig-secret.md makes a good one',
  },
} as const satisfies Readonly<Record<string, Entry>>;

/** Of what a loop decides or writes. `Full`, `Unknown`, `CorruptSnapshot` and `NoLiveLease` are explained as findings. */
const OF_THE_LOOPS = {
  BadRange: {
    title: 'A range of the spec cannot be used',
    what: 'It does not parse, or two ranges are of one family. Nothing was repaired.',
    causes: [
      'The spec was registered by a version with other rules.',
      'A fault of this project: specs are checked before they are registered.',
    ],
    mending: [APPLY_SPEC],
    ...FAILS,
    hint: 'correct serviceClusterIPRange or serviceNodePortRange in the spec, and apply it',
  },
  OlderSpec: {
    title: 'The spec was changed while the pass ran',
    what: 'The spec was applied, or a range saved under another one, after the pass had read its own. Nothing was written to the cluster or the range.',
    causes: [
      'The spec was applied a moment ago.',
      'Two stacks with different specs of one cluster use the table.',
      'The cluster was removed and registered anew from an older table.',
    ],
    mending: [
      NOTHING,
      step('If it stays, see who registers the cluster, and with what.', 'kbctl cluster get <cluster>'),
    ],
    ...PASSES,
    hint: 'nothing to do: the next pass reads the spec anew',
  },
  Conflict: {
    title: 'Somebody else changed an object first',
    what: 'The kubernetes Service, its Endpoints or its EndpointSlice were changed or deleted after the pass had read them. They were not overwritten.',
    causes: [
      'A person or a controller wrote them at the same moment.',
      'Two owners write the endpoints: see `twoOwners`.',
    ],
    mending: [NOTHING],
    ...PASSES,
    hint: 'nothing to do: the next pass reads anew',
  },
  AlreadyExists: {
    title: 'Somebody else made an object first',
    what: 'The pass had read that it was missing, and another made it before the pass did.',
    causes: ['The cluster is starting, and an API server makes the same objects.'],
    mending: [NOTHING],
    ...PASSES,
    hint: 'nothing to do: the next pass reads anew',
  },
  Invalid: {
    title: 'The API server refused an object as invalid',
    what: 'The kubernetes Service, its Endpoints or its EndpointSlice were refused; the error has the words. The finding `invalid` is another matter.',
    causes: [
      'The address of the Service (the first of `serviceClusterIPRange`) is taken by another Service, or is not in the range of the API servers.',
      '`service.nodePort` is taken, or is not in the range of the API servers.',
      'The Service is of a family that the cluster does not have.',
    ],
    mending: [
      RUNS,
      step('See what has the address.', 'kubectl get services -A | grep -wF <item>', 'kbctl show ip <cluster> <item>'),
      APPLY_SPEC,
    ],
    ...FAILS,
    hint: 'kbctl get runs <cluster> has the words of the API server; correct the spec, or the Service that is in the way',
  },
  NamespaceUnavailable: {
    title: 'The namespace `default` is not there',
    what: 'The kubernetes Service cannot be made without it. The loop `system-namespaces` makes it.',
    causes: [
      'The cluster is new, and the loop has not run yet.',
      'The namespace is being deleted.',
      '`systemNamespaces` of the spec does not name it.',
    ],
    mending: [
      step('See how the loop is.', 'kbctl status <cluster>'),
      step('Or make it yourself.', 'kubectl create namespace default'),
    ],
    ...PASSES,
    hint: 'nothing to do: the loop system-namespaces makes it; else kubectl create namespace default',
  },
  LeaseNotFound: {
    title: 'There is no lease of that address',
    what: 'It was to be taken out, and is not held: it ran out, or was never there. Nothing was changed.',
    causes: ['Another address was meant.', 'It was deregistered, or ran out, before.'],
    mending: [step('See which leases there are.', 'kbctl get leases <cluster>')],
    severity: 'information',
    hint: 'nothing, if that address was meant: kbctl get leases <cluster>',
  },
  NotRegistered: {
    title: 'The table knows no cluster of that name',
    what: 'Nothing was done.',
    causes: ['The name is misspelt.', 'The cluster was removed.', 'The table is another one.'],
    mending: [
      step('See which clusters there are.', 'kbctl cluster list'),
      step('Register it.', 'kbctl cluster apply -f cluster.yml'),
    ],
    severity: 'action required',
    hint: 'kbctl cluster list has the names; kbctl cluster apply registers one',
  },
  BadEvent: {
    title: 'A function was invoked with what it does not understand',
    what: 'Nothing was done. The error says what it expects.',
    causes: ['A payload written by hand.', 'A rule or queue of another version.'],
    mending: [step('Correct the payload as the error says.')],
    severity: 'action required',
    hint: 'correct the payload as the error says',
  },
  BadEnvironment: {
    title: 'An environment variable of a function is missing or wrong',
    what: 'Nothing was done. `serverless.yml` sets all of them.',
    causes: ['The function was changed by hand, or is run by other means.'],
    mending: [step('Deploy anew.', 'npm run deploy')],
    severity: 'action required',
    hint: 'npm run deploy sets them',
  },
} as const satisfies Readonly<Record<string, Entry>>;

/** Codes of errors that a pass may record, but for those that are explained as findings. */
export const ERROR_CODES = { ...OF_THE_TABLE, ...OF_THE_API_SERVER, ...OF_THE_LOOPS };
