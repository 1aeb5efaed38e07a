import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { type Fields, logicalId, type Resource, type Template } from './cloudformation.ts';
import { ALIASED } from './versions.ts';

/** @returns the SHA-256 of a package, for example of `allocate.zip`. */
export type HashOfPackage = (name: string) => string;

export function packageHashes(folder: string): HashOfPackage {
  return (name) => hash('sha256', readFileSync(path.join(folder, name)));
}

/**
 * Adds a hash to the logical ids of the deployment of the API and of the versions of functions, because CloudFormation must
 * create these resources again when their content changes.
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

/** Returns the properties of a function that become part of a version, except packages, whose keys each deployment changes. */
function published({ Properties }: Partial<Resource> = {}): Partial<Fields> {
  const { Code: _code, Layers: _layers, Tags: _tags, ReservedConcurrentExecutions: _, ...kept } = Properties ?? {};
  return kept;
}

function named<T extends Template>(template: T, id: string, made: readonly unknown[]): T {
  if (!(id in template.Resources)) return template;
  const suffix = hash('sha256', JSON.stringify(made)).slice(0, 8);
  return JSON.parse(JSON.stringify(template).replaceAll(`"${id}"`, `"${id}${suffix}"`));
}
