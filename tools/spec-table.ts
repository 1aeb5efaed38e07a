import { type JsonSchema, specJsonSchema } from './json-schemas.ts';

/** Returns a table of docs/cluster-spec.md with the fields in `names`, such as `name, mode`, and the fields below them. */
export function fieldTable(names: string): string[] {
  const rows = fieldsOf(specJsonSchema())
    .filter(({ path }) => names.split(', ').includes(path.split(/[.[]/)[0] ?? ''))
    .map(({ path, meaning, standard }) => `| \`${path}\` | ${meaning} | ${standard} |`);
  return ['| field | meaning | default |', '| --- | --- | --- |', ...rows];
}

type Row = Readonly<Record<'path' | 'meaning' | 'standard', string>>;

/** Returns all fields except mappings. The fields of list entries follow their list. */
function fieldsOf(part: JsonSchema, path = ''): Row[] {
  const { properties, items, required } = part as {
    readonly properties?: Readonly<Record<string, JsonSchema>>;
    readonly items?: JsonSchema;
    readonly required?: readonly string[];
  };
  return [
    ...Object.entries(properties ?? {}).flatMap(([name, field]) => {
      const at = path === '' ? name : `${path}.${name}`;
      const isNested = name === 'kubeconfig' && path !== '';
      if (isNested) return [{ path: at, meaning: 'The same fields as in `kubeconfig`.', standard: 'required' }];
      const own = field['properties'] === undefined ? [rowOf(at, field, required?.includes(name) === true)] : [];
      return [...own, ...fieldsOf(field, at)];
    }),
    ...(items === undefined ? [] : fieldsOf(items, `${path}[]`)),
  ];
}

function rowOf(path: string, field: JsonSchema, isRequired: boolean): Row {
  const [meaning = '', described = ''] = String(field['description']).split(/ Default: (.*)\.$/);
  const standard = field['default'] === undefined ? described : `\`${[field['default']].flat().join('`, `')}\``;
  return {
    path,
    meaning: meaning
      .replaceAll(/\S*<\S+>[^\s:]*/g, '`$&`')
      .replaceAll(/^\w[\w-]*(?=: )|(?<=\. )[a-z][\w-]*(?=: )/g, '`$&`'),
    standard: isRequired ? 'required' : standard,
  };
}
