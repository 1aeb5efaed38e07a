import type { ServerReply } from '../support/object-server.ts';
import { ControlPlane } from './control-plane.ts';
import type { World } from './world.ts';

export interface Server {
  readonly address: string;
  plane: ControlPlane;
  ca: string;
  readonly tokens: Set<string>;
  state: 'up' | 'down' | 'silent' | 'shuttingDown' | 'notReady';
}

/**
 * The address of the load balancer of the first control plane, which forwards to any server that answers. The load balancer of
 * the next control plane has the next higher address.
 */
const BALANCER = '192.0.2.100';
export const ADDRESSES = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4', '192.0.2.5'] as const;
/** The addresses of the second family. Each has its own network path. */
export const SECOND_ADDRESSES: readonly string[] = ['2001:db8::1', '2001:db8::2'];
/** Addresses of the spec without a server yet, more than a pass probes at a time. */
export const SPARES: readonly string[] = Array.from({ length: 16 }, (_, index) => `192.0.2.${11 + index}`);
export const HOST = 'api.example';
/** The host names of a load balancer in the management cluster, each with its address. */
export const BALANCED = [
  { name: 'a.example', address: ADDRESSES[3] },
  { name: 'b.example', address: ADDRESSES[4] },
] as const;
export const BALANCED_SERVICE = { namespace: 'tenants', name: 'prod' } as const;

/** The API servers, the network paths to them, and the DNS records: the facts against which endpoints are checked. */
export class ApiServers {
  readonly all = new Map<string, Server>();
  /** The servers that the functions cannot reach. */
  readonly cutOff = new Set<string>();
  /** The control plane that the people use. */
  plane = new ControlPlane();
  /** The control plane before a move. Passes may use it as long as it answers. */
  formerPlane: ControlPlane | undefined;
  /** True while the CA and the token are being rotated. */
  isRotating = false;
  hasRotated = false;
  /** True while all probes of the functions fail and only the load balancer answers. */
  areProbesCut = false;
  ca = 'ca-1';
  token = 'Bearer token-1';
  /** The kubeconfig in the secret. */
  kubeconfig: { readonly server: string; readonly ca: string; readonly token: string };
  records: readonly string[] = [ADDRESSES[3]];
  readonly formerRecords = new Set<string>();
  /** The host name whose look-up fails. */
  lostName: string | undefined;
  /** Called for each write of Endpoints and slices. Returns the delay of the write, whose sender then gives up. */
  delayOfWrite: ((kind: string, body: string) => number | undefined) | undefined;
  readonly #balancers = new Map<string, ControlPlane>();
  readonly #world: World;
  /** The last time at which the functions could see each server as not healthy. */
  readonly #badUntilMs = new Map<string, number>();

  constructor(world: World) {
    this.#world = world;
    this.#balancers.set(BALANCER, this.plane);
    const host = world.has('oneServerKubeconfig') ? ADDRESSES[0] : BALANCER;
    for (const address of [...ADDRESSES, ...(world.has('secondFamily') ? SECOND_ADDRESSES : [])]) {
      const tokens = new Set([this.token]);
      this.all.set(address, { address, plane: this.plane, ca: this.ca, tokens, state: 'up' });
    }
    this.kubeconfig = { server: `https://${host}:6443`, ca: this.ca, token: this.token };
  }

  /** Returns the DNS records of a host name; `undefined` if the look-up fails. */
  recordsOf(name: string): readonly string[] | undefined {
    if (name === this.lostName) return undefined;
    const balanced = BALANCED.find((each) => each.name === name);
    return balanced === undefined ? this.records : [balanced.address];
  }

  server(address: string): Server {
    const server = this.all.get(address);
    if (server === undefined) throw new Error(`no server ${address}`);
    return server;
  }

  /** Returns the server behind a host of the kubeconfig or of a probe, if the server accepts connections. */
  reached(host: string): Server | undefined {
    const plane = this.#balancers.get(host);
    if (plane === undefined) return this.cutOff.has(host) ? undefined : connectable(this.all.get(host));
    const behind = [...this.all.values()].filter(
      (server) => server.plane === plane && !this.cutOff.has(server.address),
    );
    return behind.find(({ state }) => state === 'up') ?? behind.find(connectable);
  }

  get hasMoved(): boolean {
    return this.formerPlane !== undefined;
  }

  /**
   * Gives these servers a control plane of their own with a copy of all objects, and writes its address into the secret, perhaps
   * with another CA and token. The old one still answers.
   */
  move(addresses: readonly string[], isRenewed: boolean): void {
    const { onWrite } = this.plane;
    const plane = new ControlPlane(this.plane);
    this.plane.onWrite = () => {};
    this.formerPlane = this.plane;
    this.plane = Object.assign(plane, { onWrite });
    const balancer = `${BALANCER.slice(0, -1)}${this.#balancers.size}`;
    if (isRenewed) this.renew({ ca: `ca of ${balancer}`, token: `Bearer ${balancer}` });
    const renewed = isRenewed && { ca: this.ca, tokens: new Set([this.token]) };
    for (const address of addresses) this.set(address, { plane, state: 'up', ...renewed });
    this.#balancers.set(balancer, plane);
    this.kubeconfig = { ...this.kubeconfig, server: `https://${balancer}:6443` };
  }

  /** Returns whether the CA of the server is in the secret. */
  isTrusted(host: string): boolean {
    const ca = this.all.get(host)?.ca;
    return ca === undefined || trusts(this.kubeconfig.ca, ca);
  }

  /** Cuts the network paths to all servers, or restores them. */
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

  readiness({ state }: Server): ServerReply {
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

  /** Records that a server was not healthy. Call it after each change, and after a probe that failed for another reason. */
  notice(address: string): void {
    this.#badUntilMs.set(address, this.#world.clock.nowMs);
  }

  /** Returns whether the server is up and probes of it reach it. */
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

/** Returns whether a kubeconfig with one or several CAs accepts a certificate of a CA. */
export function trusts(authorities: string, ca: string): boolean {
  return authorities.split('+').includes(ca);
}
