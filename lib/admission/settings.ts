import type { SecretStore } from '../aws/store-client.ts';
import { DispatchError } from '../runtime/deadline.ts';

export interface AdmissionSettings {
  /** The outcome for a Service if the table cannot allocate: refused, or left to its API server. */
  readonly onFailure: 'refuse' | 'allow';
  /** The time limit of an answer, below the webhook's `timeoutSeconds`. */
  readonly deadlineMs: number;
  readonly tokenStore: SecretStore;
  readonly secretsPrefix: string;
}

type Variables = Readonly<Record<string, string | undefined>>;

/**
 * Reads `ADMISSION_ON_FAILURE`, `ADMISSION_DEADLINE_SECONDS`, `ADMISSION_TOKEN_STORE` and `SECRETS_PREFIX`.
 * @throws DispatchError `BadEnvironment`
 */
export function admissionSettings(variables: Variables): AdmissionSettings {
  const seconds = Number(required(variables, 'ADMISSION_DEADLINE_SECONDS'));
  if (!(seconds >= 1 && seconds <= 28)) throw wrong('ADMISSION_DEADLINE_SECONDS', 'a number from 1 to 28');
  return {
    onFailure: oneOf(variables, 'ADMISSION_ON_FAILURE', ['refuse', 'allow']),
    deadlineMs: seconds * 1000,
    tokenStore: oneOf(variables, 'ADMISSION_TOKEN_STORE', ['secretsManager', 'ssm']),
    secretsPrefix: required(variables, 'SECRETS_PREFIX'),
  };
}

/** Returns the name of the secret with the tokens of a cluster. Parameters have a `/` before the prefix. */
export function tokensNameOf({ tokenStore, secretsPrefix }: AdmissionSettings, cluster: string): string {
  return `${tokenStore === 'ssm' ? '/' : ''}${secretsPrefix}admission/${cluster}`;
}

function oneOf<Text extends string>(variables: Variables, name: string, texts: readonly Text[]): Text {
  const value = required(variables, name);
  const found = texts.find((text) => text === value);
  if (found === undefined) throw wrong(name, texts.join(' or '));
  return found;
}

function required(variables: Variables, name: string): string {
  const value = variables[name];
  if (value === undefined || value === '') throw wrong(name, 'set');
  return value;
}

function wrong(name: string, what: string): DispatchError {
  return new DispatchError(
    'BadEnvironment',
    `The environment variable ${name} is not ${what}: serverless.yml sets it.`,
  );
}
