import type { Clock } from './clock.ts';
import { ControlPlane, type HttpReply } from './control-plane.ts';

export interface Server {
  readonly address: string;
  plane: ControlPlane;
  /** The CA that signed its certificate. */
  ca: string;
  /** The credentials that it accepts. */
  readonly tokens: Set<string>;
  state: 'up' | 'down' | 'silent' | 'shuttingDown' | 'notReady';
}

/** In front of all API servers of a control plane: goes to any that answers. The next control plane has the next address. */
export const BALANCER = '192.0.2.100';
export const ADDRESSES = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4', '192.0.2.5'] as const;
/** Of the second family: each is a network path of its own. */
export const SECOND_ADDRESSES: readonly string[] = ['2001:db8::1', '2001:db8::2'];
/** Of the spec, and not there yet: more than are probed at a time. */
export const SPARES: readonly string[] = Array.from({ length: 16 }, (_, index) => `192.0.2.${11 + index}`);
export const HOST = 'api.example';

/** The API servers, the network paths to them, and what the name server says: the truth that endpoints are held against. */
export class ApiServers {
  readonly all = new Map<string, Server>();
  /** Not reached from the functions. */
  readonly cutOff = new Set<string>();
  /** The control plane that the people use. */
  plane = new ControlPlane();
  hasMoved = false;
  /** A rotation of CA and token is under way. */
  isRotating = false;
  hasRotated = false;
  /** Only the balancer answers the functions: probes go another way. */
  areProbesCut = false;
  ca = 'ca-1';
  token = 'Bearer token-1';
  /** What the secret has. */
  kubeconfig: { readonly server: string; readonly ca: string; readonly token: string };
  records: readonly string[] = [ADDRESSES[3]];
  readonly formerRecords = new Set<string>();
  /** Name servers do not answer. */
  areNamesLost = false;
  readonly #balancers = new Map<string, ControlPlane>();
  /** Called when one is not as it should be. */
  onBad: (address: string) => void = () => {};
  readonly #clock: Clock;
  /** When each was last not as an API server should be, as seen by the functions. */
  readonly #badUntilMs = new Map<string, number>();

  constructor(clock: Clock, host: string, secondAddresses: readonly string[]) {
    this.#clock = clock;
    this.#balancers.set(BALANCER, this.plane);
    for (const address of [...ADDRESSES, ...secondAddresses]) {
      const tokens = new Set([this.token]);
      this.all.set(address, { address, plane: this.plane, ca: this.ca, tokens, state: 'up' });
    }
    this.kubeconfig = { server: `https://${host}:6443`, ca: this.ca, token: this.token };
  }

  server(address: string): Server {
    const server = this.all.get(address);
    if (server === undefined) throw new Error(`no server ${address}`);
    return server;
  }

  /** The server behind a host name of the kubeconfig or of a probe, when it accepts connections. */
  reached(host: string): Server | undefined {
    const plane = this.#balancers.get(host);
    if (plane === undefined) return this.cutOff.has(host) ? undefined : connectable(this.all.get(host));
    const behind = [...this.all.values()].filter(
      (server) => server.plane === plane && !this.cutOff.has(server.address),
    );
    return behind.find(({ state }) => state === 'up') ?? behind.find(connectable);
  }

  /** These servers get a control plane of their own, with all objects, and the secret its address. The old one still answers. */
  move(addresses: readonly string[]): void {
    const { onWrite } = this.plane;
    const plane = new ControlPlane(this.plane);
    this.plane.onWrite = () => {};
    this.plane = Object.assign(plane, { onWrite });
    for (const address of addresses) this.set(address, { plane, state: 'up' });
    const balancer = `${BALANCER.slice(0, -1)}${this.#balancers.size}`;
    this.#balancers.set(balancer, plane);
    this.kubeconfig = { ...this.kubeconfig, server: `https://${balancer}:6443` };
  }

  /** Whether the secret has the CA of the server. */
  isTrusted(host: string): boolean {
    const ca = this.all.get(host)?.ca;
    return ca === undefined || trusts(this.kubeconfig.ca, ca);
  }

  /** Cuts the paths to all servers, or restores them. */
  cutAll(isCut: boolean): void {
    for (const address of this.all.keys()) this.cut(address, isCut);
  }

  cutProbes(isCut: boolean): void {
    this.areProbesCut = isCut;
    for (const address of this.all.keys()) this.notice(address);
  }

  isSilent(host: string): boolean {
    return this.cutOff.has(host) || this.all.get(host)?.state === 'silent';
  }

  readiness({ state }: Server): HttpReply {
    if (state === 'shuttingDown') return { status: 500, body: '[-]shutdown failed: reason withheld' };
    return state === 'notReady' ? { status: 503, body: '' } : { status: 200, body: 'ok' };
  }

  /** Writes another CA and token into the secret. */
  renew(change: Pick<ApiServers, 'ca' | 'token'>): void {
    Object.assign(this, change);
    this.kubeconfig = { ...this.kubeconfig, ...change };
  }

  set(address: string, change: Partial<Server>): void {
    Object.assign(this.server(address), change);
    this.notice(address);
  }

  cut(address: string, isCut: boolean): void {
    if (isCut) this.cutOff.add(address);
    else this.cutOff.delete(address);
    this.notice(address);
  }

  /** Call after each change, and when a probe failed for another reason. */
  notice(address: string): void {
    this.#badUntilMs.set(address, this.#clock.nowMs);
    this.onBad(address);
  }

  /** Whether probes of the functions are answered as they should be. */
  isGood(address: string): boolean {
    return this.all.get(address)?.state === 'up' && !this.cutOff.has(address) && !this.areProbesCut;
  }

  wasGoodSince(address: string, sinceMs: number): boolean {
    return this.isGood(address) && (this.#badUntilMs.get(address) ?? 0) < sinceMs;
  }
}

function connectable(server: Server | undefined): Server | undefined {
  return server?.state === 'down' || server?.state === 'silent' ? undefined : server;
}

/** Whether a certificate of one CA is accepted by a kubeconfig that has one or several. */
export function trusts(authorities: string, ca: string): boolean {
  return authorities.split('+').includes(ca);
}
