import { once } from 'node:events';
import type { Server } from 'node:http';
import { InvalidArgumentError } from 'commander';
import { codeOf } from '../lib/util/values.ts';
import { closeAtOnce } from '../local/local-server.ts';
import { configurationError } from './errors.ts';

export interface ListenAddress {
  /** The address to listen at. If absent, the server listens at all addresses of this machine. */
  readonly host?: string;
  readonly port: number;
}

/** Parses `127.0.0.1:9464`, `[::1]:9464` or `:9464`. @throws InvalidArgumentError of commander */
export function parseListenAddress(text: string): ListenAddress {
  const [, inBrackets, plain, digits] = /^(?:\[([^\]]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (digits === undefined || port > 65_535) {
    throw new InvalidArgumentError('Use an address with a port, such as 127.0.0.1:9464, [::1]:9464 or :9464.');
  }
  const host = inBrackets ?? plain;
  return host ? { host, port } : { port };
}

/** Waits until the server listens. @returns a function that closes it and aborts `ended` @throws CliError if it cannot listen */
export async function listening(
  server: Server,
  { host, port }: ListenAddress,
  what: string,
  ended: AbortController,
): Promise<() => Promise<void>> {
  try {
    await once(server.listen({ port, host }), 'listening');
  } catch (cause) {
    throw configurationError(
      `${what} cannot be served at port ${port} of ${host ?? 'this machine'} (${codeOf(cause)}): choose another port or address.`,
      { cause },
    );
  }
  return async () => {
    ended.abort();
    await closeAtOnce(server);
  };
}
