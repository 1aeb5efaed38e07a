import { expect, test } from '@jest/globals';
import { parseSync, Visitor } from 'oxc-parser';
import { filesInRepository, readInRepository } from '../support/repository.ts';

// Uses the JavaScript backend of recheck in its own thread, because it is ten times as slow within a test module.
process.env['RECHECK_BACKEND'] = 'pure';
const { checkSync } = await import('recheck');

/** Options without a time limit, so that the result does not depend on the speed of the machine. */
const NO_CLOCK = { timeout: null, attackTimeout: null, incubationTimeout: null, seedingTimeout: null } as const;
/**
 * Options for patterns with many bounded repetitions. They limit the search for an attack by a number of steps, and fix its
 * random seed.
 */
const SEARCH = { maxIteration: 2, randomSeed: 0 } as const;

interface Pattern {
  readonly place: string;
  readonly source: string;
  readonly flags: string;
}

/** Files that build a pattern at run time from other patterns. The analysis cannot read such a pattern. */
const PUT_TOGETHER = ['cli/terminal.ts'];

function patternsOf(folder: string): Pattern[] {
  const scripts = filesInRepository(folder).filter((file) => /\.[cm]?[jt]s$/.test(file));
  return scripts.flatMap((file) => patternsIn(file, readInRepository(file)));
}

/** Returns the literal patterns and the texts in calls of `RegExp`, including constants of the same file. */
function patternsIn(place: string, code: string): Pattern[] {
  const found: Pattern[] = [];
  const constants = new Map<string, string>();
  const construct = ({ callee, arguments: [first, second] }: Construction) => {
    if (callee.name !== 'RegExp' || first === undefined) return;
    const shown = code.slice(first.start, first.end);
    const source = typeof first.value === 'string' ? first.value : constants.get(shown);
    if (source !== undefined) found.push({ place, source, flags: String(second?.value ?? '') });
    else if (!PUT_TOGETHER.includes(place)) throw new Error(`${place}: ${shown} is not a known text`);
  };
  new Visitor({
    VariableDeclarator: ({ id, init }) => {
      if (id.type === 'Identifier' && init?.type === 'Literal' && typeof init.value === 'string') {
        constants.set(id.name, init.value);
      }
    },
    Literal: (node) => {
      if ('regex' in node) found.push({ place, source: node.regex.pattern, flags: node.regex.flags });
    },
    NewExpression: (node) => construct(node as Construction),
    CallExpression: (node) => construct(node as Construction),
  }).visit(parseSync(place, code).program);
  return found;
}

interface Construction {
  readonly callee: { readonly name?: string };
  readonly arguments: readonly { readonly value?: unknown; readonly start: number; readonly end: number }[];
}

/**
 * Returns whether a pattern begins at the start of the text, has at most one repetition, and has no alternatives, lines or
 * references to groups. Such a pattern is linear, because the engine tries each length of the repetition only once. It is not
 * analysed, because the analysis of a large bound takes a second.
 */
function hasOneWayToMatch({ source, flags }: Pattern): boolean {
  if (!source.startsWith('^') || source.includes('|') || /\\[1-9k]/.test(source) || flags.includes('m')) return false;
  const plain = source.replaceAll(/\\.|\[(?:\\.|[^\]])*\]/g, 'a').replaceAll('(?', '(');
  return (plain.match(/[*+?{]/g)?.length ?? 0) <= 1;
}

function isLinear(pattern: Pattern): boolean {
  const { source, flags } = pattern;
  return hasOneWayToMatch(pattern) || checkSync(source, flags, { ...NO_CLOCK, ...SEARCH }).status === 'safe';
}

test('the analysis reports slow patterns, and throws an error for a pattern that it cannot read', () => {
  const slow = ['const end = /\\s+$/;', "const SOURCE = '(x+x+)+y'; const named = RegExp(SOURCE, 'i');"];
  expect(slow.flatMap((code) => patternsIn('here', code)).map(isLinear)).toEqual([false, false]);
  expect(() => patternsIn('here', 'new RegExp(given)')).toThrow('here: given is not a known text');
});

test('every regular expression of the product takes linear time for any text', () => {
  const patterns = ['lib', 'functions', 'cli', 'local'].flatMap(patternsOf);
  expect(patterns.length).toBeGreaterThan(50);
  const slow = patterns.filter((pattern) => !isLinear(pattern));
  expect(slow.map(({ place, source }) => `${place}: /${source}/`)).toEqual([]);
});
