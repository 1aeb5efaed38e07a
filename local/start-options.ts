export interface RealCluster {
  readonly specFile: string;
  /** Default: the file that the spec names, beside the spec. */
  readonly kubeconfigFile?: string;
  readonly context?: string;
}

export interface StartOptions {
  readonly verbose: boolean;
  /** Absent: an embedded one. */
  readonly real?: RealCluster;
  /** The embedded cluster comes to life. */
  readonly demo?: boolean;
  /** Where the table is kept, and what other commands find it by. Default: `.kbctl/<name of the cluster>`. */
  readonly dataFolder?: string;
}

/** Why `npm start` cannot run. The message is for people. Exit codes: 3 configuration, 5 table. */
export class StartError extends Error {
  override readonly name = 'StartError';
  readonly exitCode: 3 | 5;

  constructor(exitCode: 3 | 5, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}
