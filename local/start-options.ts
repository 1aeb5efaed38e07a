export interface RealCluster {
  readonly specFile: string;
  /** The kubeconfig file. Default: the file in the spec, relative to the spec. */
  readonly kubeconfigFile?: string;
  readonly context?: string;
  /** The port of the loopback for the admission webhook. If absent, the webhook is not served. */
  readonly admissionPort?: number;
}

export interface StartOptions {
  /** The real cluster. If absent, an embedded cluster is started. */
  readonly real?: RealCluster;
  readonly demo?: boolean;
  /** The folder of the run, in which other commands find its table. Default: `.kbctl/<name of the cluster>`. */
  readonly dataFolder?: string;
}

/** The reason why a local run cannot start, cannot continue or is not found, for users. Exit codes: 3 configuration, 5 table. */
export class StartError extends Error {
  override readonly name = 'StartError';
  readonly exitCode: 3 | 5;

  constructor(exitCode: 3 | 5, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}
