/** The parts of an error that may be logged: never its headers, bodies or other properties. */
export interface ErrorDescription {
  /** The error's own `code`, or else its name. */
  readonly code: string;
  /** The message, and those of its causes. */
  readonly message: string;
}

const MAX_CAUSES = 4;
const MAX_PARTS = 10;
const MAX_STACK_LINES = 20;
const MAX_CODE_LENGTH = 100;
const MAX_MESSAGE_LENGTH = 1000;

export function describeError(error: unknown): ErrorDescription {
  const messages = [ownMessage(error)];
  for (const cause of causesOf(error)) {
    const message = causeMessage(cause);
    if (!messages.some((said) => said.includes(message))) messages.push(message);
  }
  const last = messages.pop() ?? '';
  // A message with a continuation has no full stop.
  const whole = [...messages.map((message) => message.replace(/\.$/, '')), last].join(': ');
  return { code: codeOf(error), message: whole.slice(0, MAX_MESSAGE_LENGTH) };
}

/** Returns `Code: message: message of the cause`. */
export function errorSentence(error: unknown): string {
  const { code, message } = describeError(error);
  return `${code}: ${message}`;
}

/** Returns the stack of an unexpected error. Expected errors have a `code` and need none. */
export function stackOfFault(error: unknown): readonly string[] | undefined {
  if (!(error instanceof Error) || 'code' in error || error.stack === undefined) return undefined;
  return error.stack
    .split('\n')
    .slice(-MAX_STACK_LINES)
    .filter((line) => /^\s+at /.test(line))
    .map((line) => line.trim());
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'Unexpected';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  return code.slice(0, MAX_CODE_LENGTH);
}

/** Cut before any pattern searches it: it may contain a long text of a server. */
function ownMessage(error: unknown): string {
  if (!(error instanceof Error)) return `something that is not an error was thrown: ${typeof error}`;
  if (error.message === '' && error instanceof AggregateError) {
    return error.errors.slice(0, MAX_PARTS).map(ownMessage).join(', ');
  }
  return error.message.slice(0, MAX_MESSAGE_LENGTH);
}

/**
 * A parser's message quotes the text that it could not parse, which may be a kubeconfig: only its first line, or its
 * name, is used.
 */
function causeMessage(cause: unknown): string {
  return cause instanceof SyntaxError ? cause.name : (ownMessage(cause).split('\n', 1)[0] ?? '');
}

function causesOf(error: unknown): unknown[] {
  const causes: unknown[] = [];
  let next = error;
  while (next instanceof Error && next.cause !== undefined && causes.length < MAX_CAUSES) {
    next = next.cause;
    causes.push(next);
  }
  return causes;
}
