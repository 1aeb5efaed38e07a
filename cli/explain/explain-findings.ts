import type { FindingType } from '../../lib/cluster/finding.ts';
import {
  APPLY_SPEC,
  DELETE_SERVICES,
  DOCTOR,
  type Explained,
  group,
  HOLDS,
  RANGES,
  REBUILD,
  RUNS,
  SEE_PROBES,
  step,
  UNDO,
} from './explanation.ts';

const RECREATE = step('Otherwise recreate the Service, as for `duplicate`.');
const WIDEN = step(
  'Widen the range in the API servers, then in the spec; from Kubernetes 1.33 on create another ServiceCIDR.',
);

const OF_SERVICES = group(
  { severity: 'action required', alarm: 'findings' },
  {
    duplicate: {
      title: 'Two Services claim the same cluster IP or node port',
      what: 'Traffic reaches only one of them; the finding names the one listed later, not always the wrong one.',
      causes: [
        'A Service was copied or restored with its address or port.',
        'The address was freed too early, by a restore or by deleting another duplicate.',
        'One Service uses a node port twice.',
      ],
      resolution: [
        step('See which Service the API servers recorded last (`parentRef`).', 'kubectl get ipaddress <item> -o yaml'),
        step('Keep the Service whose clients need the address, usually the older, even if `parentRef` differs.'),
        step(
          'Delete the other, and change the remaining one: either deletion deletes the IPAddress, and a change restores it.',
          'kubectl -n <namespace> get service <name> -o yaml > service.yaml',
          'kubectl -n <namespace> delete service <name> && kubectl -n <namespace> annotate service <remaining> recorded-again=$RANDOM --overwrite',
        ),
        step('Create it again, without `clusterIP`, `clusterIPs` and `nodePort`.', 'kubectl create -f service.yaml'),
      ],
      task: 'address-conflict',
      reasons: ['ClusterIPAlreadyAllocated', 'PortAlreadyAllocated'],
      hint: 'kbctl show <kind> <cluster> <item> lists both Services: recreate the newer one without <field>',
    },
    outOfRange: {
      title: 'A Service has a cluster IP or node port outside the range',
      what: 'The Service works, but its address or port can be allocated a second time.',
      causes: [
        'The spec has another range than the API servers: many Services are found.',
        'The range of the API servers was changed after the Service was created.',
        'From Kubernetes 1.33 on, no `ServiceCIDR` contains the address: one that a `ServiceCIDR` contains is not reported.',
      ],
      resolution: [
        step('Compare the ranges.', 'kbctl get ranges <cluster>', 'kubectl get servicecidrs'),
        step('If the spec is wrong, correct it and apply it.'),
        RECREATE,
      ],
      reasons: ['ClusterIPOutOfRange', 'PortOutOfRange'],
      hint: 'set the range of the API servers in the spec if it differs; otherwise recreate <namespace>/<name> without <field>',
    },
    invalid: {
      title: 'A Service has a cluster IP that does not parse or is of the wrong family',
      what: 'The pass cannot check it. The error code `Invalid` is unrelated.',
      causes: [
        'The spec has only one of two ranges, and Kubernetes is older than 1.33: every dual-stack Service is found.',
        'The cluster was dual-stack when the Service was created.',
        'The Service was written to etcd directly, or in an old notation.',
      ],
      resolution: [step('If the cluster is dual-stack, set both ranges in the spec and apply it.'), RECREATE],
      reasons: ['ClusterIPNotValid'],
      hint: 'set the range of its family in the spec if the cluster is dual-stack; otherwise recreate <namespace>/<name> without clusterIP',
    },
    notRecorded: {
      title: 'A Service has a cluster IP without a correct IPAddress',
      what: 'Kubernetes 1.33 and later records cluster IPs as IPAddress objects. Without its IPAddress, the address can be allocated to a second Service. With `allocator: table`, see `repair`.',
      causes: [
        'The IPAddress was deleted or edited.',
        'One of two Services with the same address was deleted.',
        'A restore of etcd brought the Service back without it.',
      ],
      resolution: [
        step('Check the IPAddress and the Service.', 'kbctl show ip <cluster> <item>'),
        step(
          'The API servers correct it within minutes. If they do not, change the Service: the API server records the address again.',
          'kubectl -n <namespace> annotate service <name> recorded-again=$RANDOM --overwrite',
        ),
        step('For API servers without that repair, set `repair.ipAddresses: true` in the spec and apply it.'),
      ],
      reasons: ['ClusterIPNotAllocated'],
      hint: 'kubectl -n <namespace> annotate service <name> recorded-again=$RANDOM --overwrite records it again, if the API servers do not',
    },
    heldByAnother: {
      title: 'A Service has an address or port that is held for another owner',
      what: 'Its label `kube-bootstrap-controller/hold-owner` is missing or names another owner.',
      causes: [
        'It was created without the label.',
        'An API server does not allocate through the table.',
        'The Service had the address before it was held.',
      ],
      resolution: [
        step('See the owner of the hold (`show port` for a node port).', 'kbctl show ip <cluster> <item>'),
        step(
          'If the Service may keep it, label it: the next pass ends the hold. Do not release it.',
          'kubectl -n <namespace> label service <name> kube-bootstrap-controller/hold-owner=<owner>',
        ),
        RECREATE,
      ],
      hint: 'kbctl show <kind> <cluster> <item> shows the owner; set it as label kube-bootstrap-controller/hold-owner of <namespace>/<name>, or recreate the Service without <field>',
    },
    notCorrected: {
      title: 'An object cannot be read or corrected',
      what: 'The pass corrected and reported everything else. The message has the answer of the API server.',
      causes: [
        'An admission policy or webhook refuses the correction, or the role of the kubeconfig does not allow it.',
        'The object is larger than a pass reads (docs/compatibility.md).',
        'The namespace `kube-node-lease` was deleted, and something in it keeps it from ending.',
      ],
      resolution: [
        step('If the role does not allow it, apply the current one.', 'kubectl apply -f deploy/rbac.yaml'),
        step('Otherwise correct the object that the message names.', 'kubectl get ipaddress <item> -o yaml'),
      ],
      hint: 'see the answer of the API server in the message',
    },
  },
);

const OF_FAILED_REPAIRS = group(
  { severity: 'action required', alarm: 'clusters-failing' },
  {
    full: {
      title: 'A range is full, and a Service in it cannot be recorded',
      what: 'There are too many Services, or the range in the spec is smaller than that of the API servers. No pass saves anything until it is wider.',
      resolution: [RANGES, DELETE_SERVICES, WIDEN],
      task: 'full-range',
      reasons: ['ServiceCIDRFull', 'PortRangeFull'],
      hint: 'delete Services that are not needed, or widen the range: kbctl get ranges <cluster>',
    },
    unknown: {
      title: 'A claim was refused for an unexpected reason',
      what: 'The pass saved nothing; the message has the reason.',
      causes: ['Another program wrote the range in the table.', 'A defect of this project.'],
      resolution: [RUNS, REBUILD, step('If it stays, report it.')],
      reasons: ['UnknownError'],
      hint: 'read the error: kbctl get runs <cluster> -o yaml',
    },
    corruptSnapshot: {
      title: 'A stored range does not parse',
      what: 'With `allocator: table` nothing is repaired or allocated; otherwise only the usage bitmap is missing.',
      causes: ['The item was edited, or restored only in part.', 'A defect of this project.'],
      resolution: [REBUILD],
      hint: 'copy the item and delete it: the next pass rebuilds it from the Services',
    },
  },
);

const OF_RANGES_AND_ENDPOINTS = group(
  { severity: 'action required' },
  {
    nothingFree: {
      title: 'A range has no free item',
      what: 'The API servers refuse the next Service: `range is full`.',
      causes: [
        'There are as many Services as addresses or ports.',
        'With `allocator: table`, much is held or has leaked.',
      ],
      resolution: [RANGES, DELETE_SERVICES, HOLDS, WIDEN],
      task: 'full-range',
      alarm: 'range-nearly-full',
      hint: 'delete Services that are not needed, or widen the range: kbctl get ranges <cluster>',
    },
    noLiveLease: {
      title: 'No API server, or none of a family, has a valid lease',
      what: 'None answered its probes. The endpoints, or the slice of the second family, stay unchanged.',
      causes: [
        'The control plane is down, or the network blocks the probes (with `PreferDualStack`, perhaps of one family).',
        'The certificate, or `probe` in the spec, is wrong.',
        'Every address is withdrawn by `deregister`, or `apiServers` is outdated.',
      ],
      resolution: [SEE_PROBES, DOCTOR, UNDO, APPLY_SPEC],
      alarm: 'no-live-lease',
      hint: 'kbctl doctor <cluster> shows why no API server is reached; the endpoints stay unchanged',
    },
    serviceDiffers: {
      title: 'The kubernetes Service differs, and no pass corrects it',
      what: 'It has a selector, no address, another address than the first of the range, type ExternalName, or one family in place of two: clients do not reach the API servers as the spec says.',
      causes: [
        'Another writer changed or recreated it.',
        'The API servers have one range, and the spec has `service.ipFamilyPolicy: PreferDualStack`.',
      ],
      resolution: [
        step('Do what the message says.', 'kubectl -n default get service kubernetes -o yaml'),
        step('Otherwise delete it: a pass creates it again.', 'kubectl -n default delete service kubernetes'),
      ],
      alarm: 'findings',
      hint: 'do what the message says: a pass does not correct the Service',
    },
    deadServerPublished: {
      title: 'An API server that does not answer is still published',
      what: 'It is also the server of the kubeconfig, and the pass may use no other one: some connections of pods to the API server fail.',
      causes: [
        'The kubeconfig has the address of one API server and no `tls-server-name`.',
        'It has `webIdentity`, no verification, `http://` or a path, for which there is no fall-back.',
        'No other API server of the spec is ready.',
      ],
      resolution: [
        step('Start the API server, or set the `server` of the kubeconfig to another one.'),
        step('To have a fall-back, see docs/cluster-spec.md#a-fall-back.'),
        DOCTOR,
      ],
      alarm: 'findings',
      hint: 'start the API server, or set the server of the kubeconfig to another one: docs/cluster-spec.md#a-fall-back',
    },
    twoOwners: {
      title: 'Another writer changes the endpoints of the kubernetes Service',
      what: 'It reverted a write within two ticks. Competing writes then wait up to ten minutes.',
      causes: [
        'An API server runs its own reconciler (manager `kube-apiserver`).',
        'Another stack with another table is in `enforce`.',
        'A user or another program wrote them.',
      ],
      resolution: [
        step('See the field manager.', 'kubectl -n default get endpoints kubernetes -o yaml --show-managed-fields'),
        step('Start API servers with `--endpoint-reconciler-type=none`, or set `mode: observe` in the other stack.'),
        step('It ends ten minutes after the last foreign write.'),
      ],
      task: 'moving-from-the-built-in-reconciler',
      alarm: 'two-owners',
      hint: 'start every API server with --endpoint-reconciler-type=none, or set mode: observe in the other stack',
    },
  },
);

const OF_LATER_PASSES = group(
  { severity: 'resolves automatically' },
  {
    repair: {
      title: 'A Service has an address or port that is not recorded',
      what: 'A pass in `enforce` records it (`allocator: table`); until then it could be allocated a second time.',
      causes: [
        'The table was restored to an older state.',
        'The other of two Services with the same address was deleted.',
        'An API server does not allocate through the table.',
      ],
      resolution: [step('If every pass finds it, read why the record is not saved.', 'kbctl get runs <cluster>')],
      reasons: ['ClusterIPNotAllocated', 'PortNotAllocated'],
      hint: 'no action: a pass in enforce records it',
    },
    mayHaveLeaked: {
      title: 'An address or port is allocated, but no Service has it',
      what: 'The third pass in a row that finds no Service with it frees it; only the first reports it.',
      causes: [
        'A Service is being created.',
        'An API server stopped before it stored the Service.',
        'A Service was deleted while the table was unreachable.',
      ],
      resolution: [
        step('To keep it allocated, hold it for an owner. See its strikes.', 'kbctl show ip <cluster> <item>'),
      ],
      hint: 'no action: a Service claims it, or the third pass frees it; kbctl show <kind> <cluster> <item> shows its strikes',
    },
    leakedRecord: {
      title: 'An IPAddress belongs to no Service that has the address',
      what: 'The API servers refuse the address to new Services until the IPAddress is deleted.',
      causes: [
        'An API server stopped while it created or deleted a Service.',
        'The IPAddress or its Service was edited in etcd.',
      ],
      resolution: [
        step('Check the IPAddress.', 'kbctl show ip <cluster> <item>'),
        step('The API servers delete it within minutes. If they do not, delete it.', 'kubectl delete ipaddress <item>'),
        step('For API servers without that repair, set `repair.ipAddresses: true` in the spec and apply it.'),
      ],
      reasons: ['IPAddressNotAllocated', 'IPAddressWrongReference'],
      hint: 'kubectl delete ipaddress <item>, if the API servers do not',
    },
    leak: {
      title: 'An address or port that no Service had was freed',
      what: 'Three passes in a row found no Service with it. For the causes, see `mayHaveLeaked`.',
      resolution: [step('If many leak, search the log for passes of the cluster with this finding.')],
      hint: 'no action: it is free again',
    },
  },
);

const OF_INFORMATION = group(
  { severity: 'information' },
  {
    oddProbe: {
      title: 'An API server gave an unexpected answer to its probe',
      what: 'TLS failed, or the status is unexpected. It counts as a miss; a TLS failure only while another API server answers.',
      causes: [
        'The certificate lacks the address, has expired, or is of another CA.',
        'Another server answers, such as a proxy.',
        '`probe.path` or `probe.url` is wrong.',
      ],
      resolution: [
        DOCTOR,
        step('Read the certificate.', 'openssl s_client -connect <item>:6443 </dev/null | openssl x509 -noout -text'),
        step('Correct `apiServers[].probe`, or the certificate.', 'kbctl cluster apply -f cluster.yml'),
      ],
      hint: 'correct apiServers[].probe of <item> in the spec, or its certificate: kbctl doctor <cluster>',
    },
    foreignSlice: {
      title: 'The kubernetes Service has a second EndpointSlice',
      what: 'Nodes also send traffic to its addresses. It is deleted only with `endpoints.prune: true`.',
      causes: [
        'Endpoints `default/kubernetes` lost the label `endpointslice.kubernetes.io/skip-mirror`.',
        'A user created it.',
      ],
      resolution: [
        step(
          'See its addresses and field manager.',
          'kubectl -n default get endpointslice <item> -o yaml --show-managed-fields',
        ),
        step('Delete it if it is not needed.', 'kubectl -n default delete endpointslice <item>'),
      ],
      hint: 'kubectl -n default delete endpointslice <item>, if it is not needed',
    },
    other: {
      title: 'Another observation, see its message',
      what: 'A `host` was not resolved (its known addresses stay) or has an address that Endpoints must not contain (it is ignored); a process was too busy to probe; or a hold outside the range ended.',
      causes: [
        'The resolver was unreachable, or the functions are outside the VPC of the name.',
        'The DNS records or the range in the spec are wrong, or were changed.',
        'The process is busy with another cluster: see the alarm late-probes.',
      ],
      resolution: [step('Resolve the name.', 'getent ahosts <item>', 'kbctl doctor <cluster>'), APPLY_SPEC],
      hint: 'read the message; for a name, correct its DNS records or apiServers[].host in the spec',
    },
  },
);

export const FINDINGS: Explained<FindingType> = {
  ...OF_SERVICES,
  ...OF_FAILED_REPAIRS,
  ...OF_RANGES_AND_ENDPOINTS,
  ...OF_LATER_PASSES,
  ...OF_INFORMATION,
};
