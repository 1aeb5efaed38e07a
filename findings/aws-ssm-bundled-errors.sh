#!/usr/bin/env bash
# @aws-sdk/client-ssm 3.1169.0 with esbuild 0.28.2: a bundle with the command GetParameter alone contains the classes and schemas of all 140 errors
# of the service, although this command documents four. They are 70 of the 78 KB of the client, minified. The package has "sideEffects": false, but
# the module of the schemas registers each class when it loads, and its objects have computed keys, which a bundler has to evaluate. The size of a
# function therefore depends on the number of operations of a service, not on those that the function calls.
# Seen on 2026-11-29 with Node.js 24:
#   error classes of the client: 140, in the bundle: 140
#   of the 78 KB of the client, errors and schemas: 70 KB
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund @aws-sdk/client-ssm@3.1169.0 esbuild@0.28.2
cat >parameter.mjs <<'JS'
import { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
export const read = (Name) => new SSMClient({}).send(new GetParameterCommand({ Name }));
JS
cat >run.mjs <<'JS'
import { readFile } from 'node:fs/promises';
import { build } from 'esbuild';

const { metafile, outputFiles } = await build({
  entryPoints: ['parameter.mjs'],
  bundle: true,
  minify: true,
  format: 'esm',
  platform: 'node',
  mainFields: ['module', 'main'],
  metafile: true,
  write: false,
  outfile: 'bundle.mjs',
});
const module = await readFile('node_modules/@aws-sdk/client-ssm/dist-es/models/errors.js', 'utf8');
const classes = [...module.matchAll(/^export class (\w+)/gm)].map(([, name]) => name);
const bundled = classes.filter((name) => outputFiles[0].text.includes(`name:"${name}"`));
const [{ inputs }] = Object.values(metafile.outputs);
const ofClient = Object.entries(inputs).filter(([file]) => file.includes('@aws-sdk/client-ssm/'));
const kilobytes = (parts) => Math.round(parts.reduce((sum, [, { bytesInOutput }]) => sum + bytesInOutput, 0) / 1000);
const errors = ofClient.filter(([file]) => /errors\.js$|schemas_0\.js$/.test(file));
console.log(`error classes of the client: ${classes.length}, in the bundle: ${bundled.length}`);
console.log(`of the ${kilobytes(ofClient)} KB of the client, errors and schemas: ${kilobytes(errors)} KB`);
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
error classes of the client: 140, in the bundle: 140
of the 78 KB of the client, errors and schemas: 70 KB
SEEN
