import { type Entry, step } from './explanation.ts';

export const LEASES = step(
  'See what the last probe of each API server said.',
  'kbctl get leases <cluster>',
  'kbctl doctor <cluster>',
);

/** What the loop `kubernetes-service` finds. */
export const ENDPOINT_FINDINGS = {
  noLiveLease: {
    title: 'No API server answers',
    what: 'No API server of the cluster has answered its probe for as long as a lease lasts. The endpoints are not emptied: they stay as they were, so that clients go on trying what was there.',
    causes: [
      'The control plane is down. Then this is a symptom, and ends by itself with the first answer.',
      'Something between here and the API servers does not let the probes through: a security group, a route, a firewall.',
      'The certificate does not carry the address that is probed (`probe.serverName`), or is of another CA than the kubeconfig has.',
      '`/readyz` is not open to anonymous, and the proxy in front answers 404 or a redirect (`probe.path`, `probe.authenticate`).',
      'Every address is withdrawn by `deregister`. It ends at the time that was asked for, at most a day, or with `kbctl deregister <cluster> <address> --undo`.',
      'The spec names no API server that is there: `apiServers` is old.',
    ],
    mending: [
      LEASES,
      step('Ask an API server yourself, from a host that reaches it.', "kubectl get --raw '/readyz?verbose'"),
      step(
        'If the spec is wrong, correct `apiServers` in it, and apply it.',
        'kbctl cluster apply -f cluster.yml --dry-run',
        'kbctl cluster apply -f cluster.yml',
      ),
    ],
    severity: 'action required',
    alarm: 'no-live-lease',
    hint: 'kbctl doctor <cluster> says why no API server is reached; the endpoints stay as they are',
  },
  twoOwners: {
    title: 'Another writer changes the endpoints of the kubernetes Service',
    what: 'What was written was put back within two ticks. The finding names the field manager of the other. Writes that only contest wait for up to ten minutes; those that take out an address that is gone, or add one that is live, do not wait.',
    causes: [
      'An API server of the cluster still runs its own reconciler (field manager `kube-apiserver`).',
      'Another stack of this project, on another table, keeps the same cluster in `enforce`.',
      'A person, or a program that copies endpoints, wrote them.',
    ],
    mending: [
      step(
        'See who wrote what, and when.',
        'kubectl -n default get endpoints kubernetes -o yaml --show-managed-fields',
        'kubectl -n default get endpointslices -l kubernetes.io/service-name=kubernetes -o yaml --show-managed-fields',
      ),
      step('`kube-apiserver`: start every API server with `--endpoint-reconciler-type=none`.'),
      step(
        'Another stack: only one may be in `enforce`. Say `mode: observe` in the spec of the other, and apply it there.',
      ),
      step('It is over when ten minutes have gone by without a write of the other.', 'kbctl get findings <cluster>'),
    ],
    severity: 'action required',
    task: 'moving-from-the-built-in-reconciler',
    alarm: 'two-owners',
    hint: 'start every API server with --endpoint-reconciler-type=none, or let one of two stacks observe',
  },
  oddProbe: {
    title: 'An API server gave an answer that is neither alive nor down',
    what: 'TLS failed, or the status was none that an API server gives at `/readyz`. It counts as a miss (a TLS failure only if another API server answered in the same tick): after two in a row, and when its lease has run out, the address is not published. It comes back with the first good answer. If no other API server answers either, it becomes `noLiveLease`.',
    causes: [
      'The certificate does not carry the address (`probe.serverName`), has ended, or is of another CA than the kubeconfig has.',
      'Something else answers at the address: a proxy, a load balancer, another server (404, 301).',
      '`probe.path` or `probe.url` is wrong.',
    ],
    mending: [
      LEASES,
      step(
        'Look at the certificate that is shown at the address.',
        'openssl s_client -connect <item>:6443 </dev/null | openssl x509 -noout -text',
      ),
      step(
        'Correct `apiServers[].probe` in the spec and apply it, or give the API server a certificate that carries its address.',
        'kbctl cluster apply -f cluster.yml',
      ),
    ],
    severity: 'information',
    hint: 'correct apiServers[].probe of <item> in the spec, or the certificate that the server shows; kbctl doctor <cluster> says what is wrong',
  },
  foreignSlice: {
    title: "An EndpointSlice of the kubernetes Service is somebody else's",
    what: 'It carries the label `kubernetes.io/service-name=kubernetes`, and is not the one that is kept here. Nodes send traffic to what it names too. It is never deleted here.',
    causes: [
      'A controller that mirrors Endpoints made it: `Endpoints` `default/kubernetes` lost the label `endpointslice.kubernetes.io/skip-mirror`.',
      'A person made it, on purpose or left it behind.',
    ],
    mending: [
      step(
        'See whom it names, and who made it.',
        'kubectl -n default get endpointslices -l kubernetes.io/service-name=kubernetes -o yaml --show-managed-fields',
      ),
      step('If nobody needs it, delete it.', 'kubectl -n default delete endpointslice <item>'),
    ],
    severity: 'information',
    hint: 'kubectl -n default delete endpointslice <item>, if nobody needs it',
  },
  other: {
    title: 'Something else that a pass saw, which its message tells',
    what: 'A `host` of the spec: its look-up failed, and what was known of it stays; or one of its records is an address that no Endpoints may publish (loopback, link-local, multicast), and is left out. Or a hold of an item that is not in the range any more: the hold ends.',
    causes: [
      'The resolver of the functions, or the one of this machine, was not reached for a moment.',
      'The name is a private one, and the functions do not run in the VPC that knows it.',
      'The records of the name are wrong, or the `host` in the spec is.',
      'The range of the spec was changed, and something outside of the new one was held.',
    ],
    mending: [
      step('Read the message.', 'kbctl get findings <cluster>'),
      step('Of a name: look it up yourself.', 'getent ahosts <item>', 'kbctl doctor <cluster>'),
      step(
        'Correct the records of the name, or `apiServers[].host` in the spec.',
        'kbctl cluster apply -f cluster.yml',
      ),
    ],
    severity: 'information',
    hint: 'the message says it; of a name: correct its records, or apiServers[].host in the spec',
  },
} as const satisfies Readonly<Record<string, Entry>>;
