/** Every A and AAAA record of a host name, canonical texts. `undefined`: the look-up failed, which says nothing. */
export type HostResolver = (host: string) => Promise<readonly string[] | undefined>;
