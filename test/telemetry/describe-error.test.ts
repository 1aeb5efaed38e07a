import { describe, expect, jest, test } from '@jest/globals';
import { ClusterError } from '../../lib/kubernetes/cluster-port.ts';
import { describeError, errorSentence, stackOfFault } from '../../lib/telemetry/telemetry.ts';

describe('describeError', () => {
  const NOT_PARSED = 'the kubeconfig does not parse';
  const refused = { code: 'Rejected', headers: { authorization: 'Bearer abc' }, body: 'password' };
  const QUOTING = new SyntaxError('Unexpected token s in "token: s3cret"');
  const LINES = new Error('Bad indentation:\n\n    token: s3cret\n    ^');
  const notParsed = (cause: Error) => new ClusterError('BadKubeconfig', NOT_PARSED, { cause });
  const parts = [new Error('refused ::1'), new Error('refused 127.0.0.1')];
  const together = Object.assign(new AggregateError(parts, 'as Node throws it'), { message: '' });
  test.each<[string, unknown, string, string]>([
    [
      'code, message and causes of an expected error',
      new ClusterError('Unavailable', 'GET /api/v1/services failed', {
        cause: new Error('fetch failed', { cause: new Error('connect ECONNREFUSED 10.0.0.1:6443') }),
      }),
      'Unavailable',
      'GET /api/v1/services failed: fetch failed: connect ECONNREFUSED 10.0.0.1:6443',
    ],
    [
      'no cause whose message is already part of the error',
      new ClusterError('Unavailable', 'unreachable: no route to host', { cause: new Error('no route to host') }),
      'Unavailable',
      'unreachable: no route to host',
    ],
    ['no headers or body of the error', Object.assign(new Error('refused'), refused), 'Rejected', 'refused'],
    ['no text that a parser quotes', notParsed(QUOTING), 'BadKubeconfig', `${NOT_PARSED}: SyntaxError`],
    ['no lines below the message of a parser', notParsed(LINES), 'BadKubeconfig', `${NOT_PARSED}: Bad indentation:`],
    ['the messages of the errors in an aggregate error', together, 'AggregateError', 'refused ::1, refused 127.0.0.1'],
    ['only the type of a thrown text', 's3cret', 'Unexpected', 'something that is not an error was thrown: string'],
  ])('the description of an error contains %s', (_, error, code, message) => {
    expect(describeError(error)).toEqual({ code, message });
    expect(errorSentence(error)).toBe(`${code}: ${message}`);
  });

  test('a very long message is shortened before a regular expression searches it', () => {
    const searched: number[] = [];
    const replace = RegExp.prototype[Symbol.replace];
    const spy = jest.spyOn(RegExp.prototype, Symbol.replace).mockImplementation(function (this: RegExp, text, by) {
      searched.push(text.length);
      return Reflect.apply(replace, this, [text, by]);
    });
    const message = 'eyJa-'.repeat(2_000);
    const described = describeError(new Error(message, { cause: new Error(`${message}!`) }));
    spy.mockRestore();
    expect(described.message).toHaveLength(1000);
    expect(Math.max(0, ...searched)).toBeLessThanOrEqual(1000);
  });
});

describe('stackOfFault', () => {
  test('the stack trace of an unexpected error contains positions in the code and not the message of the error', () => {
    const stack = stackOfFault(new TypeError('x is not a function'));
    expect(stack?.[0]).toMatch(/^at .*describe-error\.test\.ts/);
  });

  test('an expected error has no stack trace', () => {
    expect(stackOfFault(new ClusterError('Forbidden', 'no'))).toBeUndefined();
  });
});
