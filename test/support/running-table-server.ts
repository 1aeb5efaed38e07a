import { startTableServer } from '../../local/table-server.ts';
import { running } from './running.ts';
import { testDynamoClient } from './test-dynamo-client.ts';

/** Starts a table server with a client before the tests and stops both after them. */
export function runningTableServer() {
  return running(async () => {
    const server = await startTableServer({ key: 'test' });
    const client = testDynamoClient(server.endpoint);
    const close = async () => {
      client.destroy();
      await server.close();
    };
    return { ...server, client, close };
  });
}
