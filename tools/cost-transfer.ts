// Bytes between the functions and API servers, as measured on a kube-apiserver 1.36.3 (docs/cost.md), and what they cost.
import { LOOPS, type Loop } from '../lib/cluster/cluster-spec.ts';
import { COUNTED_SECONDS, type Fleet, HOURS_OF_A_MONTH, usageOf } from './cost-calculation.ts';

/** Prices in US dollars, in us-east-1. */
const NETWORK_PRICES = {
  internetOutGb: 0.09,
  natGb: 0.045,
  natHour: 0.045,
  /** One cent on either side. */
  crossZoneGb: 0.02,
} as const;

interface Bytes {
  readonly out: number;
  readonly in: number;
}

/** Bytes of a list for each Service. An API server compresses a list of 128 KiB or more. */
interface ListBytes {
  readonly plain: number;
  readonly gzip: number;
}

interface LoopBytes {
  /** Calls of a pass that send the credential. */
  readonly calls: number;
  readonly pass: Bytes;
  readonly lists: readonly ListBytes[];
}

const NONE: Bytes = { out: 0, in: 0 };
const GZIP_FROM_BYTES = 128 * 1024;
/** Added to each call: the measured requests had no ServiceAccount token. */
const TOKEN_BYTES = 900;
const SERVICES: ListBytes = { plain: 1_225, gzip: 100 };
const IP_ADDRESSES: ListBytes = { plain: 366, gzip: 44 };
/** Bytes per Service of the cluster, of which 4 % can have node ports. */
const NODE_PORT_SERVICES: ListBytes = { plain: 55, gzip: 5.2 };

/** A resumed handshake. Connections of these loops have been idle for too long to be kept. */
const withHandshake = (pass: Bytes): Bytes => ({ out: pass.out + 1_750, in: pass.in + 1_460 });

const TRANSFER: Readonly<Record<Loop, LoopBytes>> = {
  'system-namespaces': { calls: 4, pass: withHandshake({ out: 1_070, in: 3_530 }), lists: [] },
  'kubernetes-service': { calls: 3, pass: { out: 920, in: 3_530 }, lists: [] },
  'cluster-ip-repair': { calls: 3, pass: withHandshake({ out: 990, in: 3_000 }), lists: [SERVICES, IP_ADDRESSES] },
  'node-port-repair': { calls: 1, pass: withHandshake({ out: 380, in: 700 }), lists: [NODE_PORT_SERVICES] },
};

const NEW_PROBE: Bytes = { out: 518, in: 2_790 };
const KEPT_PROBE: Bytes = { out: 159, in: 398 };
/** The limit in `lib/kubernetes/transport.ts`. */
const MOST_KEPT = 128;
const LONGEST_KEPT_SECONDS = 25;

/** Returns the mean bytes of a probe, if one process receives the ticks of all clusters, or each process any of them. */
export function probeBytes({ clusters, servers, interval = 10 }: Fleet): Bytes {
  const kept = Math.min(1, MOST_KEPT / (clusters * servers)) * (1 - 1 / Math.ceil(LONGEST_KEPT_SECONDS / interval));
  const mean = (side: keyof Bytes) => NEW_PROBE[side] * (1 - kept) + KEPT_PROBE[side] * kept;
  return { out: mean('out'), in: mean('in') };
}

/** Returns the GB that a healthy fleet exchanges with its API servers in a month. */
export function monthlyTransfer(fleet: Fleet): Bytes {
  const each = LOOPS.map((loop) => {
    const { calls, pass, lists } = TRANSFER[loop];
    const gb = (usageOf(loop, fleet).passes * HOURS_OF_A_MONTH * 3600) / COUNTED_SECONDS / 1e9;
    const listed = lists.reduce((sum, list) => sum + listBytes(list, fleet.services), 0);
    const probe = loop === 'kubernetes-service' ? probeBytes(fleet) : NONE;
    return {
      out: gb * (pass.out + calls * TOKEN_BYTES + probe.out * fleet.servers),
      in: gb * (pass.in + probe.in * fleet.servers + listed),
    };
  });
  return each.reduce((sum, bytes) => ({ out: sum.out + bytes.out, in: sum.in + bytes.in }), NONE);
}

function listBytes({ plain, gzip }: ListBytes, services: number): number {
  return services * (services * plain < GZIP_FROM_BYTES ? plain : gzip);
}

/** Returns the cost of a month's transfer, by network path to the API servers. */
export function networkCost(fleet: Fleet) {
  const { out, in: received } = monthlyTransfer(fleet);
  const { internetOutGb, natGb, natHour, crossZoneGb } = NETWORK_PRICES;
  return {
    gb: out + received,
    /** Functions outside a VPC. */
    internet: out * internetOutGb,
    /** Functions in a VPC, to API servers of another network of AWS; and the gateway, which other traffic shares. */
    nat: (out + received) * natGb,
    natGateway: HOURS_OF_A_MONTH * natHour,
    /** API servers of three zones in the same VPC, or one that is peered. */
    crossZone: ((out + received) * crossZoneGb * 2) / 3,
  };
}
