export type Severity = 'action required' | 'resolves automatically' | 'information';

/** One thing to do, and the commands that do it. The reader fills in what is in angle brackets. */
export interface ResolutionStep {
  readonly text: string;
  readonly commands: readonly string[];
}

/** What is known of one word that users meet. All texts are plain, with code in backticks. */
export interface Explanation {
  /** `duplicate`, `late`, `Forbidden`. */
  readonly word: string;
  readonly kind: 'finding' | 'state' | 'error code';
  /** A line without a full stop. */
  readonly title: string;
  readonly what: string;
  /** At most three, the most likely first. */
  readonly causes: readonly string[];
  /** In order, with at most four commands. */
  readonly resolution: readonly ResolutionStep[];
  readonly severity: Severity;
  /** Reasons of the original's events that report it. */
  readonly reasons: readonly string[];
  /** Its page in docs/tasks: `address-conflict`. */
  readonly task?: string;
  /** Its alarm, as docs/runbook.md names it. */
  readonly alarm?: string;
  /** The resolution in one line, of what `kbctl status` shows. It may have facts in angle brackets, see `hintFor`. */
  readonly hint?: string;
}

/** An explanation as it is written down, beside its word. */
export interface Entry extends Omit<Explanation, 'word' | 'kind' | 'severity' | 'causes' | 'reasons'> {
  /** Absent where `what` has the cause. */
  readonly causes?: readonly string[];
  readonly reasons?: readonly string[];
}

/** Entries by their words, each with what its group shares. */
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
export const LEASES = step('See the last probes.', 'kbctl get leases <cluster>');
export const HOLDS = step('Release holds that are not needed.', 'kbctl get holds <cluster>');
export const RANGES = step('Compare the ranges.', 'kbctl get ranges <cluster>');
export const RUNS = step('Read the error.', 'kbctl get runs <cluster> -o yaml');
export const OWNER = step('See the owner.', 'kbctl cluster get <cluster>');
export const DELETE_SERVICES = step('Delete Services that are not needed.');
export const APPLY_SPEC = step('Correct the spec and apply it.', 'kbctl cluster apply -f cluster.yml');
export const REBUILD = step(
  'Rebuild the range (or `node-port-repair`): check, then omit `--dry-run`.',
  'kbctl run-once cluster-ip-repair <cluster> --rebuild --dry-run',
);
