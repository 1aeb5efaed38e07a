/** What came back from one look at `/readyz`. Never throws: silence is an answer. */
export type ProbeReply =
  | { readonly kind: 'status'; readonly status: number /** At most 4 KB. */; readonly body: string }
  | { readonly kind: 'tlsFailure'; readonly message: string }
  /** Refused, reset, no route, DNS, timeout. */
  | { readonly kind: 'silence'; readonly message: string }
  /** This process was too late to receive an answer, or stopped waiting: nothing is known of the server. */
  | { readonly kind: 'unknown'; readonly message: string };

export interface ProbeTarget {
  /** Whole URL, `https://10.0.0.1:6443/readyz`. */
  readonly url: string;
  /** TLS server name when it is not the URL's host. */
  readonly serverName?: string;
  /** Send the kubeconfig's credential; to a host that the spec does not name, only where it is the kubeconfig's. */
  readonly authenticate: boolean | 'atKubeconfigHost';
}

/** `signal`: the time for probes, beside that of a single one. */
export type Prober = (target: ProbeTarget, signal?: AbortSignal) => Promise<ProbeReply>;
