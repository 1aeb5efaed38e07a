import { describe, expect, test } from '@jest/globals';
import { unlessAborted } from '../../lib/cluster/async.ts';
import { type Deadline, pause, startDeadline } from '../../lib/runtime/deadline.ts';

describe('unlessAborted', () => {
  test('unlessAborted abandons work that hangs when the signal aborts', async () => {
    const controller = new AbortController();
    const left = unlessAborted(controller.signal, () => new Promise(() => {}));
    const reason = new Error('time is over');
    controller.abort(reason);
    await expect(left).rejects.toBe(reason);
  });

  test('unlessAborted ignores a later failure of abandoned work', async () => {
    const controller = new AbortController();
    const work = Promise.withResolvers<never>();
    const left = unlessAborted(controller.signal, () => work.promise);
    controller.abort(new Error('time is over'));
    await expect(left).rejects.toThrow('time is over');
    // An unhandled rejection would end the process of the test.
    work.reject(new Error('too late'));
    await new Promise(setImmediate);
  });

  test('unlessAborted begins no work if the signal is already aborted', async () => {
    let begun = false;
    const work = async () => {
      begun = true;
    };
    await expect(unlessAborted(AbortSignal.abort(new Error('over')), work)).rejects.toThrow('over');
    expect(begun).toBe(false);
  });
});

describe('startDeadline', () => {
  test('a deadline aborts with the code DeadlineExceeded', async () => {
    const { signal } = startDeadline(1);
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    expect(signal.reason).toMatchObject({ code: 'DeadlineExceeded' });
  });

  test('a cancelled deadline never aborts', async () => {
    const { signal, cancel } = startDeadline(0);
    cancel();
    await new Promise(setImmediate);
    expect(signal.aborted).toBe(false);
  });
});

describe('pause', () => {
  function aDeadline(controller: AbortController): { deadline: Deadline; cancelled: () => boolean } {
    let cancelled = false;
    const cancel = () => {
      cancelled = true;
    };
    return { deadline: { signal: controller.signal, cancel }, cancelled: () => cancelled };
  }

  test.each(['its time is over', 'the surrounding work is over'])(
    'a pause ends if %s, and leaves no timer',
    async (when) => {
      const [own, whole] = [new AbortController(), new AbortController()];
      const { deadline, cancelled } = aDeadline(own);
      const paused = pause(deadline, whole.signal);
      (when === 'its time is over' ? own : whole).abort();
      await paused;
      expect(cancelled()).toBe(true);
    },
  );
});
