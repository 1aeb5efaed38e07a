export type AddressChoiceErrorCode =
  /** `IsNoRoutesError` of the original: there is no default route at all. */
  | 'NoDefaultRoutes'
  /** A route table that does not parse. */
  | 'BadRoutes'
  /** An interface that is not there, or whose address does not parse. */
  | 'BadInterface'
  /** Nothing on this host is fit to be published. */
  | 'NoAddress';

/** Why no address could be chosen; returned, not thrown. Messages are those of `k8s.io/apimachinery/pkg/util/net`. */
export class AddressChoiceError extends Error {
  override readonly name = 'AddressChoiceError';
  readonly code: AddressChoiceErrorCode;

  constructor(code: AddressChoiceErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
