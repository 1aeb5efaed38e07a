import { expect, test } from '@jest/globals';
import { growthOf, type Held } from './growth.ts';

const held = (changes: Partial<Held> = {}): Held => ({ heapMb: 40, anonMb: 200, sockets: 20, files: 50, ...changes });

test('growth in the first half of a run is not reported as a leak', () => {
  const samples = [held({ heapMb: 20, anonMb: 100 }), held(), held(), held()];
  expect(growthOf(samples)).toEqual([]);
});

test('each resource that grows by more than its margin in the last half of a run is reported', () => {
  const grown = held({ heapMb: 43, anonMb: 211, sockets: 51, files: 81 });
  expect(growthOf([held(), held(), held(), grown])).toEqual([
    'heapMb grew by 3.0; 2.5 are allowed',
    'anonMb grew by 11.0; 10 are allowed',
    'sockets grew by 31.0; 30 are allowed',
    'files grew by 31.0; 30 are allowed',
  ]);
});

test('sockets and files above their limit are reported even if they do not grow', () => {
  const many = held({ sockets: 500, files: 530 });
  expect(growthOf([many, many, many, many])).toEqual([
    'sockets reached 500; 120 are allowed',
    'files reached 530; 160 are allowed',
  ]);
});
