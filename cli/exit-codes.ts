/** What the exit code of `kbctl` says. */
export const EXIT = {
  fine: 0,
  /** Findings, or a difference: what `kubectl diff` says with it. */
  findings: 1,
  usage: 2,
  /** A spec, a kubeconfig, credentials, or a cluster that is not as the command needs it. */
  configuration: 3,
  apiServer: 4,
  table: 5,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The one that a command of several parts ends with. */
export function worst(codes: readonly ExitCode[]): ExitCode {
  return codes.toSorted((one, other) => other - one)[0] ?? EXIT.fine;
}
