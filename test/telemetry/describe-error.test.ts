import { describe, expect, jest, test } from '@jest/globals';
import { ClusterError } from '../../lib/kubernetes/cluster-port.ts';
import { describeError, errorSentence, stackOfFault } from '../../lib/telemetry/telemetry.ts';

describe('describeError', () => {
  test('an expected error is described by its code, its message and its causes', () => {
    const error = new ClusterError('Unavailable', 'GET /api/v1/services failed', {
      cause: new Error('fetch failed', { cause: new Error('connect ECONNREFUSED 10.0.0.1:6443') }),
    });
    expect(describeError(error)).toEqual({
      code: 'Unavailable',
      message: 'GET /api/v1/services failed: fetch failed: connect ECONNREFUSED 10.0.0.1:6443',
    });
  });

  test('a cause whose message is already part of the error is not repeated', () => {
    const cause = new Error('no route to host');
    expect(errorSentence(new ClusterError('Unavailable', 'unreachable: no route to host', { cause }))).toBe(
      'Unavailable: unreachable: no route to host',
    );
  });

  test('the description of an error contains only its code and message, and no other field such as headers or a body', () => {
    const error = Object.assign(new Error('refused'), {
      code: 'Rejected',
      headers: { authorization: 'Bearer abc' },
      body: 'password',
    });
    expect(describeError(error)).toEqual({ code: 'Rejected', message: 'refused' });
  });

  test.each([
    {
      name: 'text that a parser quotes in its message',
      error: new ClusterError('BadKubeconfig', 'the kubeconfig does not parse', {
        cause: new SyntaxError('Unexpected token s in "token: s3cret"'),
      }),
      message: 'the kubeconfig does not parse: SyntaxError',
    },
    {
      name: 'lines that a parser quotes below its message',
      error: new ClusterError('BadKubeconfig', 'the kubeconfig does not parse', {
        cause: new Error('Bad indentation at line 3:\n\n    token: s3cret\n    ^'),
      }),
      message: 'the kubeconfig does not parse: Bad indentation at line 3:',
    },
  ])('the description of an error never contains $name', ({ error, message }) => {
    expect(describeError(error).message).toBe(message);
  });

  test('the description of an aggregate error contains the messages of its errors', () => {
    const parts = [new Error('connect ECONNREFUSED ::1'), new Error('connect ECONNREFUSED 127.0.0.1')];
    const error = Object.assign(new AggregateError(parts, 'as Node throws it'), { message: '' });
    expect(describeError(error)).toEqual({
      code: 'AggregateError',
      message: 'connect ECONNREFUSED ::1, connect ECONNREFUSED 127.0.0.1',
    });
  });

  test('a thrown value that is not an error is described only by its type', () => {
    expect(describeError('s3cret')).toEqual({
      code: 'Unexpected',
      message: 'something that is not an error was thrown: string',
    });
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
