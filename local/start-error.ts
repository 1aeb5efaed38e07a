/** Why `npm start` cannot run. The message is for people. Exit codes: 2 usage, 3 configuration, 4 API server, 5 table. */
export class StartError extends Error {
  override readonly name = 'StartError';
  readonly exitCode: 2 | 3 | 4 | 5;

  constructor(exitCode: 2 | 3 | 4 | 5, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}
