import { readFileSync } from 'node:fs';
import { parseSync } from 'oxc-parser';

/** One change of a module. */
interface Mutant {
  readonly node: Node;
  readonly line: number;
  readonly original: string;
  /** The expression in place of `original`; empty if the mutant skips a statement. */
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

/**
 * Returns a module's mutants: conditions, arithmetic, literals, return values, optional chains and removed statements. Also returns
 * the module's source and syntax tree.
 */
export function planOf(file: string) {
  const source = readFileSync(file, 'utf8');
  const program = parseSync(file, source).program as unknown as Node;
  const text = ({ start, end }: Node) => source.slice(start, end);
  const mutants: Mutant[] = [];
  const add = (node: Node, replacement: string) => {
    const line = source.slice(0, node.start).split('\n').length;
    mutants.push({ node, line, original: text(node), replacement });
  };
  const visit = (node: Node) => {
    mutate(node, text, add);
    for (const child of childrenOf(node)) visit(child);
  };
  visit(program);
  return { source, program, mutants };
}

type Add = (node: Node, replacement: string) => void;

function childrenOf(node: Node): readonly Node[] {
  if (WITH_EXPRESSION.has(node.type)) return [node['expression'] as Node];
  if (SKIPPED.has(node.type) || node.type.startsWith('TS')) return [];
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

/** Returns the source of a module with all of its mutants, each behind a switch. The number of the first mutant is `firstId`. */
export function instrumented(file: string, firstId: number): string {
  const { source, program, mutants } = planOf(file);
  const numbered = mutants.map((mutant, place) => ({ ...mutant, id: firstId + place }));
  const ofNodes = Map.groupBy(numbered, ({ node }) => node);
  const render = (node: Node): string => {
    let [text, at] = ['', node.start];
    for (const child of childrenOf(node).toSorted((one, other) => one.start - other.start)) {
      // Both names of `export { name }` are the same text.
      if (child.start < at) continue;
      text += source.slice(at, child.start) + render(child);
      at = child.end;
    }
    return switched(ofNodes.get(node) ?? [], text + source.slice(at, node.end));
  };
  return source.slice(0, program.start) + render(program) + source.slice(program.end);
}

function switched(same: readonly (Mutant & { readonly id: number })[], inner: string): string {
  const [first] = same;
  if (first?.replacement === '') return `{ if (!__mutant(${first.id})) { ${inner} } }`;
  return same.reduce((text, { id, replacement }) => `(__mutant(${id}) ? (${replacement}) : (${text}))`, inner);
}
