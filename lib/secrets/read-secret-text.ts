import { isNativeError } from 'node:util/types';
import {
  parameterStore,
  type StoreClient,
  type StorePlace,
  type StoreTimes,
  secretsManager,
  storeClientOptions,
} from './store-client.ts';

/** Where a text is kept: a secret of Secrets Manager, or a parameter of Parameter Store. */
export type SecretStore = 'secretsManager' | 'ssm';

/** `absent`: there is none of the name. `failed` says by the error's name alone why it cannot be told. */
export type SecretText =
  | { readonly outcome: 'read'; readonly text: string }
  | { readonly outcome: 'absent' }
  | { readonly outcome: 'failed'; readonly reason: string };

export type ReadSecretText = (name: string, signal: AbortSignal) => Promise<SecretText>;

const MISSING = new Set(['ResourceNotFoundException', 'ParameterNotFound']);

/** Reads from the region and as the role of this function. Never throws, and quotes nothing of what is kept. */
export function secretTextReader(store: SecretStore, options: StoreTimes & StorePlace = {}): ReadSecretText {
  let client: StoreClient | undefined;
  return async (name, signal) => {
    client ??= (store === 'ssm' ? parameterStore : secretsManager)(storeClientOptions(options));
    try {
      const text = await client.read(name, signal);
      return text === undefined ? { outcome: 'absent' } : { outcome: 'read', text };
    } catch (error) {
      const reason = isNativeError(error) ? error.name : 'unknown error';
      return MISSING.has(reason) ? { outcome: 'absent' } : { outcome: 'failed', reason };
    }
  };
}
