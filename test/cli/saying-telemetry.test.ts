import { describe, expect, test } from '@jest/globals';
import { sayingTelemetry } from '../../cli/saying-telemetry.ts';

describe('What passes tell a person who waits for them', () => {
  test('is warnings and errors, a line each', () => {
    const said: string[] = [];
    const { log } = sayingTelemetry((line) => said.push(line))({ loop: 'kubernetes-service' });
    log('info', 'pass ended', { cluster: 'a', changes: ['created it'] });
    log('warn', 'verification is off', { cluster: 'a' });
    log('error', 'pass failed', { cluster: 'a', errors: ['Unavailable: gone', 'Forbidden: no'] });
    log('error', 'nothing ran');
    expect(said).toEqual([
      'a kubernetes-service: verification is off',
      'a kubernetes-service: Unavailable: gone',
      'a kubernetes-service: Forbidden: no',
      'kubernetes-service: nothing ran',
    ]);
  });
});
