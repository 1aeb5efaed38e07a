import type { Fields, Resource, Value } from '../../deploy/cloudformation.ts';

export interface ResolvedResource extends Omit<Resource, 'Properties'> {
  // biome-ignore lint/suspicious/noExplicitAny: each type has other properties
  readonly Properties: any;
}

export interface ResolvedTemplate {
  readonly Parameters: Readonly<Record<string, { readonly Default?: string; readonly AllowedPattern?: string }>>;
  readonly Resources: Readonly<Record<string, ResolvedResource>>;
  readonly Outputs: Readonly<Record<string, { readonly Value: unknown }>>;
  /** The descriptions of the rules that these parameters break. CloudFormation then deploys nothing. */
  readonly broken: readonly string[];
}

interface Rule {
  readonly RuleCondition?: Value;
  readonly Assertions: readonly { readonly Assert: Value; readonly AssertDescription: string }[];
}

const NO_VALUE = Symbol('AWS::NoValue');
const PSEUDO = {
  'AWS::Partition': 'aws',
  'AWS::Region': 'REGION',
  'AWS::AccountId': 'ACCOUNT',
  'AWS::URLSuffix': 'amazonaws.com',
};

/**
 * Returns the template with all conditions and parameters resolved, as CloudFormation resolves them. Ids and attributes stay
 * unresolved, because only CloudFormation knows them.
 */
export function resolveTemplate(
  template: object,
  parameters: Readonly<Record<string, string>> = {},
  stackName = 'kube-bootstrap-controller-dev',
): ResolvedTemplate {
  const { Parameters = {}, Conditions = {}, Rules = {}, ...sections } = template as Readonly<Record<string, Fields>>;
  const defaults = Object.entries(Parameters).map(([name, one]) => [name, (one as Fields)['Default'] ?? '']);
  const known: Fields = { ...PSEUDO, 'AWS::StackName': stackName, ...Object.fromEntries(defaults), ...parameters };
  for (const name of Object.keys(parameters)) {
    if (!(name in Parameters)) throw new Error(`The template has no parameter ${name}.`);
  }

  const holds = (condition: Value): boolean => {
    const [[name, operand] = ['', null]] = Object.entries(condition as Fields);
    const operands = Array.isArray(operand) ? (operand as Value[]) : [operand];
    switch (name) {
      case 'Condition':
        return holds(Conditions[String(operand)] ?? null);
      case 'Fn::Equals':
        return resolve(operands[0] ?? '') === resolve(operands[1] ?? '');
      case 'Fn::Not':
        return !holds(operands[0] ?? null);
      case 'Fn::And':
        return operands.every(holds);
      case 'Fn::Or':
        return operands.some(holds);
      default:
        throw new Error(`A condition is none that is known: ${JSON.stringify(condition)}`);
    }
  };

  const resolve = (value: Value): Value | typeof NO_VALUE => {
    if (Array.isArray(value)) return value.map(resolve).filter((item) => item !== NO_VALUE) as Value[];
    return typeof value === 'object' && value !== null ? resolveFields(value as Fields) : value;
  };

  const FUNCTIONS: Readonly<Record<string, (operand: Value, whole: Fields) => Value | typeof NO_VALUE>> = {
    Ref: (name, whole) => (name === 'AWS::NoValue' ? NO_VALUE : (known[String(name)] ?? whole)),
    'Fn::Sub': (text) => substitute(text),
    'Fn::Join': (operands) => {
      const [separator, items] = operands as [string, Value];
      const resolved = resolve(items) as Value[];
      const isText = resolved.every((item) => typeof item === 'string');
      return isText ? resolved.join(separator) : { 'Fn::Join': [separator, resolved] };
    },
    'Fn::Split': (operands) => {
      const [separator, text] = operands as [string, Value];
      return String(resolve(text)).split(separator);
    },
    'Fn::If': (operands) => {
      const [name, then, otherwise] = operands as [string, Value, Value];
      return resolve(holds({ Condition: name }) ? then : otherwise);
    },
  };

  const resolveFields = (fields: Fields): Value | typeof NO_VALUE => {
    const [[name = '', operand = ''] = []] = Object.entries(fields);
    const apply = FUNCTIONS[name];
    if (apply !== undefined) return apply(operand, fields);
    const { Condition: condition } = fields;
    if (typeof condition === 'string' && !holds({ Condition: condition })) return NO_VALUE;
    const { Condition: _name, ...rest } = fields;
    return resolveEntries(typeof condition === 'string' ? rest : fields);
  };

  /** Returns the name of an alarm, which is the value of a reference to it. */
  const alarmName = (id: string): Value | typeof NO_VALUE | undefined => {
    const { Type, Properties } = (sections['Resources']?.[id] ?? {}) as Fields;
    return Type === 'AWS::CloudWatch::Alarm' ? resolve((Properties as Fields)['AlarmName'] ?? '') : undefined;
  };

  const substitute = (sub: Value): Value => {
    const [text, variables = {}] = (Array.isArray(sub) ? sub : [sub]) as [string, Fields?];
    const replaced = text.replace(/\$\{([\w:]+)\}/g, (whole, name: string) => {
      const value = name in variables ? resolve(variables[name] ?? '') : (known[name] ?? alarmName(name));
      return typeof value === 'string' ? value : whole;
    });
    return /\$\{\w/.test(replaced) ? { 'Fn::Sub': replaced } : replaced;
  };

  const resolveEntries = (fields: Fields): Fields =>
    Object.fromEntries(
      Object.entries(fields).flatMap(([name, field]) => {
        const resolved = resolve(field);
        return resolved === NO_VALUE ? [] : [[name, resolved]];
      }),
    );

  const broken = Object.values(Rules as unknown as Readonly<Record<string, Rule>>)
    .filter(({ RuleCondition }) => RuleCondition === undefined || holds(RuleCondition))
    .flatMap(({ Assertions }) => Assertions.filter(({ Assert }) => !holds(Assert)))
    .map(({ AssertDescription }) => AssertDescription);
  return { ...resolveEntries(sections), Parameters, broken } as unknown as ResolvedTemplate;
}
