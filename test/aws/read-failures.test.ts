import { expect, test } from '@jest/globals';
import { noRegion } from '../../lib/aws/stored-kubeconfig.ts';
import { errorSentence } from '../../lib/telemetry/describe-error.ts';

test('that no region is set is reported once, in whole sentences', () => {
  expect(errorSentence(noRegion({ secretsManager: 'kbc/demo' }))).toBe(
    'BadKubeconfig: The kubeconfig in secret kbc/demo cannot be read: no AWS region is set. Set AWS_REGION, or name it by its ARN.',
  );
});
