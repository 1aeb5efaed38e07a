const HEADER = 'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT   ';
const ZERO = '0'.repeat(32);

/** Lines as the kernel writes them. */
export const routesIn = {
  gateway: 'eth3\t00000000\t0100FE0A\t0003\t0\t0\t1024\t00000000\t0\t0\t0   ',
  link: 'eth3\t0000FE0A\t00000000\t0001\t0\t0\t0\t0080FFFF\t0\t0\t0   ',
  docker: 'docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0   ',
  gateway6: `${ZERO} 00 ${ZERO} 00 20010001000000000000000000000001 00000064 00000000 00000000 00000003     eth3`,
  link6: `20010002000000000000000000000000 40 ${ZERO} 00 ${ZERO} 00000100 00000000 00000000 00000001     eth3`,
  loopback6: `${ZERO} 60 ${ZERO} 00 ${ZERO} 00000400 00000000 00000000 00200200       lo`,
} as const;

/** The text of `/proc/net/route`. */
export function ipv4Table(lines: readonly string[]): string {
  return [HEADER, ...lines].map((line) => `${line}\n`).join('');
}

/** The text of `/proc/net/ipv6_route`. */
export function ipv6Table(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}
