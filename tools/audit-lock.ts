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

type Packages = Readonly<Record<string, LockedPackage>>;
/** The packages that have an install script, and whether npm may run it. `auditLock` reports each `true` as a fault. */
type AllowScripts = Readonly<Record<string, boolean>>;

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

/** Returns a line for each fault of the lock file. */
export function auditLock(packages: Packages, allowScripts: AllowScripts): string[] {
  const entries = Object.entries(packages).filter(([at]) => at !== '' && at !== OWN_FOLDER);
  const scripted = new Set(entries.filter(([, { hasInstallScript }]) => hasInstallScript).map(([at]) => nameOf(at)));
  const faultsOfScripts = Object.entries(allowScripts).flatMap(([name, isAllowed]) => [
    ...(scripted.has(name) ? [] : [`${name} has no install script`]),
    ...(isAllowed ? [`${name} may run its install script`] : []),
  ]);
  return [
    ...entries.flatMap(([at, locked]) => faultsOf(at, locked, allowScripts).map((fault) => `${at}: ${fault}`)),
    ...faultsOfScripts.map((fault) => `allowScripts: ${fault}`),
  ];
}

function faultsOf(at: string, locked: LockedPackage, allowScripts: AllowScripts): string[] {
  const { name, version, integrity, resolved, link = false, license, hasInstallScript = false, deprecated } = locked;
  if (link) return resolved === OWN_FOLDER ? [] : [`is the folder ${resolved}, and only ${OWN_FOLDER} may be one`];
  const published = ALIASES[nameOf(at)] ?? nameOf(at);
  const address = `https://registry.npmjs.org/${published}/-/${published.replace(/^.*\//, '')}-${version}.tgz`;
  // npm writes no hash, and often no licence, of a package that it does not install on this platform.
  const isOmitted = (value: string | undefined) => value === undefined && isOfOtherPlatform(locked);
  const isUnknown = hasInstallScript && !Object.hasOwn(allowScripts, nameOf(at));
  const checks: readonly (readonly [isFine: boolean, fault: string])[] = [
    [isOmitted(integrity) || /^sha512-[\w+/]{86}==$/.test(integrity ?? ''), 'has no SHA-512 hash'],
    [[undefined, published].includes(name), `is the package ${name}`],
    [[undefined, address].includes(resolved), `comes from ${resolved}`],
    [isOmitted(license) || isAllowed(license), `has the licence ${license}, which is not on the list`],
    [!isUnknown, 'has an install script that allowScripts omits'],
    [deprecated === undefined, `is deprecated: ${deprecated}`],
  ];
  return checks.flatMap(([isFine, fault]) => (isFine ? [] : [fault]));
}

/** Returns whether a licence expression is allowed: any part of an `OR`, all parts of an `AND`. */
function isAllowed(license = ''): boolean {
  const choices = license.replace(/[()]/g, '').split(' OR ');
  return choices.some((choice) => choice.split(' AND ').every((one) => LICENCES.has(one)));
}

/** Returns whether an optional package is not for Linux with glibc. */
function isOfOtherPlatform({ optional = false, os = [], cpu = [], libc = [] }: LockedPackage): boolean {
  const excludes = (values: string | readonly string[], ours: readonly string[]) =>
    values.length > 0 && ![values].flat().some((value) => /^(!|any$)/.test(value) || ours.includes(value));
  return optional && (excludes(os, ['linux']) || excludes(cpu, ['x64', 'arm64']) || excludes(libc, ['glibc']));
}

function nameOf(at: string): string {
  return at.slice(at.lastIndexOf('node_modules/') + 'node_modules/'.length);
}

if (import.meta.main) {
  const read = (name: string) => JSON.parse(readFileSync(path.join(import.meta.dirname, name), 'utf8'));
  const { packages } = read('../package-lock.json');
  const faults = auditLock(packages, read('../package.json').allowScripts);
  for (const fault of faults) console.error(fault);
  console.log(`audit: ${faults.length} faults in ${Object.keys(packages).length} packages`);
  if (faults.length > 0) process.exitCode = 1;
}
