export type ClusterErrorCode =
  /** 401. */
  | 'Unauthorized'
  /** 403. */
  | 'Forbidden'
  /** 429, after the retries that the deadline allowed. */
  | 'Throttled'
  /** Refused, reset, no route, DNS, 5xx, a reply that was cut off. A write may or may not have happened. */
  | 'Unavailable'
  /** The certificate did not verify, or is for another name. */
  | 'TlsFailure'
  | 'DeadlineExceeded'
  /** The reply is not what the API promises: not JSON, another kind, half a list. */
  | 'MalformedReply'
  /** The reply, or what it contains, is larger than a pass accepts. */
  | 'ReplyTooLarge'
  /** 4xx that no caller expects (400, 405, 406, 422 on a patch ...). */
  | 'Rejected'
  /** The kubeconfig is missing, does not parse, or asks for something that is refused. */
  | 'BadKubeconfig';

/** Anything about an API server that is not an expected outcome. The message says what failed and what to do next. */
export class ClusterError extends Error {
  override readonly name = 'ClusterError';
  readonly code: ClusterErrorCode;

  constructor(code: ClusterErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
