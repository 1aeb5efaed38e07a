import * as z from 'zod/mini';
import type { SecretStore } from '../aws/store-client.ts';
import { DispatchError } from '../runtime/deadline.ts';
import { shapeFaults } from '../spec/shapes.ts';

const variablesShape = z.object({
  ADMISSION_ON_FAILURE: z.enum(['refuse', 'allow']),
  ADMISSION_DEADLINE_SECONDS: z.pipe(z.pipe(z.string(), z.transform(Number)), z.number().check(z.gte(1), z.lte(28))),
  ADMISSION_TOKEN_STORE: z.enum(['secretsManager', 'ssm']),
  SECRETS_PREFIX: z.string().check(z.minLength(1)),
});

export interface AdmissionSettings {
  /** The answer if the table cannot allocate. `refuse`: the Service is refused. `allow`: its API server allocates. */
  readonly onFailure: 'refuse' | 'allow';
  /** The time limit for an answer. It must be less than the webhook's `timeoutSeconds`. */
  readonly deadlineMs: number;
  readonly tokenStore: SecretStore;
  readonly secretsPrefix: string;
}

/** Reads the environment variables of the function. Throws a `DispatchError` with code `BadEnvironment`. */
export function admissionSettings(variables: Readonly<Record<string, string | undefined>>): AdmissionSettings {
  const { data, error } = variablesShape.safeParse(variables);
  if (error !== undefined) {
    const faults = shapeFaults(error, 'the environment');
    throw new DispatchError('BadEnvironment', `Environment variables are wrong, which serverless.yml sets: ${faults}.`);
  }
  return {
    onFailure: data.ADMISSION_ON_FAILURE,
    deadlineMs: data.ADMISSION_DEADLINE_SECONDS * 1000,
    tokenStore: data.ADMISSION_TOKEN_STORE,
    secretsPrefix: data.SECRETS_PREFIX,
  };
}

/** Returns the name of the secret with the tokens of a cluster. In Parameter Store, the name begins with `/`. */
export function tokensNameOf({ tokenStore, secretsPrefix }: AdmissionSettings, cluster: string): string {
  return `${tokenStore === 'ssm' ? '/' : ''}${secretsPrefix}admission/${cluster}`;
}
