export type Value = string | number | boolean | null | readonly Value[] | { readonly [name: string]: Value };
export type Fields = { readonly [name: string]: Value };

export interface Resource {
  readonly Type: string;
  readonly Condition?: string;
  readonly DependsOn?: string | readonly string[];
  readonly DeletionPolicy?: string;
  readonly UpdateReplacePolicy?: string;
  readonly Properties: Fields;
}
export type Resources = Readonly<Record<string, Resource>>;

export interface Template {
  readonly Resources: Resources;
  readonly Outputs?: Fields;
  readonly [section: string]: unknown;
}

const NO_VALUE = { Ref: 'AWS::NoValue' } as const satisfies Fields;
export const STACK = { Ref: 'AWS::StackName' } as const satisfies Fields;

export function ref(name: string): Fields {
  return { Ref: name };
}

export function attribute(resource: string, name: string): Fields {
  return { 'Fn::GetAtt': [resource, name] };
}

/** @param text a text with `${Name}` for a parameter, a resource, a pseudo parameter or an entry of `variables`. */
export function substitute(text: string, variables?: Fields): Fields {
  return { 'Fn::Sub': variables === undefined ? text : [text, variables] };
}

export function whether(condition: string, then: Value, otherwise: Value = NO_VALUE): Fields {
  return { 'Fn::If': [condition, then, otherwise] };
}

export const TABLE_NAME = whether('OwnsTable', STACK, ref('TableName'));
export const SECRETS_PREFIX = whether('HasSecretsPrefix', ref('SecretsPrefix'), substitute('${AWS::StackName}/'));

export function ownArn(service: string, resource: string, variables?: Fields): Fields {
  return substitute(`arn:\${AWS::Partition}:${service}:\${AWS::Region}:\${AWS::AccountId}:${resource}`, variables);
}

/** The logical id that osls derives from the name of a function: `cluster-ip-repair` is `ClusterDashipDashrepair`. */
export function logicalId(functionName: string): string {
  const id = functionName.replaceAll('-', 'Dash');
  return id.slice(0, 1).toUpperCase() + id.slice(1);
}

/** If only some stacks have a function, returns its condition. The resources of the function have the same condition. */
export function conditionOf(functionName: string): Pick<Resource, 'Condition'> {
  return functionName === 'admission' ? { Condition: 'HasAdmission' } : {};
}

export function queueOf(loop: string): string {
  return `${pascalCase(loop)}TickQueue`;
}

/** Returns a name without hyphens: `cluster-ip-repair` becomes `ClusterIpRepair`. */
export function pascalCase(name: string): string {
  return name.replace(/(^|-)(\w)/g, (_, _dash, letter: string) => letter.toUpperCase());
}
