import { describe, expect, test } from '@jest/globals';
import { RANGE_KEYS } from '../../lib/cluster/spec-ranges.ts';
import { ExchangeError } from '../../lib/exchange/errors.ts';
import { closeAllocation } from '../../lib/exchange/import-ranges.ts';
import { registerCluster } from '../../lib/table/cluster-registration.ts';
import { readRange, saveRange } from '../../lib/table/ranges.ts';
import { EMBEDDED, embeddedAllocation, embeddedSpec } from '../../local/embedded-cluster.ts';
import { aTable, repairedAt } from '../support/stand-in.ts';

const EMPTY = new Uint8Array(0);

describe('an embedded cluster', () => {
  test('allocates by the registration of each moment: an import closes it and the pass after that opens it', async () => {
    const table = aTable();
    const registered = await registerCluster(
      table,
      embeddedSpec(EMBEDDED, 'none', () => 'http://127.0.0.1'),
    );
    const { allocation, addresses } = embeddedAllocation(EMBEDDED, table, () => 0);
    const saveUnder = async (generation: number) => {
      const before = await readRange(table, EMBEDDED.name, RANGE_KEYS.primary);
      const strikes = { once: EMPTY, twice: EMPTY };
      const data = before?.stored.data ?? EMPTY;
      const stored = { range: '10.0.0.0/24', data, allocator: 'table', generation, strikes, holds: [] } as const;
      await saveRange(table, EMBEDDED.name, RANGE_KEYS.primary, stored, before?.item);
    };

    await saveUnder(registered.rangesGeneration);
    await repairedAt(table, 0, EMBEDDED.name);
    expect(await allocation.allocateAddress('IPv4', '10.0.0.7')).toEqual({ item: '10.0.0.7' });

    const closing = await closeAllocation(table, registered);
    if (closing instanceof ExchangeError) throw closing;
    expect(await allocation.allocateAddress('IPv4', '10.0.0.8')).toMatchObject({ refusal: 'full' });
    expect(await addresses.allocate(['next'])).toMatchObject({ outcome: 'refused', error: { code: 'NotReady' } });

    await saveUnder(closing.opensAtGeneration);
    expect(await allocation.allocateAddress('IPv4', '10.0.0.8')).toEqual({ item: '10.0.0.8' });
    expect(await addresses.allocate([{ value: '10.0.0.9' }])).toEqual({ outcome: 'allocated', items: ['10.0.0.9'] });
  });
});
