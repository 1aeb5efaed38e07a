import { Command } from 'commander';
import { specJsonSchema } from '../../lib/cluster/spec-json-schema.ts';
import type { Act } from '../act.ts';
import { withExamples } from '../examples.ts';
import { EXIT } from '../exit-codes.ts';
import { yamlOf } from '../terminal.ts';

/** `kbctl cluster schema`: needs no table. */
export function clusterSchema(act: Act): Command {
  const command = new Command('schema')
    .description('Print the JSON Schema of a cluster spec, for editors: JSON, or YAML with -o yaml')
    .action(
      act(async ({ output }) => {
        const schema = specJsonSchema();
        output.data(output.format === 'yaml' ? yamlOf(schema) : `${JSON.stringify(schema, undefined, 2)}\n`);
        return EXIT.fine;
      }),
    );
  return withExamples(command, ['kbctl cluster schema > cluster-spec.schema.json']);
}
