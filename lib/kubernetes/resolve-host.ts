/**
 * Every A and AAAA record of a host name, canonical texts. `undefined`: the look-up failed, or the signal ended it, which
 * says nothing.
 */
export type HostResolver = (host: string, signal?: AbortSignal) => Promise<readonly string[] | undefined>;
