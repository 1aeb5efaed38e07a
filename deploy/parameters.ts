import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';

type Parameter = Readonly<Record<'Default' | 'Description', string>>;
type Parameters = Readonly<Record<string, Parameter>>;

const { Parameters: OF_TEMPLATE, OfDeployment: OF_DEPLOYMENT } = parse(
  readFileSync(path.join(import.meta.dirname, 'parameters.yml'), 'utf8'),
) as Readonly<Record<'Parameters' | 'OfDeployment', Parameters>>;

/** All parameters, each with its name for `npm run deploy` and its name in a template. */
const PARAMETERS = Object.entries({ ...OF_TEMPLATE, ...OF_DEPLOYMENT }).map(([inTemplate, parameter]) => ({
  ...parameter,
  inTemplate,
  name: inTemplate === 'TableName' ? 'table' : inTemplate.slice(0, 1).toLowerCase() + inTemplate.slice(1),
}));

/**
 * Returns the parameters of the template. The default of each parameter is the value in force, so that a changed value also
 * changes the template: osls skips the deployment of an unchanged template.
 */
export function templateParameters(values: Deployment['values'] = {}): Parameters {
  const ofTemplate = PARAMETERS.filter(({ inTemplate }) => inTemplate in OF_TEMPLATE);
  return Object.fromEntries(
    ofTemplate.map(({ name, inTemplate, ...parameter }) => [
      inTemplate,
      { ...parameter, Default: values[name] ?? parameter.Default },
    ]),
  );
}

export interface Deployment {
  /** The values of all parameters, and of other entries of `params`. */
  readonly values: Readonly<Record<string, string>>;
  /** The names of the parameters that the command line or a block of `params` in serverless.yml sets. */
  readonly requested: ReadonlySet<string>;
}

type Block = Readonly<Record<string, string | number | boolean | null>>;

/**
 * Returns the values in force: from the command line (`name=value`), else the block of the stage, else the block `default`, else
 * the default of the parameter. The default of `secretsPrefix` contains the stage.
 */
export function parametersInForce(
  blocks: Readonly<Record<string, Block>>,
  stage: string,
  fromCommandLine?: readonly string[] | null,
): Deployment {
  const pairs = (fromCommandLine ?? []).map((pair): [string, string] => {
    const at = pair.indexOf('=');
    return [pair.slice(0, at), pair.slice(at + 1)];
  });
  const requested = { ...setIn(blocks['default']), ...setIn(blocks[stage]), ...Object.fromEntries(pairs) };
  const defaults = Object.fromEntries(PARAMETERS.map(({ name, Default }) => [name, Default]));
  const ofStage = { secretsPrefix: `kube-bootstrap-controller/${stage}/` };
  return { values: { ...defaults, ...ofStage, ...requested }, requested: new Set(Object.keys(requested)) };
}

function setIn(block: Block = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(block).flatMap(([name, value]) => (value === null ? [] : [[name, String(value)]])),
  );
}

/** The name of a stage. Lambda accepts 64 characters, and the longest function name has 45 without the stage. */
const STAGE = /^[a-zA-Z][a-zA-Z0-9-]{0,18}$/;

/** Returns the faults that CloudFormation does not detect, one per line; `undefined` if there is no fault. */
export function parameterFaults(values: Deployment['values'], stage: string): string | undefined {
  const names = PARAMETERS.map(({ name }) => name);
  const unknown = Object.keys(values).filter((name) => !names.includes(name));
  const faults = unknown.map((name) => `${name} is not a parameter; there are ${names.join(', ')}`);
  if (!STAGE.test(stage)) {
    faults.push(`stage ${stage}: write at most 19 letters, digits and hyphens, as names of functions have at most 64`);
  }
  return faults.length === 0 ? undefined : faults.join('\n');
}

/** Returns the tags of the stack; an empty object without the parameter `tags`. */
export function stackTags({ tags = '' }: Deployment['values']): Readonly<Record<string, string>> {
  const pairs = tags.split(',').filter((tag) => tag !== '');
  return Object.fromEntries(pairs.map((tag) => tag.split(/=(.*)/s).slice(0, 2)));
}

/** Returns the deployed values of parameters that the next deployment does not set and would reset, by name in the template. */
export function keptParameters(
  deployed: Deployment['values'],
  { values, requested }: Deployment,
): Deployment['values'] {
  const kept = PARAMETERS.flatMap(({ name, inTemplate }) => {
    const before = deployed[inTemplate];
    const isReset = inTemplate in OF_TEMPLATE && before !== undefined && before !== values[name];
    return isReset && !requested.has(name) ? [[inTemplate, before]] : [];
  });
  return Object.fromEntries(kept);
}

/** Returns the table of docs/parameters.md. */
export function parameterTable(): string[] {
  const rows = PARAMETERS.map(({ name, Default, Description }) => {
    const shown = name === 'secretsPrefix' ? '`kube-bootstrap-controller/<stage>/`' : Default && `\`${Default}\``;
    return `| \`${name}\` | ${shown} | ${Description} |`;
  });
  return ['| parameter | default | meaning |', '| --- | --- | --- |', ...rows];
}
