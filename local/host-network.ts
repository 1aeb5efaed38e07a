import { readdirSync, readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { type HostInterface, type HostNetwork, IPV4_ROUTE_FILE, IPV6_ROUTE_FILE } from '../cli/spec/host-address.ts';

const SYSFS = '/sys/class/net';

/** Interface flags of `linux/if.h`. */
const UP = 0x1;
const LOOPBACK = 0x8;
const POINT_TO_POINT = 0x10;

/**
 * Reads this host's present routes and interfaces. `os.networkInterfaces()` lists only interfaces that are up and have
 * an address, and does not distinguish point-to-point links; on Linux the kernel's own list adds the others and their
 * flags. Elsewhere each listed interface counts as up and not as a point-to-point link.
 */
export function readHostNetwork(): HostNetwork {
  const ipv4 = readIfThere(IPV4_ROUTE_FILE);
  const ipv6 = readIfThere(IPV6_ROUTE_FILE);
  return {
    routes: { ...(ipv4 !== undefined && { ipv4 }), ...(ipv6 !== undefined && { ipv6 }) },
    interfaces: readInterfaces(),
  };
}

function readInterfaces(): HostInterface[] {
  const addressed = Object.entries(networkInterfaces()).flatMap(([label, addresses = []]) =>
    // `eth0:1` is a label of an address of eth0.
    addresses.map(({ address, family, cidr, internal }) => ({
      name: label.split(':', 1)[0] ?? label,
      internal,
      address: cidr ?? `${address}/${family === 'IPv4' ? 32 : 128}`,
    })),
  );
  const names = new Set([...addressed.map(({ name }) => name), ...kernelNames()]);
  return [...names].sort(byIndex).map((name) => {
    const own = addressed.filter((candidate) => candidate.name === name);
    const flags = kernelNumber(name, 'flags');
    return {
      name,
      up: flags === undefined || (flags & UP) !== 0,
      loopback: flags === undefined ? own.some(({ internal }) => internal) : (flags & LOOPBACK) !== 0,
      pointToPoint: flags !== undefined && (flags & POINT_TO_POINT) !== 0,
      addresses: own.map(({ address }) => address),
    };
  });
}

function byIndex(one: string, other: string): number {
  return (kernelNumber(one, 'ifindex') ?? 0) - (kernelNumber(other, 'ifindex') ?? 0);
}

function kernelNames(): string[] {
  try {
    return readdirSync(SYSFS).filter((name) => kernelNumber(name, 'ifindex') !== undefined);
  } catch (error) {
    return onlyIfMissing(error, []);
  }
}

function kernelNumber(name: string, attribute: 'flags' | 'ifindex'): number | undefined {
  const text = readIfThere(`${SYSFS}/${name}/${attribute}`);
  return text === undefined ? undefined : Number(text.trim());
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    return onlyIfMissing(error, undefined);
  }
}

/** A missing file is an answer; an unreadable one is an error. */
function onlyIfMissing<T>(error: unknown, answer: T): T {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOENT' || code === 'ENOTDIR') return answer;
  throw error;
}
