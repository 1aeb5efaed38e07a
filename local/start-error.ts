/** Why `npm start` cannot run. The message is for people. Exit codes: 3 configuration, 5 table. */
export class StartError extends Error {
  override readonly name = 'StartError';
  readonly exitCode: 3 | 5;

  constructor(exitCode: 3 | 5, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}
