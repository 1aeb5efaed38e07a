import { LEASES } from './explain-endpoint-findings.ts';
import { type Entry, step } from './explanation.ts';

const LOOK = step('See what is wrong, with what to do.', 'kbctl doctor <cluster>', 'kbctl status <cluster>');
const ERRORS = step('Read the errors of the last passes.', 'kbctl get runs <cluster>', 'kbctl logs-query <cluster>');

const NOBODY_TICKS = [
  'The stack is not deployed any more, or its functions do not start (alarms `nothing-ran-...`).',
  'The rule that invokes the function is disabled, or the function is throttled.',
  'The fleet has outgrown the ticks: raise the parameter `tickConcurrency` of the stack.',
  '`npm start`, or `kbctl run`, was ended.',
];

/** What a cluster, a loop, a range or an API server can be like. */
export const STATES = {
  late: {
    title: 'The last pass of a loop is long ago',
    what: "It began more than three of the loop's intervals ago (and a minute more for a loop that runs at every tick). Nothing is checked or kept meanwhile. Endpoints stay as they are, and the first pass that runs asks every API server before it takes one out.",
    causes: NOBODY_TICKS,
    mending: [LOOK, step('See whether the function runs at all.', 'kbctl logs-query <cluster>')],
    severity: 'action required',
    alarm: 'clusters-overdue',
    hint: 'see whether the functions run: kbctl doctor <cluster>',
  },
  overdue: {
    title: 'No pass of a loop has succeeded for long',
    what: "For three of the loop's intervals (and a minute more for a loop that runs at every tick) no pass went well: none ran, or each failed. Counted from the last success, the last change of the registration, or the end of a pause.",
    causes: ['Passes fail: see `failing`.', ...NOBODY_TICKS],
    mending: [LOOK, ERRORS],
    severity: 'action required',
    alarm: 'clusters-overdue',
    hint: 'kbctl doctor <cluster> says why no pass goes well',
  },
  failing: {
    title: 'The last pass of a loop failed',
    what: 'It ended with an error, or could not do all that it should. What it had done is told; the next pass begins anew. Other loops and other clusters are not held up by it.',
    causes: [
      'The API server does not answer, or refuses the credential (`Unavailable`, `Unauthorized`, `Forbidden`).',
      'A finding that ends a pass: `full`, `unknown`, `corruptSnapshot`, `noLiveLease`.',
      'The table does not answer, or throttles.',
    ],
    mending: [
      step(
        'Read the error. It says what failed and what to do next; its code has an explanation.',
        'kbctl get runs <cluster>',
        'kbctl explain <code>',
      ),
      LOOK,
    ],
    severity: 'action required',
    alarm: 'clusters-failing',
    hint: 'kbctl get runs <cluster> has the error, and kbctl explain takes its code',
  },
  paused: {
    title: 'The passes of the cluster are held',
    what: 'Somebody paused it, or all clusters, until a time and for a reason. Endpoints stay as they are. A pause ends by itself at its time.',
    causes: ['An upgrade, or other work that passes should not disturb.'],
    mending: [
      step('See who paused it, why, and until when.', 'kbctl status <cluster>'),
      step('Let its passes go on.', 'kbctl resume <cluster>'),
      step('When it is the pause of all clusters.', 'kbctl resume --all'),
    ],
    severity: 'information',
    hint: 'kbctl resume <cluster>, if what it was paused for is over',
  },
  neverRan: {
    title: 'A loop has not run for the cluster yet',
    what: 'There is no record of a pass. Of a cluster that was registered a moment ago that is as it should be: each loop runs within its interval.',
    causes: [
      'The cluster is new.',
      'It was paused, or all were, since it was registered.',
      'No stack uses this table: it is another one than the functions have.',
      ...NOBODY_TICKS,
    ],
    mending: [
      step(
        'Wait three minutes. The repair loops begin every three minutes, the others every minute.',
        'kbctl status <cluster>',
      ),
      LOOK,
    ],
    severity: 'resolves automatically',
    alarm: 'clusters-overdue',
    hint: 'wait three minutes; then kbctl doctor <cluster>',
  },
  observing: {
    title: 'Another stack owns the cluster, and this one only observes',
    what: "A cluster belongs to the stack whose passes came first. A second stack on the same table runs every pass and tells what it would write, whatever the mode of the spec is, and writes nothing. Its passes leave no record: what is shown is the owner's.",
    causes: [
      'A second stack was deployed with the table of the first, to move to it.',
      'A stack was deployed under another name or stage, with the table of the old one.',
    ],
    mending: [
      step('See who owns it.', 'kbctl cluster get <cluster>'),
      step(
        'To move it: make the new stack the owner. From its next tick on it writes, and the old one observes.',
        'kbctl cluster take-over <cluster> --stack <stack>',
      ),
      step('To stay: remove the second stack, or give it a table of its own.'),
    ],
    severity: 'information',
    hint: 'kbctl cluster take-over <cluster> moves it to the other stack, if that is wanted',
  },
  unreadable: {
    title: 'Something in the table cannot be read',
    what: 'An item of the cluster does not parse, or a later version of this project wrote it. It is left as it is. See also the error codes `Corrupt` and `SchemaTooNew`.',
    causes: [
      'The table is used by a newer version too: an upgrade is under way, or was rolled back.',
      'The item was changed by hand, or by another program.',
    ],
    mending: [
      step('Read which item it is.', 'kbctl status <cluster>'),
      step('A later version: use that one, here and in every stack.'),
      step('A registration: apply its spec anew.', 'kbctl cluster apply -f cluster.yml'),
      step(
        'A range: rebuild it from the Services.',
        'kbctl repair cluster-ip <cluster> --rebuild --dry-run',
        'kbctl repair cluster-ip <cluster> --rebuild',
      ),
      step('A lease or a run record: remove the item; the next pass makes it anew.'),
    ],
    severity: 'action required',
    alarm: 'clusters-failing',
    hint: 'kbctl status <cluster> names the item; use the later version, or rebuild what does not parse',
  },
  almostFull: {
    title: 'A range is more than four fifths full',
    what: 'New Services still get addresses and ports. A second alarm, `range-nearly-full`, rings at 95 per cent.',
    causes: [
      'More Services than the range was made for.',
      'Addresses or ports that are held, or have leaked, with `allocator: table`. In `observe` nothing is freed.',
    ],
    mending: [
      step('See what is in it.', 'kbctl get ranges <cluster>', 'kbctl get holds <cluster>'),
      step('Delete Services that nobody needs, and end holds that nobody needs.'),
      step(
        'Plan a larger range: a further `ServiceCIDR` (Kubernetes 1.33 or later), or a wider `--service-node-port-range`; then the spec.',
        'kbctl cluster apply -f cluster.yml',
      ),
    ],
    severity: 'action required',
    task: 'widening-a-cidr',
    alarm: 'range-filling',
    hint: 'delete Services that nobody needs, or plan a larger range: kbctl get ranges <cluster>',
  },
  ranOut: {
    title: 'The lease of an API server ran out',
    what: 'It did not answer for as long as a lease lasts. Its address is removed when it has missed two probes in a row while another API server answered; until then it stays published. The first good answer brings it back.',
    causes: [
      'The API server is down, or was taken away.',
      'Its address is not reached from where the passes run.',
      'It answers what no API server answers: see `oddProbe`.',
    ],
    mending: [
      LEASES,
      step('If it is gone for good, take it out of `apiServers` in the spec.', 'kbctl cluster apply -f cluster.yml'),
    ],
    severity: 'resolves automatically',
    task: 'replacing-an-api-server',
    hint: 'kbctl get leases <cluster> has what the last probe said; take it out of the spec if it is gone for good',
  },
  withdrawn: {
    title: 'An API server was deregistered',
    what: 'Its address is not published before the time that was asked for, whatever its probe says. It comes back earlier when the server was seen down and then ready, or when its withdrawal is ended.',
    causes: ['The API server is being drained, upgraded or replaced.', 'The agent on its host ended.'],
    mending: [
      step('See until when.', 'kbctl get leases <cluster>'),
      step('If it is not to be stopped after all, end its withdrawal.', 'kbctl deregister <cluster> <address> --undo'),
      step('If it is gone for good, take it out of `apiServers` in the spec.', 'kbctl cluster apply -f cluster.yml'),
    ],
    severity: 'information',
    task: 'draining-an-api-server',
    hint: 'nothing to do: it comes back at its time, or when it was seen down and then ready',
  },
  neverSeen: {
    title: 'An API server has not answered yet',
    what: 'The spec names it, and no lease is known of it: no probe of it went well.',
    causes: [
      'It is not up yet.',
      'No pass has run since it was named.',
      'Its address is wrong, or is not reached from where the passes run.',
    ],
    mending: [LEASES],
    severity: 'resolves automatically',
    hint: 'kbctl doctor <cluster> says whether it is reached',
  },
} as const satisfies Readonly<Record<string, Entry>>;

/** What people say for a state, beside its word. */
export const STATE_NAMES: Readonly<Record<string, keyof typeof STATES>> = {
  'only observing': 'observing',
  'only observing for another stack': 'observing',
  'owned elsewhere': 'observing',
  'ran out': 'ranOut',
};
