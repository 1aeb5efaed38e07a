import { Ajv2020 } from 'ajv/dist/2020.js';

const ajv = new Ajv2020({ allErrors: true, strictRequired: false, strictTypes: false });
ajv.addFormat('date-time', true);

/**
 * Returns the faults of a value by a JSON Schema of draft 2020-12, each with its path and reason. Throws if the schema contains
 * an unknown keyword.
 */
export function schemaFaults(schema: object, value: unknown): string[] {
  if (ajv.validate(schema, value)) return [];
  return (ajv.errors ?? []).map(({ instancePath, message }) => `${instancePath}: ${message}`);
}
