export type Severity = 'action required' | 'resolves automatically' | 'information';

export interface ResolutionStep {
  readonly text: string;
  readonly commands: readonly string[];
}

export interface Explanation {
  readonly word: string;
  readonly kind: 'finding' | 'state' | 'error code';
  readonly title: string;
  readonly what: string;
  readonly causes: readonly string[];
  readonly resolution: readonly ResolutionStep[];
  readonly severity: Severity;
  readonly reasons: readonly string[];
  /** A page in docs/tasks. */
  readonly task?: string;
  /** The name of an alarm in docs/runbook.md. */
  readonly alarm?: string;
  /** The resolution in one line, for `kbctl status`. It may have placeholders in angle brackets, see `hintFor`. */
  readonly hint?: string;
}

/** Causes are absent if `what` contains the cause. */
type Entry = Omit<Explanation, 'word' | 'kind' | 'severity' | 'causes' | 'reasons'> &
  Partial<Pick<Explanation, 'causes' | 'reasons'>>;

export type Explained<Word extends string> = Readonly<Record<Word, Entry & Pick<Explanation, 'severity'>>>;

export function group<Word extends string>(
  shared: Pick<Explanation, 'severity' | 'alarm'>,
  entries: Readonly<Record<Word, Entry>>,
): Explained<Word> {
  const all = Object.entries<Entry>(entries).map(([word, entry]) => [word, { ...shared, ...entry }]);
  return Object.fromEntries(all) as Explained<Word>;
}

export function step(text: string, ...commands: readonly string[]): ResolutionStep {
  return { text, commands };
}

export const DOCTOR = step('Run the checks.', 'kbctl doctor <cluster>');
export const SEE_PROBES = step('See the last probes.', 'kbctl get leases <cluster>');
export const UNDO = step('End the withdrawal.', 'kbctl deregister <cluster> <address> --undo');
export const HOLDS = step('Release holds that are not needed.', 'kbctl get holds <cluster>');
export const RANGES = step('Compare the ranges.', 'kbctl get ranges <cluster>');
export const RUNS = step('Read the error.', 'kbctl get runs <cluster> -o yaml');
export const OWNER = step('See the owner.', 'kbctl cluster get <cluster>');
export const DELETE_SERVICES = step('Delete Services that are not needed.');
export const APPLY_SPEC = step('Correct the spec and apply it.', 'kbctl cluster apply -f cluster.yml');
export const REBUILD = step(
  'Range: copy the item `ranges/...` and delete it. The next pass rebuilds it from the Services, without its leaks and holds.',
  `aws dynamodb delete-item --table-name <table> --key '{"cluster":{"S":"<cluster>"},"key":{"S":"<item>"}}'`,
);
