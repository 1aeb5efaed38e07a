// Changes of the template that osls compiles.
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { defined } from '../lib/util/values.ts';
import {
  type Fields,
  logicalId,
  type Resource,
  type Resources,
  ref,
  substitute,
  type Template,
} from './cloudformation.ts';
import { ALIASED } from './functions.ts';

/** @returns the SHA-256 of a package, for example of `allocate.zip`. */
export type HashOfPackage = (name: string) => string;

export function packageHashes(folder: string): HashOfPackage {
  return (name) => hash('sha256', readFileSync(path.join(folder, name)));
}

/**
 * Adds a hash to the logical ids of the API's deployment and of function versions, because CloudFormation must create these
 * resources again when their content changes.
 */
export function nameReplacedResources<T extends Template>(template: T, hashOf: HashOfPackage): T {
  const { AdmissionApi: api, AdmissionApiResource: resource, AdmissionApiMethod: method } = template.Resources;
  const { AdmissionVpcEndpointIds: ids } = template['Parameters'] as Fields;
  const deployed = named(template, 'AdmissionApiDeployment', [api, resource, method, ids]);
  return ALIASED.reduce((before, name) => {
    const made = published(before.Resources[`${logicalId(name)}LambdaFunction`]);
    const packages = [`${name}.zip`, 'allocator.zip'].map(hashOf);
    return named(before, `${logicalId(name)}Version`, [made, packages]);
  }, deployed);
}

/** Returns the function's properties that a version contains. Omits packages, because each deployment changes their keys. */
function published({ Properties }: Partial<Resource> = {}): Partial<Fields> {
  const { Code: _code, Layers: _layers, Tags: _tags, ReservedConcurrentExecutions: _, ...kept } = Properties ?? {};
  return kept;
}

function named<T extends Template>(template: T, id: string, made: readonly unknown[]): T {
  if (!(id in template.Resources)) return template;
  const suffix = hash('sha256', JSON.stringify(made)).slice(0, 8);
  return JSON.parse(JSON.stringify(template).replaceAll(`"${id}"`, `"${id}${suffix}"`));
}

/** The commands that run kbctl: in the repository, and in the folder of a release. */
const KBCTL = ['node cli/kbctl.mjs', 'node kbctl.mjs'] as const;
/** The parts that only `serverless deploy` needs: its bucket, and the outputs about the layer. */
const OF_OSLS = /^ServerlessDeploymentBucket|^AllocatorLambdaLayer.+/;

/**
 * Turns the template of osls into a template that CloudFormation can deploy without osls. The new template can be
 * deployed in any account and region, and several times in one account. Two parameters contain the S3 bucket and the
 * key prefix of the packages, and CloudFormation chooses the names of the roles.
 */
export function releaseTemplate(compiled: Template, version: string, hashOf: HashOfPackage): Template {
  const kept = (section: Readonly<Record<string, unknown>>) =>
    Object.entries(section).filter(([id]) => !OF_OSLS.test(id));
  const resources = kept(compiled.Resources).map(([id, resource]) => [id, released(resource as Resource, version)]);
  const template = {
    ...compiled,
    Description: `kube-bootstrap-controller ${version}`,
    Parameters: { ...CODE_PARAMETERS, ...(compiled['Parameters'] as Fields) },
    Resources: Object.fromEntries(resources) as Resources,
    Outputs: JSON.parse(JSON.stringify(Object.fromEntries(kept(compiled.Outputs ?? {}))).replaceAll(...KBCTL)),
  };
  return nameReplacedResources(template, hashOf);
}

function parameter(Description: string, Default?: string): Fields {
  return { Type: 'String', ...defined({ Default }), Description };
}

const CODE_PARAMETERS: Fields = {
  CodeBucket: parameter('The bucket, in the region of the stack, that holds the zips of the release.'),
  CodePrefix: parameter('What their keys in the bucket begin with, before the version.', 'kube-bootstrap-controller/'),
};

function released(resource: Resource, version: string): Resource {
  const { Properties } = resource;
  switch (resource.Type) {
    case 'AWS::Lambda::Function': {
      const { Tags: _tags, ...properties } = Properties;
      return { ...resource, Properties: { ...properties, Code: codeIn(Properties['Code'] as Fields, version) } };
    }
    case 'AWS::Lambda::LayerVersion':
      return { ...resource, Properties: { ...Properties, Content: codeIn(Properties['Content'] as Fields, version) } };
    case 'AWS::IAM::Role': {
      const { RoleName: _name, ...properties } = Properties;
      return { ...resource, Properties: properties };
    }
    default:
      return resource;
  }
}

/**
 * Returns the S3 bucket and the key of a package. The version is in the key and not in a parameter, because an update of the
 * stack keeps the values of parameters, and would keep the old code.
 */
function codeIn({ S3Key: key }: Fields, version: string): Fields {
  const name = String(key).split('/').at(-1);
  return { S3Bucket: ref('CodeBucket'), S3Key: substitute(`\${CodePrefix}${version}/${name}`) };
}
