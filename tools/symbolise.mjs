// Prints a log, and replaces the positions in bundles of functions by positions in the sources:
//   npm run -s symbolise <log.txt             after "npm run package" of the same version
//   node symbolise.mjs <log.txt               in the folder of a release
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import path from 'node:path';

const here = import.meta.dirname;
const folder = [path.join(here, 'maps'), path.join(here, '..', '.cache', 'maps')].find((one) => existsSync(one));
if (folder === undefined) {
  console.error('symbolise: no source maps. Run "npm run package", or run symbolise.mjs in the folder of a release.');
  process.exit(1);
}

const files = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.map'));
const mapOf = (name) => new SourceMap(JSON.parse(readFileSync(path.join(folder, name), 'utf8')));
const maps = new Map(files.map((name) => [name.slice(0, -'.map'.length), mapOf(name)]));

function sourceOf(position, bundle, line, column) {
  const { fileName, lineNumber, columnNumber } = maps.get(bundle)?.findOrigin(Number(line), Number(column)) ?? {};
  return fileName === undefined ? position : `${fileName.replace(/^(\.\.\/)+/, '')}:${lineNumber}:${columnNumber}`;
}

const POSITION = /(?:file:\/\/)?\/(?:var\/task|opt)\/((?:functions|nodejs)\/[\w-]+\.mjs):(\d+):(\d+)/g;
process.stdout.write(readFileSync(0, 'utf8').replace(POSITION, sourceOf));
