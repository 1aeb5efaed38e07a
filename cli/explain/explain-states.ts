import {
  APPLY_SPEC,
  DELETE_SERVICES,
  DOCTOR,
  group,
  HOLDS,
  RANGES,
  REBUILD,
  SEE_PROBES,
  step,
  UNDO,
} from './explanation.ts';

const STATUS = step('See the item.', 'kbctl status <cluster>');
const NO_TICKS = 'The functions, or the local run, do not run.';

const OF_TROUBLE = group(
  { severity: 'action required' },
  {
    late: {
      title: 'A loop has not run or succeeded for a long time',
      what: 'For three intervals since the last success, spec change or pause, no pass ran or each failed. Endpoints stay unchanged.',
      causes: [NO_TICKS, 'Passes fail: see `failing`.', 'The fleet outgrew the parameter `tickConcurrency`.'],
      resolution: [DOCTOR, step('See the last passes and their errors.', 'kbctl get runs <cluster>')],
      alarm: 'clusters-overdue',
      hint: 'check whether the functions run: kbctl doctor <cluster>',
    },
    failing: {
      title: 'The last pass of a loop failed',
      what: 'What it wrote stays, and the next pass starts from the beginning.',
      causes: [
        'The API server does not answer, or refuses access.',
        'The pass found `full`, `unknown`, `corruptSnapshot` or `noLiveLease`.',
        'The table does not answer, or throttles.',
      ],
      resolution: [
        step('Read the error, then its explanation.', 'kbctl get runs <cluster>', 'kbctl explain <code>'),
        DOCTOR,
      ],
      alarm: 'clusters-failing',
      hint: 'kbctl get runs <cluster> shows the error, and kbctl explain its code',
    },
    unreadable: {
      title: 'An item in the table cannot be read',
      what: 'It does not parse, or a later version wrote it; it stays unchanged. See `Corrupt` and `SchemaTooNew`.',
      resolution: [
        STATUS,
        step('Later version: use it here and in every stack.'),
        step('Spec: apply it again. Lease or run record: delete the item.', 'kbctl cluster apply -f cluster.yml'),
        REBUILD,
      ],
      alarm: 'clusters-failing',
      hint: 'kbctl status <cluster> names the item; use the later version, or delete the item',
    },
    almostFull: {
      title: 'A range is more than 80 percent full',
      what: 'Services still get addresses and ports.',
      causes: ['There are more Services than planned.', 'With `allocator: table`, much is held or has leaked.'],
      resolution: [RANGES, DELETE_SERVICES, HOLDS, step('Plan a wider range.')],
      task: 'widening-a-cidr',
      alarm: 'range-filling',
      hint: 'delete Services that are not needed, or widen the range: kbctl get ranges <cluster>',
    },
  },
);

const OF_LATER_PASSES = group(
  { severity: 'resolves automatically' },
  {
    neverRan: {
      title: 'A loop has not run for the cluster yet',
      what: 'A new cluster has its first passes within four minutes: `kbctl status` shows when they are due.',
      causes: ['The cluster is new, or paused since it was registered.', 'No stack uses this table.', NO_TICKS],
      resolution: [step('Wait four minutes.', 'kbctl status <cluster>'), DOCTOR],
      alarm: 'clusters-overdue',
      hint: 'wait four minutes; then kbctl doctor <cluster>',
    },
    expired: {
      title: 'The lease of an API server expired',
      what: 'Its address is removed after two missed probes while another API server answers, and restored by a good answer.',
      causes: [
        'The API server is down or was removed.',
        'The network path from the functions is blocked.',
        'Its answers are unexpected: see `oddProbe`.',
      ],
      resolution: [SEE_PROBES, step('If it does not come back, remove it from `apiServers`.'), APPLY_SPEC],
      task: 'replacing-an-api-server',
      hint: 'kbctl get leases <cluster> shows its last probe; remove it from the spec if it is removed for good',
    },
    neverSeen: {
      title: 'An API server has not answered yet',
      what: 'It is in the spec, and none of its probes succeeded.',
      causes: ['It has not started, or no pass has run since it was added.', 'Its address is wrong or unreachable.'],
      resolution: [SEE_PROBES, DOCTOR],
      hint: 'kbctl doctor <cluster> shows whether it can be reached',
    },
  },
);

const OF_INFORMATION = group(
  { severity: 'information' },
  {
    paused: {
      title: 'The passes of the cluster are paused',
      what: 'Endpoints stay unchanged until the pause ends, at its time or by `resume`.',
      resolution: [
        step('See the reason.', 'kbctl status <cluster>'),
        step('Resume it, or all clusters.', 'kbctl resume <cluster>', 'kbctl resume --all'),
      ],
    },
    withdrawn: {
      title: 'An API server was deregistered',
      what: 'Its address is not published until the requested time, or until probes saw it down and then ready.',
      causes: ['It is being drained, upgraded or replaced.', 'The agent on its host stopped.'],
      resolution: [step('See until when.', 'kbctl get leases <cluster>'), UNDO],
      task: 'draining-an-api-server',
    },
  },
);

export const STATES = { ...OF_TROUBLE, ...OF_LATER_PASSES, ...OF_INFORMATION };

export const STATE_NAMES = {
  overdue: 'late',
  fenced: 'withdrawn',
} as const satisfies Readonly<Record<string, keyof typeof STATES>>;
