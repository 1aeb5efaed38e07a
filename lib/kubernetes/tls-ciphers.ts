import { DEFAULT_CIPHERS } from 'node:tls';

/**
 * Without DHE: the server chooses its group, and one of 10,000 bits blocks the event loop for a second at each
 * handshake, before any certificate is verified. No Kubernetes API server speaks it.
 */
export const CIPHERS = `${DEFAULT_CIPHERS}:!DHE`;
