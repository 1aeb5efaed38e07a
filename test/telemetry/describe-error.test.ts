import { expect, jest, test } from '@jest/globals';
import { describeError } from '../../lib/telemetry/telemetry.ts';

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

test('the message of an error contains the messages of its first four causes', () => {
  const [first = new Error('6'), ...others] = ['5', '4', '3', '2', '1'].map((text) => new Error(text));
  const error = others.reduce(
    (cause, next) => Object.assign(next, { cause }),
    Object.assign(first, { cause: new Error('6') }),
  );
  expect(describeError(error).message).toBe('1: 2: 3: 4: 5');
});
