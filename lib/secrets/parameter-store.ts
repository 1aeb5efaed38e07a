import { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import type { StoreClient, StoreClientOptions } from './store-client.ts';

/** Reads parameters of AWS Systems Manager in one region, as one role. */
export function parameterStore(options: StoreClientOptions): StoreClient {
  const client = new SSMClient(options);
  return {
    read: async (name, abortSignal) => {
      const command = new GetParameterCommand({ Name: name, WithDecryption: true });
      const { Parameter } = await client.send(command, { abortSignal });
      return Parameter?.Value;
    },
    region: () => client.config.region(),
  };
}
