/** What YAML can say. */
type Value = string | number | boolean | null | readonly Value[] | { readonly [name: string]: Value };
type Fields = { readonly [name: string]: Value };

/** The `resources` of serverless.yml. */
export interface Resources {
  readonly Conditions?: Fields;
  readonly [section: string]: Value | undefined;
}

const NO_VALUE = Symbol('AWS::NoValue');

/**
 * The resources with every condition worked out: what has a `Condition` that does not hold is gone, and so is every
 * `Fn::If`. Parameters are known when the template is made, so CloudFormation need not be asked, and the template shows
 * what will be there.
 *
 * @throws Error for a condition that is not made of `Fn::Equals` and `Fn::Not`, and for one that is nowhere.
 */
export function resolveConditions({ Conditions = {}, ...sections }: Resources): Resources {
  const holds = (name: Value): boolean => {
    const condition = typeof name === 'string' ? Conditions[name] : undefined;
    if (condition === undefined)
      throw new Error(`There is no condition ${JSON.stringify(name)} in deploy/conditions.yml.`);
    return evaluate(condition);
  };

  const resolve = (value: Value): Value | typeof NO_VALUE => {
    if (isList(value)) return value.map(resolve).filter((item) => item !== NO_VALUE);
    return isFields(value) ? resolveObject(value) : value;
  };

  const resolveObject = (value: Fields): Value | typeof NO_VALUE => {
    const { 'Fn::If': choice, Ref: reference, Condition: condition, ...fields } = value;
    if (reference === 'AWS::NoValue') return NO_VALUE;
    if (isList(choice)) {
      const [name = null, then = null, otherwise = null] = choice;
      return resolve(holds(name) ? then : otherwise);
    }
    // That of a policy's statement is no name.
    if (typeof condition !== 'string') return resolveFields(value);
    return holds(condition) ? resolveFields(fields) : NO_VALUE;
  };

  const resolveFields = (fields: Fields): Fields =>
    Object.fromEntries(
      Object.entries(fields).flatMap(([name, field]) => {
        const resolved = resolve(field);
        return resolved === NO_VALUE ? [] : [[name, resolved]];
      }),
    );

  return resolveFields(
    Object.fromEntries(
      Object.entries(sections).flatMap(([name, section]) => (section === undefined ? [] : [[name, section]])),
    ),
  );
}

function evaluate(condition: Value): boolean {
  if (isFields(condition)) {
    const { 'Fn::Equals': equals, 'Fn::Not': not } = condition;
    if (isList(equals)) return String(equals[0]) === String(equals[1]);
    if (isList(not) && not[0] !== undefined) return !evaluate(not[0]);
  }
  throw new Error(
    `A condition in deploy/conditions.yml is neither Fn::Equals nor Fn::Not: ${JSON.stringify(condition)}`,
  );
}

function isFields(value: Value): value is Fields {
  return typeof value === 'object' && value !== null && !isList(value);
}

function isList(value: Value | undefined): value is readonly Value[] {
  return Array.isArray(value);
}
