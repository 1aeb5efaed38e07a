/** How bad it is. */
export type Severity = 'action required' | 'resolves automatically' | 'information';

/** One thing to do, and the commands that do it. What is in angle brackets is for the reader to fill in. */
export interface Step {
  readonly text: string;
  readonly commands: readonly string[];
}

/** What is known of one word that people meet. All texts are plain, with code in backticks. */
export interface Explanation {
  /** `duplicate`, `late`, `Forbidden`. */
  readonly word: string;
  readonly kind: 'finding' | 'state' | 'error code';
  /** A line without a full stop. */
  readonly title: string;
  readonly what: string;
  /** Causes, the most likely first. */
  readonly causes: readonly string[];
  /** Resolution, in order. */
  readonly mending: readonly Step[];
  readonly severity: Severity;
  /** Reasons of the original's events that tell of it. */
  readonly reasons: readonly string[];
  /** The page of docs/tasks that leads through it: `address-conflict`. */
  readonly task?: string;
  /** The alarm that rings for it, as docs/runbook.md names it. */
  readonly alarm?: string;
  /** What to do, in one line. It may have {@link Facts} in angle brackets. */
  readonly hint: string;
}

/** An explanation as it is written down, beside its word. */
export interface Entry extends Omit<Explanation, 'word' | 'kind' | 'reasons'> {
  readonly reasons?: readonly string[];
}

export function step(text: string, ...commands: readonly string[]): Step {
  return { text, commands };
}

/** What may stand in angle brackets, as far as it is known. */
export interface Facts {
  readonly cluster?: string;
  readonly namespace?: string;
  /** Of the Service. */
  readonly name?: string;
  /** The address or port, or whatever else a finding is about. */
  readonly item?: string;
}

/** Fills in what is known. What is not known, or is no plain word for a shell, stays as it is. */
export function filledIn(text: string, facts: Facts): string {
  const known = new Map(Object.entries({ ...facts, ...wordsFor(facts.item) }));
  return text.replace(/<([a-z]+)>/g, (asItIs, fact: string) => {
    const value = known.get(fact);
    return value !== undefined && PLAIN.test(value) ? value : asItIs;
  });
}

/** What comes from a cluster is made up by strangers, and people paste what they are shown. */
const PLAIN = /^[A-Za-z0-9:][\w.:-]*$/;

/** `kind` as `kbctl show` takes it, and `field` as a Service has it. */
function wordsFor(item: string | undefined): Readonly<Record<string, string>> {
  if (item === undefined) return {};
  return /^\d+$/.test(item) ? { kind: 'port', field: 'nodePort' } : { kind: 'ip', field: 'clusterIP' };
}
