// Reads the files of a zip: name → bytes. Enough for the archives that the packager writes, no more.
import { inflateRawSync } from 'node:zlib';

const END_OF_DIRECTORY = 0x06054b50;
const STORED = 0;
const END_LENGTH = 22;
const ENTRY_LENGTH = 46;
const LOCAL_LENGTH = 30;

/** @param {Buffer} zip */
export function readZip(zip) {
  const end = zip.lastIndexOf(Buffer.from('PK\x05\x06'));
  if (end < 0 || zip.length - end < END_LENGTH || zip.readUInt32LE(end) !== END_OF_DIRECTORY)
    throw new Error('not a zip');
  /** @type {Map<string, Buffer>} */
  const files = new Map();
  let at = zip.readUInt32LE(end + 16);
  for (let left = zip.readUInt16LE(end + 10); left > 0; left -= 1) {
    const method = zip.readUInt16LE(at + 10);
    const length = zip.readUInt32LE(at + 20);
    const [nameLength, extraLength, commentLength] = [28, 30, 32].map((offset) => zip.readUInt16LE(at + offset));
    const local = zip.readUInt32LE(at + 42);
    const name = zip.toString('utf8', at + ENTRY_LENGTH, at + ENTRY_LENGTH + nameLength);
    const start = local + LOCAL_LENGTH + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
    const content = zip.subarray(start, start + length);
    files.set(name, method === STORED ? content : inflateRawSync(content));
    at += ENTRY_LENGTH + nameLength + extraLength + commentLength;
  }
  return files;
}
