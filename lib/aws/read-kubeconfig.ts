import { AssumeRoleCommand, GetWebIdentityTokenCommand, STSClient } from '@aws-sdk/client-sts';
import type { ClusterError } from '../kubernetes/cluster-port.ts';
import { renewed, TOKEN_SECONDS } from '../kubernetes/credentials.ts';
import { LONGEST_TOKEN } from '../util/bounds.ts';
import { defined, setLatest } from '../util/values.ts';
import { badConfiguration, callFailure, textOfError } from './call-failure.ts';
import { type AwsAccount, type CallLimits, clientOptions, isDenied, nameOfError } from './sdk.ts';
import { type Credentials, isMissing, openStore, type StoreClient } from './store-client.ts';
import { type KubeconfigSources, placeOf, type StoredKubeconfig } from './stored-kubeconfig.ts';

const SESSION_NAME = 'kube-bootstrap-controller';
const SESSION_SECONDS = 900;
const LONGEST_CALL_MS = 5_000;
/** The region of STS for a process without a region, as in the AWS SDK. */
const DEFAULT_STS_REGION = 'us-east-1';

/** Returns a reader that caches AWS clients and the credentials of roles, but no kubeconfig. */
export function kubeconfigReader(options: AwsAccount & Partial<CallLimits> = {}): KubeconfigSources['read'] {
  const shared = clientOptions(options);
  const roles = new Map<string, Credentials>();
  const clients = new Map<string, StoreClient>();
  return async (stored, signal) => {
    const { store, name, what } = placeOf(stored);
    const { roleArn } = stored;
    // A name that is not an ARN is looked up in the region of this process.
    const region = (name.startsWith('arn:') && name.split(':')[3]) || undefined;
    const credentials =
      roleArn === undefined ? undefined : kept(roles, roleArn, () => roleCredentials(roleArn, shared));
    const client = kept(clients, JSON.stringify([store, region, roleArn]), () =>
      openStore(store, { ...shared, ...defined({ region, credentials }) }),
    );
    const where = await client.region().catch(() => {
      const problem = `The kubeconfig in ${what} cannot be read: no AWS region is set`;
      throw badConfiguration(`${problem}. Set AWS_REGION, or name it by its ARN.`);
    });
    const ends = AbortSignal.any([signal, AbortSignal.timeout(LONGEST_CALL_MS)]);
    // The role is assumed in a separate call, because its error requires a different message than a failed read.
    await credentials?.().catch((error: unknown) => {
      throw assumeFailure(stored, where, error);
    });
    const text = await client.read(name, ends).catch((error: unknown) => {
      throw readFailure(stored, where, error, signal);
    });
    if (text?.trim()) return text;
    const remedy = 'Put a kubeconfig there (docs/kubeconfig-secret.md)';
    throw badConfiguration(`The ${what} in region ${where} is empty. ${remedy}.`);
  };
}

const KEY_REFUSED = new Set(['DecryptionFailure', 'InvalidKeyId', 'KMSAccessDeniedException']);

/** Returns the error of a read. It quotes no part of the secret. */
function readFailure(stored: StoredKubeconfig, region: string, error: unknown, signal: AbortSignal): ClusterError {
  const { store, what, action } = placeOf(stored);
  const { roleArn } = stored;
  const name = nameOfError(error);
  const call = `${action} on ${what} in region ${region}`;
  if (isMissing(error)) {
    const remedy = `Put the kubeconfig there (docs/kubeconfig-secret.md), or correct kubeconfig.${store} in the cluster spec`;
    return badConfiguration(`The ${what} was not found in region ${region} (${action}). ${remedy}.`, error);
  }
  if (KEY_REFUSED.has(name) || (isDenied(error) && /\bkms\b|ciphertext/i.test(textOfError(error)))) {
    const remedy =
      roleArn === undefined
        ? 'Set the parameter kmsKeyArn of the stack to its key, which allows kms:Decrypt, and allow it in the key policy'
        : `Allow kms:Decrypt on its key to the role ${roleArn}`;
    return badConfiguration(`${call} was denied the use of its encryption key. ${remedy}.`, error);
  }
  const ifDenied =
    roleArn === undefined
      ? 'The functions may read only names that begin with the parameter secretsPrefix of the stack: rename it, or change the parameter'
      : `Allow it to the role ${roleArn}`;
  return callFailure({ call, service: store.toLowerCase(), region, ifDenied }, error, signal);
}

function assumeFailure(stored: StoredKubeconfig, region: string, error: unknown): ClusterError {
  const call = `sts:AssumeRole on ${stored.roleArn}, to read ${placeOf(stored).what},`;
  const ifDenied =
    'Add the role to the parameter assumableRoleArns or assumableOrgRole of the stack, and the roles of the functions to its trust policy';
  return callFailure({ call, service: 'sts', region, ifDenied }, error);
}

function roleCredentials(roleArn: string, shared: ReturnType<typeof clientOptions>): Credentials {
  const { region } = new STSClient(shared).config;
  const client = new STSClient({ ...shared, region: () => region().catch(() => DEFAULT_STS_REGION) });
  const externalId = process.env['ASSUME_ROLE_EXTERNAL_ID'];
  const command = new AssumeRoleCommand({
    RoleArn: roleArn,
    RoleSessionName: SESSION_NAME,
    DurationSeconds: SESSION_SECONDS,
    ...(externalId && { ExternalId: externalId }),
  });
  return renewed(async () => {
    const { Credentials: given } = await client.send(command);
    const { AccessKeyId, SecretAccessKey, SessionToken, Expiration } = given ?? {};
    if (!AccessKeyId || !SecretAccessKey) throw new Error('AWS STS returned no credentials');
    const optional = defined({ sessionToken: SessionToken, expiration: Expiration });
    return { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey, ...optional };
  }, SESSION_SECONDS);
}

/** The maximum number of cached values, because clients take memory: 1,000 clients, each with a role, take 157 MB. */
const MOST_KEPT = 100;

/** Returns the cached value of a key, or creates it. A full cache then loses its least recently used value. */
function kept<Value>(values: Map<string, Value>, key: string, make: () => Value): Value {
  const value = values.get(key) ?? make();
  setLatest(values, key, value, MOST_KEPT);
  return value;
}

export function kubeconfigSources(account: AwsAccount = {}): KubeconfigSources {
  return { read: kubeconfigReader(account), requestToken: tokenRequester(account) };
}

/** Returns a requester of tokens. It uses the regional endpoint of AWS STS, because the global endpoint issues no tokens. */
export function tokenRequester(account: AwsAccount): KubeconfigSources['requestToken'] {
  const client = new STSClient(clientOptions(account));
  return async (audience) => {
    const region = await client.config.region().catch(() => {
      throw badConfiguration('No token can be requested from AWS STS: no AWS region is set. Set AWS_REGION.');
    });
    const command = new GetWebIdentityTokenCommand({
      Audience: [audience],
      // AWS recommends this algorithm. API servers with an AuthenticationConfiguration accept ES384 and RS256.
      SigningAlgorithm: 'ES384',
      DurationSeconds: TOKEN_SECONDS,
    });
    const abortSignal = AbortSignal.timeout(LONGEST_CALL_MS);
    const { WebIdentityToken: token } = await client.send(command, { abortSignal }).catch((error: unknown) => {
      throw tokenFailure(audience, region, error);
    });
    const what = `token for audience ${audience}`;
    if (!token) throw badConfiguration(`AWS STS in region ${region} returned no ${what}. Try again.`);
    if (token.length <= LONGEST_TOKEN) return token;
    const problem = `${what} with ${token.length} characters, and at most ${LONGEST_TOKEN} are sent`;
    throw badConfiguration(`AWS STS in region ${region} returned a ${problem}. Fewer session tags make it shorter.`);
  };
}

function tokenFailure(audience: string, region: string, error: unknown): ClusterError {
  const call = `sts:GetWebIdentityToken for audience ${audience} in region ${region}`;
  if (nameOfError(error) === 'OutboundWebIdentityFederationDisabledException') {
    const remedy = 'An administrator enables it: aws iam enable-outbound-web-identity-federation';
    const problem = `${call} was refused: outbound web identity federation is disabled in this account`;
    return badConfiguration(`${problem}. ${remedy}.`, error);
  }
  const ifDenied =
    'Add the audience to the parameter webIdentityServers of the stack, or allow it to your own identity';
  return callFailure({ call, service: 'sts', region, ifDenied }, error);
}
