import { type Entry, type Step, step } from './explanation.ts';

/** Those who claim an item, the oldest first. */
const WHO_CLAIMS_IT = [
  "kubectl get services -A --sort-by=.metadata.creationTimestamp -o 'custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name,MADE:.metadata.creationTimestamp,IPS:.spec.clusterIPs,PORTS:.spec.ports[*].nodePort' | grep -wF '<item>'",
];

const ANEW: Step = step(
  'Make the Service anew: keep it, take out of the file what the API server gave it (`clusterIP` and `clusterIPs`, or each `nodePort`; `status`; of its `metadata` `uid`, `resourceVersion` and `creationTimestamp`), delete it, and create it. It gets another address or port, and clients of the old one must be told.',
  'kubectl -n <namespace> get service <name> -o yaml > service.yaml',
  'kubectl -n <namespace> delete service <name>',
  'kubectl create -f service.yaml',
);

const CONFIRM: Step = step(
  'Run a pass now, which shows whether it is over.',
  'kbctl repair cluster-ip <cluster> --dry-run',
  'kbctl repair node-port <cluster> --dry-run',
);

const SET_THE_RANGE = step(
  'Write the same into the spec, and apply it.',
  'kbctl cluster apply -f cluster.yml --dry-run',
  'kbctl cluster apply -f cluster.yml',
);

const HOW_FULL = step('See how full the ranges are, and with what.', 'kbctl get ranges <cluster>');

const WIDER_RANGE = step(
  'Give the API servers a larger range. Of cluster IPs: a further `ServiceCIDR` (Kubernetes 1.33 or later), which needs `allocator: apiserver`; else new Services in a wider `--service-cluster-ip-range`. Of node ports: a wider `--service-node-port-range`.',
  'kubectl get servicecidrs',
);

/** What the repair loops find. */
export const RANGE_FINDINGS = {
  duplicate: {
    title: 'Two Services claim the same cluster IP or node port',
    what: 'One address, or one port, is claimed twice. Traffic to it reaches one of the Services, and nobody can say which. The finding names the Service that was listed later, which need not be the wrong one. Nothing repairs this.',
    causes: [
      'A Service was restored from a backup, or copied with its `clusterIP` or `nodePort`, after another had been given the same.',
      'Two allocators were at work: API servers with different ranges or storages, or some that allocate through the table and some that do not.',
      'The record of the range was put back to an older state, by a restore of etcd or of the table, and what was handed out since was handed out again.',
      'One Service names the same node port twice for one protocol, for example as `healthCheckNodePort`.',
    ],
    mending: [
      step(
        'See who claims it. The oldest is listed first, and is usually right.',
        'kbctl show ip <cluster> <item>',
        ...WHO_CLAIMS_IT,
      ),
      step(
        'Of a cluster IP, Kubernetes 1.33 or later says whose it is in `spec.parentRef`.',
        'kubectl get ipaddress <item> -o yaml',
      ),
      ANEW,
      CONFIRM,
      step(
        'With `allocator: table` the Service that stays may be found once as `repair`, when deleting the other freed what both had. That resolves automatically.',
      ),
    ],
    severity: 'action required',
    task: 'address-conflict',
    reasons: ['ClusterIPAlreadyAllocated', 'PortAlreadyAllocated'],
    alarm: 'findings',
    hint: 'kubectl -n <namespace> delete service <name>, if it is the younger one that claims <item>, and create it anew without <field>',
  },
  outOfRange: {
    title: 'A Service claims what is not in the range',
    what: 'The cluster IP or node port of a Service is not in the range of the spec. The Service works, as long as nodes and routes know the address; nobody guards it against being handed out twice, and it cannot be created so again. Nothing repairs this.',
    causes: [
      "The spec has another range than the API servers' `--service-cluster-ip-range` or `--service-node-port-range`. Then many Services are found at once.",
      'The range of the API servers was changed, and the Service is older than the change.',
      'The address is of a further `ServiceCIDR` (Kubernetes 1.33 or later), which the spec does not name.',
      'The Service was put into the storage by other means than the API.',
    ],
    mending: [
      step(
        'Compare the range of the spec with what the API servers run with.',
        'kbctl get ranges <cluster>',
        'kubectl get servicecidrs',
        'kubectl -n kube-system get pods -l component=kube-apiserver -o yaml | grep service-',
      ),
      step(
        'If the spec is wrong, correct `serviceClusterIPRange` or `serviceNodePortRange` in it, and apply it.',
        'kbctl cluster apply -f cluster.yml --dry-run',
        'kbctl cluster apply -f cluster.yml',
      ),
      ANEW,
      CONFIRM,
    ],
    severity: 'action required',
    reasons: ['ClusterIPOutOfRange', 'PortOutOfRange'],
    alarm: 'findings',
    hint: "correct the range of the spec if it is not the API servers' own; else kubectl -n <namespace> delete service <name>, and create it anew without <field>",
  },
  invalid: {
    title: 'A Service has a cluster IP that is no address here',
    what: 'The text does not parse as an address, or it is of a family (IPv4, IPv6) that the spec has no range of. Nothing repairs this. The error code `Invalid` is another matter.',
    causes: [
      "The spec lacks the second of the API servers' two ranges: every dual-stack Service is found.",
      'The cluster was dual-stack once, and the Service is from then.',
      'The address was written in a form that the API does not take any more, such as one with leading zeros.',
      'The Service was put into the storage by other means than the API.',
    ],
    mending: [
      step('Look at the addresses of the Service.', 'kubectl -n <namespace> get service <name> -o yaml'),
      step(
        'If the cluster is dual-stack, name both ranges in `serviceClusterIPRange` of the spec, and apply it.',
        'kbctl cluster apply -f cluster.yml --dry-run',
        'kbctl cluster apply -f cluster.yml',
      ),
      ANEW,
      CONFIRM,
    ],
    severity: 'action required',
    reasons: ['ClusterIPNotValid'],
    alarm: 'findings',
    hint: 'name the range of its family in the spec if the cluster is dual-stack; else kubectl -n <namespace> delete service <name>, and create it anew without clusterIP',
  },
  heldByAnother: {
    title: 'A Service uses what is held for another owner',
    what: "An address or port was taken out of the range for an owner, and a Service has it that is not that owner's: the label `kube-bootstrap-controller/hold-owner` of the Service is missing or says another. The Service works. Nothing repairs this.",
    causes: [
      'The Service that the address was held for was created without the label.',
      'Somebody asked for this very address by name, not knowing of the hold, through an API server that does not allocate through the table.',
      'The address was held while a Service had it already.',
    ],
    mending: [
      step('See who holds it, and until when.', 'kbctl show ip <cluster> <item>', 'kbctl show port <cluster> <item>'),
      step(
        'If it was held for this very Service, or nobody needs the hold, label the Service. The next pass ends the hold, and the label may go. Do not release what a Service has: until the next pass it could be given to another.',
        'kubectl -n <namespace> label service <name> kube-bootstrap-controller/hold-owner=<owner>',
      ),
      ANEW,
    ],
    severity: 'action required',
    alarm: 'findings',
    hint: 'kbctl show <kind> <cluster> <item> says for whom it is held; label service <namespace>/<name> with that as kube-bootstrap-controller/hold-owner, or delete it and create it anew without <field>',
  },
  full: {
    title: 'A range is full, and a Service that claims an item of it cannot be entered',
    what: 'The pass ended there, and saved nothing. Until the range is wider no pass gets further, so that nothing else is repaired.',
    causes: [
      'There are more Services than the range has addresses or ports.',
      "The range of the spec is smaller than the API servers' own.",
    ],
    mending: [HOW_FULL, step('Delete Services that nobody needs.'), WIDER_RANGE, SET_THE_RANGE],
    severity: 'action required',
    task: 'full-range',
    reasons: ['ServiceCIDRFull', 'PortRangeFull'],
    alarm: 'clusters-failing',
    hint: 'delete Services that nobody needs, or widen the range: kbctl get ranges <cluster>',
  },
  nothingFree: {
    title: 'Nothing is left free in a range',
    what: 'Every Service has what it claims, and the pass went well. The next Service that wants an address or port of this range is refused by the API server: `range is full`.',
    causes: [
      'There are as many Services as the range has room for.',
      'Much of it is held or has leaked, with `allocator: table`.',
    ],
    mending: [
      HOW_FULL,
      step('Delete Services that nobody needs, and end holds that nobody needs.', 'kbctl get holds <cluster>'),
      WIDER_RANGE,
      SET_THE_RANGE,
    ],
    severity: 'action required',
    task: 'full-range',
    alarm: 'range-nearly-full',
    hint: 'delete Services that nobody needs, or widen the range: kbctl get ranges <cluster>',
  },
  unknown: {
    title: 'A claim was refused for an unexpected reason',
    what: 'The pass ended there, and saved nothing. The message has the reason.',
    causes: ['A fault of this project.', 'A range in the table that something else wrote.'],
    mending: [
      step(
        'Read the whole error, and the passes before it.',
        'kbctl get runs <cluster> -o yaml',
        'kbctl logs-query <cluster>',
      ),
      step('Look at the Service that it names.', 'kubectl -n <namespace> get service <name> -o yaml'),
      step(
        'If what is stored of the range is to blame, rebuild it from the Services.',
        'kbctl repair cluster-ip <cluster> --rebuild --dry-run',
        'kbctl repair cluster-ip <cluster> --rebuild',
      ),
      step('Report it, with the error and the Service.'),
    ],
    severity: 'action required',
    reasons: ['UnknownError'],
    alarm: 'clusters-failing',
    hint: 'read the whole error with kbctl get runs <cluster> -o yaml, and report it',
  },
  corruptSnapshot: {
    title: 'What is stored of a range does not parse',
    what: 'It is left as it is. With `allocator: table` the pass ends there, nothing is repaired, and nothing can be allocated from the range. With `allocator: apiserver` only the map of the range is missing: claims are checked as ever.',
    causes: [
      'The item was changed by hand, or by another program.',
      'A copy of the table was put back in part.',
      'A fault of this project.',
    ],
    mending: [
      step('Keep a copy of the item `ranges/...` of the cluster, to find out what happened.'),
      step(
        'See what the Services prove, then put that in its place. What was allocated or held without a Service is free again.',
        'kbctl repair cluster-ip <cluster> --rebuild --dry-run',
        'kbctl repair cluster-ip <cluster> --rebuild',
        'kbctl repair node-port <cluster> --rebuild',
      ),
    ],
    severity: 'action required',
    alarm: 'clusters-failing',
    hint: 'kbctl repair cluster-ip <cluster> --rebuild --dry-run (or node-port), then without --dry-run',
  },
  repair: {
    title: 'A Service has what is not recorded as taken',
    what: 'The pass enters it into the record, with `allocator: table` and in `enforce`. Until then it could have been handed out a second time. In `observe` it is only told.',
    causes: [
      'The table was put back to an older state, and the Service is younger.',
      'The other of two Services that had the same was deleted.',
      'The Service was created through an API server that does not allocate through the table, or is older than `allocator: table`.',
    ],
    mending: [
      step('Nothing, if it is not found again.'),
      step(
        'Found by every pass in `enforce`: the record is not saved. Look why.',
        'kbctl status <cluster>',
        'kbctl get runs <cluster>',
      ),
      step('Ever new Services: some API server allocates elsewhere. Let all of them allocate through the table.'),
    ],
    severity: 'resolves automatically',
    reasons: ['ClusterIPNotAllocated', 'PortNotAllocated'],
    hint: 'nothing to do: an enforcing pass enters it',
  },
  mayHaveLeaked: {
    title: 'Something is recorded as taken, and no Service has it',
    what: 'It stays taken for now. When no Service has it in three passes it is freed. It is told once, at the first strike; `kbctl get ranges` counts what has a strike or two.',
    causes: [
      'A Service is being created this moment: its address is taken before it is stored.',
      'An API server ended between taking the address and storing the Service, or could not give it back.',
      'A Service was deleted while the table was out of reach.',
      'The range of the spec was made smaller, and this is outside of the new one.',
    ],
    mending: [
      step('Nothing: it is taken up by a Service, or freed within three passes in `enforce`.'),
      step(
        'If it is to stay taken without a Service, hold it for an owner. See what is known of it.',
        'kbctl show ip <cluster> <item>',
        'kbctl show port <cluster> <item>',
      ),
    ],
    severity: 'resolves automatically',
    hint: 'nothing to do: a Service takes it up, or the third pass frees it; kbctl show <kind> <cluster> <item> has its strikes',
  },
  leak: {
    title: 'Something that no Service has was freed',
    what: 'It was recorded as taken, and for three passes no Service had it. This pass frees it.',
    causes: [
      'A Service could not be created after its address had been taken.',
      'An API server ended between taking the address and storing the Service.',
      'A Service was deleted while the table was out of reach.',
    ],
    mending: [
      step('Nothing.'),
      step(
        'If many leak, pass after pass, find out who takes addresses and creates no Service.',
        'kbctl logs-query <cluster>',
        'kbctl get ranges <cluster>',
      ),
    ],
    severity: 'resolves automatically',
    hint: 'nothing to do: it is free again',
  },
} as const satisfies Readonly<Record<string, Entry>>;
