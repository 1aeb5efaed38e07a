import { type Entry, step } from './explanation.ts';

const PASS = step(
  'Wait for the next enforcing pass of the range, or run one.',
  'kbctl repair cluster-ip <cluster>',
  'kbctl repair node-port <cluster>',
);
const HOLDS = step('See what is held, for whom and until when.', 'kbctl get holds <cluster>');

const PERSON = { severity: 'action required' } as const;
const PASSES = { severity: 'resolves automatically' } as const;

/** Why nothing is allocated, by the ranges themselves. `Full` is explained as a finding. */
const OF_RANGES = {
  AlreadyAllocated: {
    title: 'The address or port is taken',
    what: 'A Service has it, it is held, or it leaked and is not freed yet. Nothing was allocated.',
    causes: [
      'A Service has it.',
      'It is held, and not for who asked. A hold that is over counts until a pass has looked.',
      'It is named twice in one request.',
      'No Service has it any more: the third pass frees it.',
    ],
    mending: [
      step('See who has it.', 'kbctl show ip <cluster> <item>', 'kbctl show port <cluster> <item>'),
      step(
        'Take another. If it is held and nobody needs it, release it.',
        'kbctl release ip <cluster> <item>',
        'kbctl release port <cluster> <item>',
      ),
    ],
    ...PERSON,
    hint: 'kbctl show <kind> <cluster> <item> says who has it; take another',
  },
  NotInRange: {
    title: 'The address or port is not in the range',
    what: 'The ranges are those of the spec. Network and broadcast address are not in it. Nothing was allocated.',
    causes: [
      'It is misspelt.',
      'It is of another cluster, or of another range.',
      'The range of the cluster was changed.',
    ],
    mending: [step('See which ranges there are, and ask for one inside.', 'kbctl get ranges <cluster>')],
    ...PERSON,
    hint: 'kbctl get ranges <cluster> has the ranges: ask for one inside',
  },
  MismatchedRange: {
    title: 'The stored range is another than that of the spec',
    what: 'The range of the cluster was changed, and no pass has carried it over yet. Nothing was allocated or released.',
    causes: [
      'The spec was applied a moment ago.',
      'Passes are paused, fail, or only observe.',
      'The table was restored from a backup, and no pass has succeeded since.',
      'Two stacks with different specs of one cluster use the table.',
    ],
    mending: [PASS, step('If it stays, see how the passes are.', 'kbctl status <cluster>')],
    ...PASSES,
    hint: 'an enforcing pass has to save the range first: kbctl repair cluster-ip <cluster>, or node-port',
  },
  NotReady: {
    title: 'Nothing can be allocated or released in the range yet',
    what: 'An enforcing pass has to save the range first: after the cluster was registered, after each change of its ranges, after each import, and after `enforce` was set. Allocation also needs a pass of the repair loop that succeeded within its last three intervals. In the words of the original: `cannot allocate resources of type serviceipallocations at this time` (of ports `servicenodeportallocations`). Else the error says why.',
    causes: [
      'The cluster is new, or its spec or ranges were changed or imported a moment ago.',
      'Passes are paused, fail, or only observe.',
      'The spec says `allocator: apiserver`: the API servers of the cluster allocate, and not this table.',
    ],
    mending: [
      PASS,
      step('If it stays, see how the passes are.', 'kbctl status <cluster>'),
      step('With `allocator: apiserver`, ask the API server instead.'),
    ],
    ...PASSES,
    hint: 'an enforcing pass has to save the range first: kbctl repair cluster-ip <cluster>, or node-port',
  },
  BadHold: {
    title: 'Nothing can be held like this',
    what: 'The end of the hold is past, or its owner is no name: 1 to 63 of `A-Z a-z 0-9 - _ .`, a letter or digit first and last. Nothing was allocated.',
    causes: [
      'The clock of who asks goes wrong, or the time is of another zone.',
      'A request was sent again when its hold was over.',
      'An owner with a character that no label has.',
    ],
    mending: [step('Ask for a later end, or as another owner. A request that was begun: with a new id.')],
    ...PERSON,
    hint: 'ask for a hold with a later end, or with another owner',
  },
  NotHeld: {
    title: 'An address or port is not held as the request expects',
    what: 'It has no hold, the hold of another owner, or another hold than when the release began. It was not changed.',
    causes: ['A Service took it up.', 'It ended in time, or was released.', 'It is held by another owner.'],
    mending: [HOLDS, step('If it is free, allocate it anew.')],
    ...PERSON,
    hint: 'kbctl get holds <cluster> says who holds what; allocate it anew, if it is free',
  },
  HoldsFull: {
    title: 'A range has no room for more holds',
    what: 'The holds of a range have 64 KB in the table. Nothing was allocated.',
    causes: ['Many holds of one item each, or for long.', 'Holds that nobody came for.'],
    mending: [
      HOLDS,
      step('Release what nobody needs.', 'kbctl release ip <cluster> <item>', 'kbctl release port <cluster> <item>'),
      step('Take several items with one request: they share one hold. Hold for a shorter time.'),
    ],
    ...PERSON,
    hint: 'release what nobody needs: kbctl get holds <cluster>',
  },
  TooManyUnclaimed: {
    title: 'New Services were given too much of a range since the last pass',
    what: 'The admission webhook gives the new Services of a namespace no more of a range than is left for all other namespaces, until a repair pass has seen the Services. The Service was refused with status 429. Nothing was allocated.',
    causes: [
      'Services that their cluster refuses after the webhook, for example by a quota, are created again and again.',
      'Many Services are created at once in a small range.',
      'Repair passes do not run.',
    ],
    mending: [
      step(
        'Wait for the next pass, or run one.',
        'kbctl repair cluster-ip <cluster>',
        'kbctl repair node-port <cluster>',
      ),
      step('See in the audit log of the API server which Services of the namespace are refused.'),
    ],
    ...PASSES,
    hint: 'wait for the next repair pass, or run one: kbctl repair cluster-ip <cluster>, or node-port',
  },
} as const satisfies Readonly<Record<string, Entry>>;

/** Why a request is not begun. `NotRegistered` is explained with the error codes. */
const OF_REQUESTS = {
  ObserveOnly: {
    title: 'Nothing is allocated in a cluster that is only observed',
    what: 'Its spec says `mode: observe`. Nothing was allocated or released.',
    causes: ['The cluster is watched before it is handed over.'],
    mending: [
      step(
        'See what passes would do, and let them.',
        'kbctl status <cluster>',
        'kbctl cluster set-mode enforce <cluster>',
      ),
    ],
    ...PERSON,
    hint: 'kbctl cluster set-mode enforce <cluster>, when it is to be handed over',
  },
  CallerRefused: {
    title: 'The cluster does not accept this caller',
    what: 'Its spec has `callerKeys`, and the request carries no key, or one whose SHA-256 is not listed. Nothing was allocated or released.',
    causes: ['A caller of another cluster named this one.', 'The key was changed in the spec or at the caller.'],
    mending: [
      step(
        'Compare the SHA-256 of the key that the caller has with `callerKeys` of the spec.',
        'printf %s "$KEY" | sha256sum',
        'kbctl cluster get <cluster>',
      ),
    ],
    ...PERSON,
    hint: 'send the callerKey of a caller whose hash is in callerKeys of the spec',
  },
  OtherStack: {
    title: 'The cluster belongs to another stack',
    what: 'Its stack allocates for it. Nothing was allocated or released.',
    causes: ['The function of another stack was invoked.', 'The cluster was moved to another stack.'],
    mending: [step('See which stack it is, and invoke the function of that one.', 'kbctl cluster get <cluster>')],
    ...PERSON,
    hint: 'kbctl cluster get <cluster> names the stack: invoke the function of that one',
  },
  NoSecondaryRange: {
    title: 'The cluster has no second range of cluster IPs',
    what: 'It is of one family. Nothing was allocated or released.',
    causes: ['Another cluster was meant.', 'The cluster is to be dual-stack, and its spec does not say so.'],
    mending: [step('See which ranges it has, and ask for one of them.', 'kbctl get ranges <cluster>')],
    ...PERSON,
    hint: 'ask for serviceips: kbctl get ranges <cluster> has the ranges',
  },
  RequestIdTaken: {
    title: 'The id is that of another request',
    what: 'A request is known by its id for a day, and for as long as it holds anything. The same id with anything else is refused. Nothing was allocated or released.',
    causes: ['An id that is not made anew for each request.', 'A request was changed, and sent again with its id.'],
    mending: [step('Give each request an id of its own.'), HOLDS],
    ...PERSON,
    hint: 'give each request an id of its own',
  },
  InProgress: {
    title: 'Another invocation of the same release may still be at work',
    what: 'A release is not run twice. Until the time of the first invocation is over, 35 seconds at most, its result is not known.',
    causes: ['The caller, or its SDK, sent the request again.', 'The first invocation ended without an answer.'],
    mending: [step('Wait until the time in the message. Then send the request again with the same id.')],
    ...PASSES,
    hint: 'send the same request again at the time that the message names',
  },
} as const satisfies Readonly<Record<string, Entry>>;

/** Codes of refused requests to allocate or release. */
export const REFUSALS = { ...OF_RANGES, ...OF_REQUESTS };
