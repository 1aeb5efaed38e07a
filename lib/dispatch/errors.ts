export type DispatchErrorCode =
  /** The event is of no known kind. */
  | 'BadEvent'
  /** An environment variable is missing or makes no sense. */
  | 'BadEnvironment'
  /** A cluster was asked for that the table does not know. */
  | 'NotRegistered'
  /** A pass was given up because its time, or the function's, was over. */
  | 'DeadlineExceeded';

export class DispatchError extends Error {
  override readonly name = 'DispatchError';
  readonly code: DispatchErrorCode;

  constructor(code: DispatchErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
