import type { ServiceClaim } from '../cluster/kubernetes-objects.ts';

/** Reads a list of Services while it arrives. Each call throws `OverBound`, or an error that says what is malformed. */
export interface ServiceListReader {
  /** The Services that end in this chunk. */
  push(chunk: Uint8Array): ServiceClaim[];
  /** Throws unless the list came whole. */
  end(): ListMeta;
}

export interface ListMeta {
  readonly resourceVersion: string;
  /** Empty when the list has all there is. */
  readonly continueToken: string;
}

/** A Service has a node port once, and there are no more. */
export const MOST_PORTS = 65_536;
/** The API has two; those of a Service that the API would refuse are reported. */
export const MOST_CLUSTER_IPS = 16;
/** Four times the longest name. */
export const LONGEST_CLAIM_TEXT = 1_024;
