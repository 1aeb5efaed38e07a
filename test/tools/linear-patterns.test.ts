import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';
import type { AST } from '@eslint-community/regexpp';
import { RegExpParser, visitRegExpAST } from '@eslint-community/regexpp';
import { expect, test } from '@jest/globals';
import { parseSync, Visitor } from 'oxc-parser';

const root = path.join(import.meta.dirname, '..', '..');
const LENGTH = 50_000;
/** A linear search of that length takes milliseconds, a quadratic one many seconds. */
const HANGS_MS = 500;
const CANDIDATES = [...'a0-_. \t\n"\\/:,=!@#%~éA\u0001\u202e'];

interface Pattern {
  readonly place: string;
  readonly source: string;
  readonly flags: string;
}

function patternsOf(folder: string): Pattern[] {
  const files = readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' });
  return files.filter((file) => file.endsWith('.ts')).flatMap((file) => patternsIn(path.join(folder, file)));
}

function patternsIn(file: string): Pattern[] {
  const found: Pattern[] = [];
  const { program } = parseSync(file, readFileSync(path.join(root, file), 'utf8'));
  new Visitor({
    Literal: (node) => {
      if ('regex' in node) found.push({ place: file, source: node.regex.pattern, flags: node.regex.flags });
    },
  }).visit(program);
  return found;
}

/** A text that the node matches, and what comes before it. */
function sample(node: AST.Element | AST.Alternative, flags: string): string {
  if (node.type === 'Alternative') return node.elements.map((element) => sample(element, flags)).join('');
  if (node.type === 'Assertion' || node.type === 'Backreference') return '';
  if (node.type === 'Quantifier') return sample(node.element, flags).repeat(Math.max(1, node.min));
  if ('alternatives' in node && node.alternatives[0]?.type === 'Alternative')
    return sample(node.alternatives[0], flags);
  return charactersOf(node, flags)[0] ?? '';
}

function charactersOf(node: AST.Node, flags: string): string[] {
  const whole = new RegExp(`^(?:${node.raw})$`, flags.replace(/[gmy]/g, ''));
  const own = node.type === 'Character' ? [String.fromCodePoint(node.value)] : [];
  return [...own, ...CANDIDATES].filter((character) => whole.test(character));
}

function before(node: AST.Node, flags: string): string {
  const { parent } = node;
  if (parent === null) return '';
  const siblings =
    parent.type === 'Alternative' ? parent.elements.slice(0, parent.elements.indexOf(node as AST.Element)) : [];
  return before(parent, flags) + siblings.map((sibling) => sample(sibling, flags)).join('');
}

/** Each repetition is fed with what it repeats: alone, after its beginning, and with its beginning again and again. */
function attacks({ source, flags }: Pattern): Set<string> {
  const texts = new Set<string>();
  const parsed = new RegExpParser().parsePattern(source, 0, source.length, { unicode: flags.includes('u') });
  visitRegExpAST(parsed, {
    onQuantifierEnter: (quantifier) => {
      if (quantifier.max !== Number.POSITIVE_INFINITY) return;
      const characters = charactersOf(quantifier.element, flags);
      const odd = characters.find((character) => /\W/.test(character)) ?? '';
      const prefix = before(quantifier, flags);
      for (const pump of new Set([characters[0] ?? sample(quantifier.element, flags), odd])) {
        for (const unit of [pump, prefix + pump]) {
          const text = unit.repeat(Math.ceil(LENGTH / Math.max(1, unit.length)));
          for (const end of ['\u0000', '\n\u0000']) texts.add(`\u0000${text}${end}`).add(prefix + text + end);
        }
      }
    },
  });
  return texts;
}

/** Whether some text makes the search hang: the runtime then ends it. */
function hangs(pattern: Pattern): boolean {
  const search = new RegExp(pattern.source, pattern.flags);
  return [...attacks(pattern)].some((text) => {
    try {
      vm.runInNewContext('text.replace(search, "")', { text, search }, { timeout: HANGS_MS });
      return false;
    } catch {
      return true;
    }
  });
}

test.each([
  ['\\beyJ[\\w-]+\\.[\\w-]+\\.[\\w-]*', 'g'],
  ['^(a+)+$', ''],
])('an attack finds that %s is slow', (source, flags) => {
  expect(hangs({ place: 'here', source, flags })).toBe(true);
});

test('no pattern of the product takes more than linear time, whatever it searches', () => {
  const patterns = ['lib', 'functions', 'cli', 'local'].flatMap(patternsOf);
  expect(patterns.length).toBeGreaterThan(50);
  expect(patterns.filter(hangs).map(({ place, source }) => `${place}: /${source}/`)).toEqual([]);
});
