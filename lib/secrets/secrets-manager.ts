import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import type { StoreClient, StoreClientOptions } from './store-client.ts';

/** Reads secrets of AWS Secrets Manager in one region, as one role. */
export function secretsManager(options: StoreClientOptions): StoreClient {
  const client = new SecretsManagerClient(options);
  return {
    read: async (name, abortSignal) => {
      const { SecretString, SecretBinary } = await client.send(new GetSecretValueCommand({ SecretId: name }), {
        abortSignal,
      });
      return SecretString ?? (SecretBinary && new TextDecoder().decode(SecretBinary));
    },
    region: () => client.config.region(),
  };
}
