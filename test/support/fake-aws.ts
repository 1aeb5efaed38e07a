import { afterThisTest } from './after-this-test.ts';
import { startFaultServer } from './api-fault-server.ts';

/** An answer of AWS. With `hang` no answer comes. */
export type AwsAnswer = { readonly status?: number; readonly body: unknown } | { readonly hang: true };

export interface AwsCall {
  /** The action: `secretsmanager.GetSecretValue`, `AmazonSSM.GetParameter`, `AssumeRole` or `GetWebIdentityToken`. */
  readonly action: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** The access key of the signature, which identifies the caller. */
  readonly accessKey: string;
}

export type FakeAws = Awaited<ReturnType<typeof startFakeAws>>;

/** Starts a stand-in for AWS on loopback. The SDK clients of this process find it through environment variables. */
export async function startFakeAws(react: (call: AwsCall) => AwsAnswer) {
  const calls: AwsCall[] = [];
  const { url, stop } = await startFaultServer(({ headers, body }) => {
    const call = callIn(String(headers['x-amz-target'] ?? ''), body, headers);
    calls.push(call);
    const answer = react(call);
    if ('hang' in answer) return answer;
    const type = typeof answer.body === 'string' ? 'text/xml' : 'application/x-amz-json-1.1';
    return { ...answer, headers: { 'content-type': type, 'x-amzn-requestid': 'test' } };
  });
  const restore = setEndpoint(url);
  return {
    calls,
    close: async () => {
      restore();
      await stop();
    },
  };
}

export async function fakeAws(react: (call: AwsCall) => AwsAnswer): Promise<FakeAws> {
  const aws = await startFakeAws(react);
  afterThisTest(aws.close);
  return aws;
}

/** Points AWS clients to an address on which no server listens, until the end of the test. */
export function noAws(): void {
  afterThisTest(setEndpoint('http://127.0.0.1:1'));
}

export function awsError(name: string, message = name, status = 400): AwsAnswer {
  return { status, body: { __type: name, message, Message: message } };
}

export function assumedRole(accessKey: string): AwsAnswer {
  const expiration = new Date(Date.now() + 15 * 60_000).toISOString();
  return {
    body: `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
      <AccessKeyId>${accessKey}</AccessKeyId><SecretAccessKey>role-secret-key</SecretAccessKey>
      <SessionToken>role-session</SessionToken><Expiration>${expiration}</Expiration>
    </Credentials></AssumeRoleResult></AssumeRoleResponse>`,
  };
}

/** Returns the answer of STS to `GetWebIdentityToken`. The product does not read its expiry. */
export function issuedToken(token: string): AwsAnswer {
  return {
    body: `<GetWebIdentityTokenResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetWebIdentityTokenResult>
      <WebIdentityToken>${token}</WebIdentityToken><Expiration>2026-01-01T00:00:00Z</Expiration>
    </GetWebIdentityTokenResult></GetWebIdentityTokenResponse>`,
  };
}

export function stsError(name: string, status = 403): AwsAnswer {
  return {
    status,
    body: `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>${name}</Code>
      <Message>${name}</Message></Error></ErrorResponse>`,
  };
}

function callIn(target: string, text: string, headers: Readonly<Record<string, unknown>>): AwsCall {
  const accessKey = /Credential=([^/]+)\//.exec(String(headers['authorization']))?.[1] ?? '';
  if (target !== '') return { action: target, body: JSON.parse(text), accessKey };
  const body = Object.fromEntries(new URLSearchParams(text));
  return { action: body['Action'] ?? '', body, accessKey };
}

/**
 * Points the AWS SDK to the endpoint with environment variables. Sets a region and credentials, and unsets the profile and the
 * external id of roles.
 * @returns a function that restores the former values
 */
function setEndpoint(url: string): () => void {
  const wanted = {
    AWS_ENDPOINT_URL: url,
    AWS_REGION: 'eu-test-1',
    AWS_CONFIG_FILE: '/dev/null',
    AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
    AWS_ACCESS_KEY_ID: 'OWN',
    AWS_SECRET_ACCESS_KEY: 'own-secret-key',
    AWS_PROFILE: undefined,
    ASSUME_ROLE_EXTERNAL_ID: undefined,
  };
  const before = Object.keys(wanted).map((name) => [name, process.env[name]] as const);
  const set = ([name, value]: readonly [string, string | undefined]) => {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  };
  Object.entries(wanted).forEach(set);
  return () => before.forEach(set);
}
