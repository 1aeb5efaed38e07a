import { parse } from 'yaml';
import { alarms } from '../../deploy/alarms.ts';
import type { Fields, Resources } from '../../deploy/cloudformation.ts';
import { DASHBOARD } from '../../deploy/dashboard.ts';
import { templateParameters } from '../../deploy/parameters.ts';
import { readInRepository } from './repository.ts';

function sections(name: string): { readonly Resources: Resources; readonly Conditions: Fields } {
  return parse(readInRepository(`deploy/${name}.yml`));
}

/** Returns the template without the resources that osls compiles from functions, so that no packaging is needed. */
export function uncompiledTemplate(): { readonly Resources: Resources } & Readonly<Record<string, object>> {
  const files = ['table', 'queues', 'admission-endpoint'].map((name) => sections(name).Resources);
  return {
    Parameters: templateParameters(),
    Conditions: sections('conditions').Conditions,
    Resources: Object.assign({}, ...files, alarms(), DASHBOARD),
  };
}
