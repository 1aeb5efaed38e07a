import { LOOPS } from './cluster-spec.ts';
import { LEASE_INTERVALS, SCHEDULE_SECONDS } from './schedules.ts';
import { fault, type SpecFault } from './spec-fault.ts';
import type { SpecDraft } from './spec-shape.ts';

const DAY_SECONDS = 86_400;
const MOST_EVENTS = 10_000;

/** A pass runs when its schedule does: an interval that is no multiple of it could not be kept. */
export function intervalFaults({ intervalSeconds }: SpecDraft): SpecFault[] {
  return LOOPS.flatMap((loop) => {
    const seconds = intervalSeconds?.[loop];
    const schedule = SCHEDULE_SECONDS[loop];
    if (seconds === undefined || (seconds > 0 && seconds <= DAY_SECONDS && seconds % schedule === 0)) return [];
    const fix = `write a multiple of ${schedule}, at most ${DAY_SECONDS} (a day)`;
    return [
      fault(
        ['intervalSeconds', loop],
        `${loop} cannot run every ${seconds} s: its schedule is every ${schedule} s`,
        fix,
      ),
    ];
  });
}

/** Else a tick that comes a little late would find every lease run out. */
export function leaseFaults({ endpoints, intervalSeconds }: SpecDraft): SpecFault[] {
  const { leaseSeconds, reconciler } = endpoints ?? {};
  if (leaseSeconds === undefined || reconciler === undefined || reconciler === 'none') return [];
  const at = ['endpoints', 'leaseSeconds'];
  if (leaseSeconds < 1 || leaseSeconds > DAY_SECONDS) {
    return [fault(at, `${leaseSeconds} s is no time for a lease`, `write seconds from 15 to ${DAY_SECONDS} (a day)`)];
  }
  const interval = intervalSeconds?.['kubernetes-service'];
  if (interval === undefined || leaseSeconds >= LEASE_INTERVALS * interval) return [];
  const message = `${leaseSeconds} s is less than ${LEASE_INTERVALS} times the interval of kubernetes-service, ${interval} s`;
  return [fault(at, message, `write ${Math.ceil(LEASE_INTERVALS * interval)} or more`)];
}

export function masterCountFaults({ endpoints, apiServers }: SpecDraft): SpecFault[] {
  const { masterCount, reconciler } = endpoints ?? {};
  if (masterCount === undefined) return [];
  const at = ['endpoints', 'masterCount'];
  if (masterCount < 1) {
    const message = `--apiserver-count should be a positive number, but value '${masterCount}' provided`;
    return [fault(at, message, 'write the number of API servers')];
  }
  const servers = apiServers?.length ?? 0;
  if (reconciler !== 'master-count' || masterCount >= servers) return [];
  return [
    fault(at, `${masterCount} is less than the ${servers} API servers in apiServers`, `write ${servers} or more`),
  ];
}

export function maxEventsFaults({ maxEventsPerPass: most }: SpecDraft): SpecFault[] {
  if (most === undefined || (most >= 0 && most <= MOST_EVENTS)) return [];
  return [fault(['maxEventsPerPass'], `${most} is no number of events`, `write a number from 0 to ${MOST_EVENTS}`)];
}
