import { expect } from 'expect';

/* Implements @jest/globals for a process that loads test files once and runs their tests many times. */

type Step = () => unknown;

export interface Block {
  readonly parent: Block | undefined;
  readonly beforeAll: Step[];
  readonly afterAll: Step[];
  readonly beforeEach: Step[];
  readonly afterEach: Step[];
}

export interface CollectedTest {
  readonly file: string;
  /** The place and name of the test in its file, which are the same in every load. */
  readonly id: string;
  readonly block: Block;
  readonly run: Step;
}

const aBlock = (parent?: Block): Block => ({ parent, beforeAll: [], afterAll: [], beforeEach: [], afterEach: [] });
/** The steps that test/support/after-this-test.ts registers. The file is loaded once, and its steps run after every test. */
export const afterEveryTest: Step[] = [];
let collected: CollectedTest[] = [];
let block = aBlock();
let loading = '';

/** Returns the tests that a file defines while it is loaded. */
export async function testsOf(file: string, load: () => Promise<unknown>): Promise<readonly CollectedTest[]> {
  [collected, block, loading] = [[], aBlock(), file];
  await load();
  return collected;
}

type Each = (rows: readonly unknown[]) => (name: string, body: (...row: unknown[]) => unknown) => void;

const eachOf =
  (define: (name: string, body: Step) => void): Each =>
  (rows) =>
  (name, body) => {
    for (const row of rows) define(name, () => body(...(Array.isArray(row) ? row : [row])));
  };

function defineBlock(_name: string, body: Step): void {
  const parent = block;
  block = aBlock(parent);
  body();
  block = parent;
}

function defineTest(name: string, run: Step): void {
  collected.push({ file: loading, id: `${collected.length}: ${name}`, block, run });
}

export const describe = Object.assign(defineBlock, { each: eachOf(defineBlock) });
export const test = Object.assign(defineTest, { each: eachOf(defineTest) });
export const beforeAll = (step: Step) => void block.beforeAll.push(step);
export const afterAll = (step: Step) => void block.afterAll.push(step);
export const beforeEach = (step: Step) => void block.beforeEach.push(step);
export const afterEach = (step: Step) => {
  const isOfEveryTest = new Error('called').stack?.includes('/test/support/after-this-test.ts');
  void (isOfEveryTest ? afterEveryTest : block.afterEach).push(step);
};
export const jest = { setTimeout: () => {} };
export { expect };
