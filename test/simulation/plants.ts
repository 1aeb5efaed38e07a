/** A defect that is put into the code while it is loaded: the simulation has to find it. */
export interface Plant {
  readonly id: string;
  /** What is wrong with it. */
  readonly defect: string;
  readonly edits: readonly Edit[];
  /** Why no history can show it. */
  readonly unseen?: string;
}

export interface Edit {
  readonly file: string;
  /** Occurs there exactly once. */
  readonly find: string;
  readonly replace: string;
}

const edit = (file: string, find: string, replace: string): Edit => ({ file, find, replace });

/** In every run of minutes: more writers follow than an item remembers, and the TTL removes items while they are used. */
export const SCALES: readonly Edit[] = [
  edit('lib/table/stored-item.ts', 'const WRITES_KEPT = 64;', 'const WRITES_KEPT = 1;'),
  edit('lib/table/dynamodb-items.ts', 'const SWEEP_DELAY_MS = 60 * 60 * 1000;', 'const SWEEP_DELAY_MS = 5_000;'),
  edit('lib/table/requests.ts', 'const KEPT_MS = 24 * 60 * 60 * 1000;', 'const KEPT_MS = 90_000;'),
  edit('lib/table/leases.ts', 'Math.max(0, ...ends) + REMEMBERED_MS', 'Math.max(0, ...ends) + REMEMBERED_MS / 7_200'),
];

const plant = (id: string, defect: string, file: string, find: string, replace: string, unseen?: string): Plant => ({
  id,
  defect,
  edits: [edit(file, find, replace)],
  ...(unseen !== undefined && { unseen }),
});

const NEXT = 'lib/endpoints/next-lease.ts';
const DECISIONS = 'lib/endpoints/lease-decisions.ts';
const LEASES = 'lib/table/leases.ts';
const LEAKS = 'lib/repair/leaks.ts';
const OPERATIONS = 'lib/range/operations.ts';

export const PLANTS: readonly Plant[] = [
  plant(
    '1',
    'a lost put of the leases overwrites what another writer did',
    LEASES,
    'open = stillOpen();',
    'open = changes;',
  ),
  plant(
    '2',
    'the leases are not read again before a write',
    'lib/loops/kubernetes-service.ts',
    'if (!plan.isQuiet) {',
    'if (plan === undefined) {',
  ),
  plant('3', 'one miss removes an address', NEXT, 'MISSES_TO_GO = 2', 'MISSES_TO_GO = 1'),
  plant(
    '4',
    'the second strike frees',
    LEAKS,
    '[unstruck, once, twice, freed][strikes]',
    '[unstruck, once, freed, freed][strikes]',
  ),
  plant(
    '5',
    'a write whose outcome is unclear is repeated as if it had been lost',
    'lib/table/guaranteed-update.ts',
    "if (outcome === 'unclear' && !isRepeatable) throw unclear(cluster, key);",
    '',
  ),
  plant(
    '6',
    'an unclear put of the leases is taken as won',
    LEASES,
    "if (result.outcome === 'unclear') break;",
    "if (result.outcome === 'unclear') return { written: new Set(open.keys()), present: { leases: afterChanges(read.leases, open), item: read.item }, unwritten: new Map() };",
  ),
  plant(
    '7',
    'a hold is freed 30 s before its end',
    'lib/range/hold.ts',
    'isOver(hold, nowMs - HOLD_END_MARGIN_MS)',
    'isOver(hold, nowMs + 30_000)',
  ),
  plant(
    '8',
    "an agent's refresh forgets the withdrawal",
    'cli/heartbeat/heartbeat.ts',
    'nextLease(before, { answer, ...event }, atMs)',
    "nextLease(answer === 'ready' ? newLease(address) : before, { answer, ...event }, atMs)",
  ),
  plant(
    '9',
    'a merge frees what was allocated since the range was read',
    'lib/range/merge.ts',
    'data: subtract(newest.data, subtract(freed, changed))',
    'data: subtract(newest.data, freed)',
  ),
  plant(
    '10',
    'allocation ignores that the range is older than the spec',
    'lib/range/configured-range.ts',
    "if (stored.allocator !== 'table' || stored.generation < range.rangesGeneration) return",
    "if (stored.allocator !== 'table') return",
  ),
  plant(
    '11',
    'the registration is not read again before a write',
    'lib/dispatch/run-pass.ts',
    'const confirmWrites = () => confirmRegistration(environment, input, table);',
    'const confirmWrites = async () => {};',
  ),
  plant(
    '12',
    'silence counts as a miss although no server answered',
    DECISIONS,
    '...((isProven || isAgents) && { miss }),',
    '...((isProven || isAgents || true) && { miss }),',
  ),
  plant(
    '13',
    'a release ignores the hold that was expected',
    OPERATIONS,
    'return before === undefined || hold === undefined ? before === hold : sameTerms(hold, before);',
    'return true;',
  ),
  plant(
    '14',
    'a release that may still be running is taken over',
    'lib/allocate/items.ts',
    "if (state !== 'begun' || hold !== undefined || nowMs >= busyUntilMs) return undefined;",
    'if (nowMs > 0) return undefined;',
  ),
  plant(
    '15',
    'a second delivery of one pass strikes again',
    LEAKS,
    'return last === undefined || (last.passId !== passId && nowMs - last.atMs >= (intervalMs * 2) / 3);',
    'return last === undefined || last.passId !== passId;',
  ),
  plant(
    '16',
    'a deregistration answers that an address is not published while a tick creates the Endpoints with it',
    'lib/api-servers/remove-address.ts',
    'if (mayBeAdded && !isThere) return true;',
    '',
  ),
  plant(
    '17',
    'a lost write of a lease removes a healthy address',
    'lib/loops/endpoints-decide.ts',
    'return seen !== undefined && isActive(seen, nowMs) && !isWithdrawn(lease, nowMs) ? seen : lease;',
    'return lease;',
  ),
  plant(
    '18',
    'allocation is open although no repair succeeded lately',
    'lib/table/run-records.ts',
    'return isRecent ? undefined : unrepaired(name, loop, lastMs);',
    'return undefined;',
  ),
  plant(
    '19',
    'the change from observe to enforce does not close allocation',
    'lib/table/cluster-registration.ts',
    'before !== undefined && !isOpened && sameRangesIn(before.spec, spec)',
    'before !== undefined && sameRangesIn(before.spec, spec)',
  ),
  plant(
    '20',
    'a request that is rolled back keeps its items',
    'lib/allocate/execute-request.ts',
    'if (!(await rollBack(context, record))) return',
    'if (rollBack === undefined) return',
  ),
  plant(
    '21',
    'strikes from before a time of observing still count',
    LEAKS,
    'return fromZero || listed !== controlPlane ? NO_STRIKES : stored;',
    'return listed !== controlPlane ? NO_STRIKES : stored;',
  ),
  plant(
    '22',
    'a second miss counts right after the first',
    NEXT,
    'return sinceMs < shortestMs ? undefined : Math.min',
    'return Math.min',
  ),
  plant(
    '23',
    'misses from before the lease expired count after it',
    NEXT,
    'misses >= MISSES_TO_GO && (missedAtMs === undefined || missedAtMs >= expiresAtMs)',
    'misses >= MISSES_TO_GO',
  ),
  plant(
    '24',
    'a hold that changed meanwhile is claimed',
    OPERATIONS,
    'return isExpected && !isOver(hold, nowMs)',
    'return !isOver(hold, nowMs)',
  ),
  plant(
    '25',
    'the first sighting frees',
    LEAKS,
    '[unstruck, once, twice, freed][strikes]',
    '[unstruck, freed, freed, freed][strikes]',
  ),
  {
    id: '26',
    defect: 'two deregistrations at once decide by leases from before both, and remove the last two addresses',
    edits: [
      edit('lib/api-servers/deregister.ts', '{ leaseOf, updateLease }', '{ leaseOf, readLeases, updateLease }'),
      edit(
        'lib/api-servers/deregister.ts',
        'const marked = await',
        'const early = (await readLeases(table, spec.name)).leases;\n  const marked = await',
      ),
      edit(
        'lib/api-servers/deregister.ts',
        'refusalOf(request, address, leases)',
        'refusalOf(request, address, early)',
      ),
    ],
  },
  plant(
    '27',
    'a shorter deregistration shortens a longer one',
    NEXT,
    'withdrawnUntilMs: Math.max(untilMs, already?.withdrawnUntilMs ?? 0),',
    'withdrawnUntilMs: untilMs,',
  ),
  plant(
    '28',
    'after more later writers than an item remembers, an own write counts as lost',
    'lib/table/stored-item.ts',
    "return previous !== undefined && isFollowed(there, previous.writeId) ? 'lost' : undefined;",
    "return 'lost';",
  ),
  plant(
    '29',
    'a Service claims what another request holds for its own Service',
    'lib/allocate/request-context.ts',
    'allowed.filter((_, index) => others[index] === false)',
    'allowed.filter((_, index) => others[index] !== undefined)',
  ),
  plant(
    '30',
    'a namespace may take all that is free',
    'lib/range/service-allocation.ts',
    'count <= free && ownBits + count <= Math.max(LEAST_UNCLAIMED, free - count)',
    'count <= free',
  ),
  plant(
    '31',
    'a decision is merged onto a range of a newer spec',
    'lib/range/merge.ts',
    "if (newest.generation > next.generation) return 'newerSpec';",
    '',
  ),
  plant(
    '32',
    'a pause during a pass is ignored',
    'lib/dispatch/run-pass.ts',
    'if (pause !== undefined) throw ended(',
    'if (pause === null) throw ended(',
  ),
  plant(
    '33',
    'an unclear save of a range is taken as saved',
    'lib/loops/repair.ts',
    "if (saved.outcome === 'unclear') {",
    "if (saved.outcome === 'unclear') return changeOf(start, save);\n  if (saved.outcome === undefined) {",
  ),
  plant(
    '34',
    'what is remembered of a lease ends at once',
    LEASES,
    'const REMEMBERED_MS = 24 * 60 * 60 * 1000;',
    'const REMEMBERED_MS = 0;',
    'The table removes the item an hour after it expired at the earliest, and a published address without a lease is probed and remembered again before anything removes it.',
  ),
  plant(
    '35',
    'undoing a review frees although a later review of the name was answered',
    'lib/range/service-allocation.ts',
    'now.reviews === reviews ? [...now.first, ...now.later] : []',
    '[...now.first, ...now.later]',
  ),
  plant(
    '36',
    'closing allocation does not close it',
    'lib/table/cluster-registration.ts',
    'const cluster = { ...known, generation, rangesGeneration: generation };',
    'const cluster = { ...known, generation };',
  ),
  plant(
    'deregister-unleased',
    'a deregistration removes published addresses that have no valid lease',
    'lib/api-servers/remove-address.ts',
    '[...new Set([...others, ...staying])].sort()',
    '(staying === undefined ? [] : others)',
  ),
  {
    id: 'late-process',
    defect: 'a probe without an answer never counts in a process that is late in each tick',
    edits: [
      edit(
        'lib/kubernetes/https-prober.ts',
        'return reply.late ? { ...(await probeFor(AGAIN_MS, target, end, options)), late: true } : reply;',
        'return reply;',
      ),
      edit(
        DECISIONS,
        "if (outcome === undefined || (outcome.verdict === 'unknown' && !outcome.late)) return undefined;",
        "if (outcome === undefined || outcome.verdict === 'unknown') return undefined;",
      ),
    ],
  },
  plant(
    'rotated-ca',
    'a probe fails for a certificate of a CA that the kept kubeconfig does not have',
    'lib/environment/cluster-connections.ts',
    'probe: renewingProber(kubeconfig, proberOf),',
    'probe: proberOf(access),',
  ),
  plant(
    'moved-control-plane',
    'passes free by a kubeconfig that was read hours ago, although the control plane has moved',
    'lib/environment/cluster-connections.ts',
    'const isFresh = known !== undefined && Math.abs(this.#options.nowMs() - known.readAtMs) <= maxAgeMs;',
    'const isFresh = known !== undefined && maxAgeMs > 0;',
  ),
  {
    id: 'lossy-path',
    defect:
      'a cluster whose probes are answered is retried with backoff, and a miss is forgotten after three intervals',
    edits: [
      edit('lib/dispatch/due.ts', 'if (isAnyProbeAnswered || !(error', 'if (!(error'),
      edit(
        'lib/dispatch/due.ts',
        'const doublings = Math.max(0, withoutAnswer - 1);',
        'const doublings = withoutAnswer;',
      ),
      edit(DECISIONS, 'longestMs: TRIES_TO_MISS_AGAIN * triesEveryMs', 'longestMs: TRIES_TO_MISS_AGAIN * intervalMs'),
    ],
  },
  plant(
    'pause-of-all',
    'a pass that runs does not read the pause of all clusters again',
    'lib/dispatch/run-pass.ts',
    'pauseInForce([pausedAll, current?.paused], environment.nowMs())',
    'pauseInForce([current?.paused], environment.nowMs())',
  ),
  {
    id: 'remembered-list',
    defect: 'passes use the registrations and pauses of a remembered cluster list',
    edits: [
      edit('lib/dispatch/cluster-list.ts', 'list: { ...list, clusters: new Map() }', 'list'),
      edit(
        'lib/dispatch/run-pass.ts',
        'const confirmWrites = () => confirmRegistration(environment, input, table);',
        'const confirmWrites = async () => {};',
      ),
    ],
  },
  plant(
    'late-write',
    'a late write of a tick publishes an address after its deregistration',
    'lib/api-servers/remove-address.ts',
    'if (mayBeAdded) changes.push(...(await fence(removal)));',
    'void [mayBeAdded, fence];',
  ),
  plant(
    'silent-addresses',
    'of more than 16 addresses those at the end are never probed if the others are silent',
    'lib/loops/endpoints-gather.ts',
    '...inTurn(toProbe, leases, turn)]',
    '...(turn === undefined ? inTurn([], [], turn) : toProbe)]',
  ),
  plant(
    'skewed-host',
    'a function uses the clock of its host, which is 16 minutes off',
    'lib/table/server-clock.ts',
    'nowMs: () => nowMs() + correctionBy(replies),',
    'nowMs,',
  ),
  plant(
    'killed-server',
    'no pass reaches the cluster while the server of the kubeconfig is down',
    'lib/environment/cluster-connections.ts',
    'if (!MAY_USE_ANOTHER.has(loop) || otherServers(spec, access).length === 0) return own;',
    'void [MAY_USE_ANOTHER, loop];\n    if (otherServers(spec, access).length >= 0) return own;',
  ),
];
