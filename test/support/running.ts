import { afterAll, beforeAll } from '@jest/globals';

/**
 * Calls `start` before the tests. Calls the `close` of the result, if it has one, after them.
 * @returns an object that gets the fields of the result before the tests
 */
export function running<T extends object>(start: () => Promise<T>): T {
  const started = {} as T & { readonly close?: () => unknown };
  beforeAll(async () => void Object.assign(started, await start()));
  afterAll(async () => void (await started.close?.()));
  return started;
}
