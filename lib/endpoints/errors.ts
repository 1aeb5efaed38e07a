export type EndpointsErrorCode =
  /** Publishing nobody is refused. */
  | 'NoLiveLease'
  /** The spec was changed after the pass began. */
  | 'OlderSpec'
  | 'LeaseNotFound'
  /** Somebody else wrote or deleted the object after it was read. */
  | 'Conflict'
  | 'AlreadyExists'
  /** The API server refused an object as invalid. */
  | 'Invalid'
  /** The namespace `default` is not there, or is being deleted. */
  | 'NamespaceUnavailable';

/** What kept the Service or its endpoints from being as they should be; the next pass tries again. */
export class EndpointsError extends Error {
  override readonly name = 'EndpointsError';
  readonly code: EndpointsErrorCode;

  constructor(code: EndpointsErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
