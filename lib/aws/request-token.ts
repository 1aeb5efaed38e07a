import { GetWebIdentityTokenCommand, STSClient } from '@aws-sdk/client-sts';
import { LONGEST_TOKEN } from '../cluster/bounds.ts';
import { TOKEN_SECONDS } from '../kubernetes/web-identity.ts';
import { badStoredKubeconfig, callFailure } from './call-failure.ts';
import { isDenied, nameOfError } from './sdk-errors.ts';
import { type StorePlace, storeClientOptions } from './store-client.ts';

/** Returns a token of this process's IAM role for an audience. Throws a `ClusterError`. */
export type RequestToken = (audience: string) => Promise<string>;

const LONGEST_REQUEST_MS = 5_000;

/** Returns a requester that uses the regional endpoint of AWS STS: the global one issues no tokens. */
export function tokenRequester(place: StorePlace): RequestToken {
  const client = new STSClient(storeClientOptions(place));
  return async (audience) => {
    const region = await client.config.region().catch(() => {
      throw badStoredKubeconfig('No token can be requested from AWS STS: no AWS region is set. Set AWS_REGION.');
    });
    const command = new GetWebIdentityTokenCommand({
      Audience: [audience],
      // The algorithm that AWS recommends. With an AuthenticationConfiguration, API servers accept it and RS256.
      SigningAlgorithm: 'ES384',
      DurationSeconds: TOKEN_SECONDS,
    });
    const abortSignal = AbortSignal.timeout(LONGEST_REQUEST_MS);
    const { WebIdentityToken: token } = await client.send(command, { abortSignal }).catch((error: unknown) => {
      throw tokenFailure(audience, region, error);
    });
    if (!token)
      throw badStoredKubeconfig(`AWS STS in region ${region} returned no token for audience ${audience}. Try again.`);
    if (token.length <= LONGEST_TOKEN) return token;
    const remedy = 'Fewer session tags make it shorter';
    throw badStoredKubeconfig(
      `AWS STS in region ${region} returned a token of ${token.length} characters for audience ${audience}, and at most ${LONGEST_TOKEN} are sent. ${remedy}.`,
    );
  };
}

function tokenFailure(audience: string, region: string, error: unknown): Error {
  const call = `sts:GetWebIdentityToken for audience ${audience} in region ${region}`;
  if (nameOfError(error) === 'OutboundWebIdentityFederationDisabledException') {
    const remedy = 'An administrator enables it: aws iam enable-outbound-web-identity-federation';
    return badStoredKubeconfig(
      `${call} was refused: outbound web identity federation is disabled in this account. ${remedy}.`,
      error,
    );
  }
  if (isDenied(error)) {
    const remedy =
      'Add the audience to the parameter webIdentityServers of the stack, or allow it to your own identity';
    return badStoredKubeconfig(`${call} was denied. ${remedy}.`, error);
  }
  return callFailure(call, 'sts', region, error);
}
