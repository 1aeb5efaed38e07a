const OF_AWS = /\.(amazonaws\.com(\.cn)?|api\.aws)\.?$/;

/** Returns whether the URL is of AWS STS, which takes a token of that audience in exchange for credentials of a role. */
export function isAudienceOfSts({ hostname }: URL): boolean {
  const isSts = hostname.split('.').some((label) => label === 'sts' || label === 'sts-fips');
  return isSts && OF_AWS.test(hostname);
}
