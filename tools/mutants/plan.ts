import { readFileSync } from 'node:fs';
import { parseSync } from 'oxc-parser';

/** One change of a module, by offsets in its source. */
export interface Mutant {
  readonly line: number;
  readonly start: number;
  readonly end: number;
  readonly original: string;
  /** The other expression. Empty: a statement is skipped. */
  readonly replacement: string;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

const OPERATORS: Readonly<Record<string, readonly string[]>> = {
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '===': ['!=='],
  '!==': ['==='],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '%': ['*'],
  '&': ['|'],
  '|': ['&'],
  '^': ['&'],
  '<<': ['>>'],
  '>>': ['<<'],
  '>>>': ['<<'],
  '&&': ['||'],
  '||': ['&&'],
  '??': ['&&'],
};
/** Type assertions, which contain an expression. */
const WITH_EXPRESSION = new Set(['TSAsExpression', 'TSSatisfiesExpression', 'TSNonNullExpression']);
const SKIPPED = new Set(['ImportDeclaration', 'ExportAllDeclaration', 'TemplateElement']);
const DECIDED = new Set(['BinaryExpression', 'LogicalExpression', 'UnaryExpression']);

/** Returns the mutants of a module: conditions, arithmetic, literals, return values, optional chains and removed statements. */
export function mutantsOf(file: string): readonly Mutant[] {
  const source = readFileSync(file, 'utf8');
  const found: Mutant[] = [];
  const add = (node: Node, replacement: string) => {
    const { start, end } = node;
    const line = source.slice(0, start).split('\n').length;
    found.push({ line, start, end, original: source.slice(start, end), replacement });
  };
  visit(parseSync(file, source).program as unknown as Node, source, add);
  return found;
}

type Add = (node: Node, replacement: string) => void;

function visit(node: Node, source: string, add: Add): void {
  if (SKIPPED.has(node.type)) return;
  if (node.type.startsWith('TS')) {
    if (WITH_EXPRESSION.has(node.type)) visit(node['expression'] as Node, source, add);
    return;
  }
  mutate(node, (child) => source.slice(child.start, child.end), add);
  for (const child of childrenOf(node)) visit(child, source, add);
}

function childrenOf(node: Node): readonly Node[] {
  const isSkipped = (field: string) =>
    (field === 'key' && node['computed'] !== true) || field === 'directive' || field === 'source';
  return Object.entries(node)
    .filter(([field]) => !isSkipped(field))
    .flatMap(([, value]) => value)
    .filter(isNode);
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value;
}

function mutate(node: Node, text: (child: Node) => string, add: Add): void {
  const child = (field: string) => node[field] as Node;
  // A logical operand gets parentheses, because `a ?? b && c` is not an expression.
  const operand = (side: string) =>
    child(side).type === 'LogicalExpression' ? `(${text(child(side))})` : text(child(side));
  switch (node.type) {
    case 'BinaryExpression':
    case 'LogicalExpression':
      for (const operator of OPERATORS[String(node['operator'])] ?? []) {
        add(node, `${operand('left')} ${operator} ${operand('right')}`);
      }
      return;
    case 'UnaryExpression':
      if (node['operator'] === '!') add(node, text(child('argument')));
      return;
    case 'IfStatement':
    case 'ConditionalExpression':
      if (!DECIDED.has(child('test').type)) add(child('test'), `!(${text(child('test'))})`);
      return;
    case 'Literal':
      literal(node, add);
      return;
    case 'ReturnStatement':
      if (isNode(node['argument'])) returned(child('argument'), text, add);
      return;
    case 'ArrowFunctionExpression':
      if (child('body').type !== 'BlockStatement') returned(child('body'), text, add);
      return;
    case 'ChainExpression':
      add(node, text(node).replaceAll('?.[', '[').replaceAll('?.(', '(').replaceAll('?.', '.'));
      return;
    case 'ExpressionStatement':
      if (node['directive'] == null) add(node, '');
      return;
    case 'ThrowStatement':
      add(node, '');
  }
}

function returned(node: Node, text: (child: Node) => string, add: Add): void {
  if (text(node) !== 'undefined') add(node, 'undefined');
}

function literal(node: Node, add: Add): void {
  const { value } = node;
  if (typeof value === 'boolean') add(node, String(!value));
  else if (typeof value === 'number') add(node, String(value + 1));
  else if (typeof value === 'string') add(node, value === '' ? "'mutated'" : "''");
}

/** Returns the source with all of its mutants, each behind a switch. The number of the first mutant is `firstId`. */
export function instrumented(source: string, mutants: readonly Mutant[], firstId: number): string {
  const order = mutants
    .map((mutant, place) => ({ ...mutant, id: firstId + place }))
    .sort((a, b) => a.start - b.start || b.end - a.end);
  const render = (from: number, to: number, inside: typeof order): string => {
    const [first] = inside;
    if (first === undefined) return source.slice(from, to);
    const { start, end } = first;
    const within = inside.filter((other) => other.end <= end);
    const same = within.filter((other) => other.start === start && other.end === end);
    const others = within.filter((other) => !same.includes(other));
    const after = inside.filter((other) => other.start >= end);
    return source.slice(from, start) + switched(same, render(start, end, others)) + render(end, to, after);
  };
  return render(0, source.length, order);
}

function switched(same: readonly (Mutant & { readonly id: number })[], inner: string): string {
  const [first] = same;
  if (first?.replacement === '') return `{ if (!__mutant(${first.id})) { ${inner} } }`;
  return same.reduce((text, { id, replacement }) => `(__mutant(${id}) ? (${replacement}) : (${text}))`, inner);
}
