// Reads the files of a zip and their modes. Supports only the archives that the packager writes.
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { inflateRawSync } from 'node:zlib';

const END_OF_DIRECTORY = 0x06054b50;
const STORED = 0;
const END_LENGTH = 22;
const ENTRY_LENGTH = 46;
const LOCAL_LENGTH = 30;
const MADE_BY_UNIX = 3;
/** The modes with which Lambda's user can read the entries. The packager keeps the modes of this machine. */
const FILE = 0o100_644;
const FOLDER = 0o040_755;

/** Returns the files by name. */
export function readZip(zip: Buffer): ReadonlyMap<string, Buffer> {
  const files = new Map<string, Buffer>();
  for (const { at, name } of entriesOf(zip)) {
    const local = zip.readUInt32LE(at + 42);
    const start = local + LOCAL_LENGTH + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
    const content = zip.subarray(start, start + zip.readUInt32LE(at + 20));
    files.set(name, zip.readUInt16LE(at + 10) === STORED ? content : inflateRawSync(content));
  }
  return files;
}

/** Writes the files of the zip into a folder. */
export function unzip(zip: Buffer, folder: string): void {
  for (const [name, content] of readZip(zip)) {
    const file = join(folder, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
}

/** Returns the names of entries that Lambda could not read. */
export function unreadableIn(zip: Buffer): readonly string[] {
  const modeAt = (at: number) => (zip.readUInt8(at + 5) === MADE_BY_UNIX ? zip.readUInt16LE(at + 40) : 0);
  const unreadable = entriesOf(zip).filter(({ at, name }) => modeAt(at) !== (name.endsWith('/') ? FOLDER : FILE));
  return unreadable.map(({ name }) => name);
}

function entriesOf(zip: Buffer) {
  const end = zip.lastIndexOf(Buffer.from('PK\x05\x06'));
  if (end < 0 || zip.length - end < END_LENGTH || zip.readUInt32LE(end) !== END_OF_DIRECTORY) {
    throw new Error('not a zip');
  }
  let at = zip.readUInt32LE(end + 16);
  return Array.from({ length: zip.readUInt16LE(end + 10) }, () => {
    const lengthAt = (offset: number) => zip.readUInt16LE(at + offset);
    const entry = { at, name: zip.toString('utf8', at + ENTRY_LENGTH, at + ENTRY_LENGTH + lengthAt(28)) };
    at += ENTRY_LENGTH + lengthAt(28) + lengthAt(30) + lengthAt(32);
    return entry;
  });
}
