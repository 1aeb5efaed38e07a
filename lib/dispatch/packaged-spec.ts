import { readFileSync } from 'node:fs';
import path from 'node:path';
import { isNativeError } from 'node:util/types';
import type { PackagedSpec } from '../runtime/environment.ts';
import { parseClusterSpec } from '../spec/parse-cluster-spec.ts';
import { describeFaults } from '../spec/spec-fault.ts';

const FILE_NAME = 'cluster.yml';

/** The `cluster.yml` beside the code of a function. */
export function readPackagedSpec(folder: string): PackagedSpec {
  const text = textIn(path.join(folder, FILE_NAME));
  if (text === undefined) return { outcome: 'none' };
  if (typeof text !== 'string') return { outcome: 'invalid', reason: `${FILE_NAME} cannot be read: ${text.message}` };
  const parsed = parseClusterSpec(text);
  if ('faults' in parsed) return { outcome: 'invalid', reason: describeFaults(FILE_NAME, parsed.faults) };
  return { outcome: 'spec', spec: parsed.spec };
}

function textIn(file: string): string | Error | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (!isNativeError(error)) throw error;
    return 'code' in error && error.code === 'ENOENT' ? undefined : error;
  }
}
