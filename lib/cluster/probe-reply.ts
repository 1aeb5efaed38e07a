/** The answer to a probe of `/readyz`, or silence. `late`: this process was busy during the first probe, so it probed again. */
export type ProbeReply = { readonly late?: true } & (
  | { readonly kind: 'status'; readonly status: number /** The body has at most 4 KB. */; readonly body: string }
  | { readonly kind: 'tlsFailure'; readonly message: string }
  /** The connection was refused, was reset or timed out, there was no route, or the name did not resolve. */
  | { readonly kind: 'silence'; readonly message: string }
  /** This process was too late to receive the answer, or stopped waiting. The state of the server is unknown. */
  | { readonly kind: 'unknown'; readonly message: string }
);
