import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { type AwsAccount, type CallLimits, clientOptions, nameOfError } from './sdk.ts';

export interface StoreClient {
  /** Returns the stored text, if it exists. Throws errors of the AWS SDK. */
  readonly read: (name: string, signal: AbortSignal) => Promise<string | undefined>;
  /** Returns the region. Throws if no region is set. */
  readonly region: () => Promise<string>;
}

export type Credentials = () => Promise<{
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly expiration?: Date;
}>;

type StoreClientOptions = ReturnType<typeof clientOptions> & { readonly credentials?: Credentials };

/** The store of a text: Secrets Manager for a secret, or Systems Manager (`ssm`) for a parameter of Parameter Store. */
export type SecretStore = 'secretsManager' | 'ssm';

export function openStore(store: SecretStore, options: StoreClientOptions): StoreClient {
  if (store === 'ssm') {
    const client = new SSMClient(options);
    return {
      read: async (name, abortSignal) => {
        const command = new GetParameterCommand({ Name: name, WithDecryption: true });
        return (await client.send(command, { abortSignal })).Parameter?.Value;
      },
      region: () => client.config.region(),
    };
  }
  const client = new SecretsManagerClient(options);
  return {
    read: async (name, abortSignal) => {
      const command = new GetSecretValueCommand({ SecretId: name });
      const { SecretString, SecretBinary } = await client.send(command, { abortSignal });
      return SecretString ?? (SecretBinary && new TextDecoder().decode(SecretBinary));
    },
    region: () => client.config.region(),
  };
}

/** The result of a read. `absent`: the name does not exist. `failed`: `reason` is only the name of the error. */
export type SecretText =
  | { readonly outcome: 'read'; readonly text: string }
  | { readonly outcome: 'absent' }
  | { readonly outcome: 'failed'; readonly reason: string };

export type ReadSecretText = (name: string, signal: AbortSignal) => Promise<SecretText>;

const MISSING = new Set(['ResourceNotFoundException', 'ParameterNotFound', 'ParameterVersionNotFound']);

export function isMissing(error: unknown): boolean {
  return MISSING.has(nameOfError(error));
}

/** Returns a reader with the region and role of this function. It never throws, and never quotes a secret. */
export function secretTextReader(store: SecretStore, options: AwsAccount & Partial<CallLimits> = {}): ReadSecretText {
  let client: StoreClient | undefined;
  return async (name, signal) => {
    client ??= openStore(store, clientOptions(options));
    try {
      const text = await client.read(name, signal);
      return text === undefined ? { outcome: 'absent' } : { outcome: 'read', text };
    } catch (error) {
      return isMissing(error) ? { outcome: 'absent' } : { outcome: 'failed', reason: nameOfError(error) };
    }
  };
}
