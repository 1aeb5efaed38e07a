import { writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect, jest, test } from '@jest/globals';
import { localTable } from '../../local/local-environment.ts';
import { newRunKey } from '../../local/local-request.ts';
import { openTableFolder, startTableServer } from '../../local/table-server.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const KEY = newRunKey();
const root = temporaryFolder();

/** The iterators of the database below dynalite. */
const requireAsDynalite = createRequire(createRequire(import.meta.url).resolve('dynalite'));
const { AbstractValueIterator } = createRequire(requireAsDynalite.resolve('level'))('abstract-level') as {
  readonly AbstractValueIterator: { readonly prototype: { close(): Promise<void> } };
};

test('the table server closes the database iterator of each query', async () => {
  const server = await startTableServer({ key: KEY });
  const table = localTable(server.client);
  await table.put({ cluster: 'c', key: 'k', value: 7, schema: 1 }, undefined);
  const close = jest.spyOn(AbstractValueIterator.prototype, 'close');
  for (let queries = 1; queries <= 3; queries++) {
    await table.list('c', '');
    await eventually(() => expect(close).toHaveBeenCalledTimes(queries));
  }
  close.mockRestore();
  await server.close();
});

test('the table server reports a folder that another process has open, and a path that is not a folder', async () => {
  const folder = join(root, 'locked');
  const server = await openTableFolder(folder, KEY);
  await expect(openTableFolder(folder, KEY)).rejects.toMatchObject({
    exitCode: 5,
    message: `The table in ${folder} cannot be opened: another process has it open. Name another folder with --data.`,
  });
  await server.close();
  const file = join(root, 'file');
  await writeFile(file, '');
  await expect(openTableFolder(file, KEY)).rejects.toMatchObject({
    exitCode: 5,
    message: expect.stringMatching(/cannot be opened: .*(not a directory|exists)/i),
  });
});
