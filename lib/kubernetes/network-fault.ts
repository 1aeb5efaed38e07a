import { isNativeError } from 'node:util/types';
import { boundedText } from '../util/values.ts';

export type NetworkFault =
  /** TLS failed, for example because the certificate did not verify. The server carried out no request. */
  | 'tls'
  /** The connection failed: the request was not sent. */
  | 'notSent'
  /** The connection timed out. The call is not retried, because a second attempt would take the same time. */
  | 'silent'
  /** The reply was lost: the server may have carried out the request. */
  | 'lostReply';

const NOT_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'EADDRNOTAVAIL']);

/** The code of our own error for a connection that is neither established nor refused in time. */
export const CONNECT_TIMEOUT = 'CONNECT_TIMEOUT';

/** Node's and OpenSSL's codes for TLS failures, including those of `X509_verify_cert`. */
const TLS =
  /^(CERT_|ERR_TLS_|ERR_SSL_|CRL_|UNABLE_TO_|INVALID_(CA|PURPOSE)$|HOSTNAME_MISMATCH$|EPROTO$|PATH_LENGTH_EXCEEDED$)|SELF_SIGNED_CERT/;

/** Returns the codes of an error and of its causes, outermost first. */
function codesOf(error: unknown): string[] {
  const codes: string[] = [];
  let current = error;
  for (let depth = 0; depth < 5 && isNativeError(current); depth += 1) {
    if ('code' in current && typeof current.code === 'string') codes.push(current.code);
    current = current.cause;
  }
  return codes;
}

export function networkFaultOf(error: unknown): NetworkFault {
  const codes = codesOf(error);
  if (codes.some((code) => TLS.test(code))) return 'tls';
  if (codes.includes(CONNECT_TIMEOUT)) return 'silent';
  return codes.some((code) => NOT_SENT.has(code)) ? 'notSent' : 'lostReply';
}

/** Returns whether the server ended the handshake with an alert. While Node writes, the alert's error has the code `EPROTO`. */
export function isTlsAlert(error: unknown): boolean {
  return codesOf(error).some((code) => code === 'EPROTO' || code.includes('_ALERT_'));
}

/** Returns one line for a message: the text of the error and its innermost code, without the stack. */
export function describeNetworkError(error: unknown): string {
  if (!isNativeError(error)) return boundedText(error);
  const [code] = codesOf(error).slice(-1);
  const text = error.message === '' && isNativeError(error.cause) ? error.cause.message : error.message;
  // The message may contain names from the server's certificate, of any length.
  const line = boundedText((text === '' ? error.name : text).split('\n', 1)[0]?.replace(ADVICE_OF_NODE, ''));
  const named = code === undefined || line.includes(code) ? line : `${line} (${code})`;
  return lacksIPv6(error) ? `${named}: ${NO_IPV6}` : named;
}

/** Matches the advice of Node.js to install a CA. The advice does not help, because the kubeconfig contains the CA. */
const ADVICE_OF_NODE = /; if the root CA is installed locally, .*/;

const NO_ROUTE = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT', 'ENETUNREACH']);
const NO_IPV6 =
  'there is no IPv6 route from here. Functions have one only in dual-stack subnets (vpcSubnetIds) with vpcIpv6=true';

function lacksIPv6(error: Error): boolean {
  const address = 'address' in error ? error.address : undefined;
  return typeof address === 'string' && address.includes(':') && codesOf(error).some((code) => NO_ROUTE.has(code));
}
