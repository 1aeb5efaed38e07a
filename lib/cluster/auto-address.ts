import type { AddressChoice } from './address-choice.ts';

export interface SpecOptions {
  /**
   * What `address: auto` stands for: given only by code that runs on the API server's own host, where there are
   * routes and interfaces to choose from (`chooseAdvertiseAddress`). Without it `auto` is refused. Asked only when the
   * spec says `auto`.
   */
  readonly autoAddress?: () => AddressChoice;
}

export const AUTO = 'auto';
const NOT_HERE = "an address may be auto only in code that runs on the API server's own host";

/** Puts the chosen address where the spec says `auto`; what could not be replaced is for the rules to refuse. */
export function withAutoAddress(value: unknown, { autoAddress }: SpecOptions): { value: unknown; refusal: string } {
  const servers = isMapping(value) && Array.isArray(value['apiServers']) ? value['apiServers'] : [];
  if (autoAddress === undefined || !servers.some(saysAuto)) return { value, refusal: NOT_HERE };

  const choice = autoAddress();
  if (choice instanceof Error) return { value, refusal: choice.message };
  const chosen = servers.map((server) => (saysAuto(server) ? { ...server, address: choice.address } : server));
  return { value: { ...Object(value), apiServers: chosen }, refusal: NOT_HERE };
}

function saysAuto(server: unknown): server is { readonly address: string } {
  return isMapping(server) && server['address'] === AUTO;
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
