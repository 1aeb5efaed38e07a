import { pipeline } from 'node:stream';
import { isNativeError } from 'node:util/types';
import { createGunzip } from 'node:zlib';
import { OverBound } from './reply-bounds.ts';

/** A body that is not gzip, or not one whole gzip stream. */
export class MalformedGzip extends Error {
  override readonly name = 'MalformedGzip';
}

/** The size of 64 MiB of random bytes as gzip. A stream can continue without any output. */
const LARGEST_GZIP_BYTES = 48 * 1024 * 1024;
const PIECE_BYTES = 64 * 1024;

/**
 * Decompresses a body while it arrives, in pieces of at most 64 KiB on demand, so that a bomb costs no more than the
 * reader accepts. Length and checksum must be right, and nothing may follow. Throws `MalformedGzip`, `OverBound`, and
 * what the body throws.
 */
export async function* gunzipped(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip({ chunkSize: PIECE_BYTES, rejectGarbageAfterEnd: true });
  // Failures of the pipeline end the iteration below.
  pipeline(bounded(body), gunzip, () => undefined);
  try {
    for await (const piece of gunzip) yield piece as Uint8Array;
  } catch (error) {
    if (!isNativeError(error) || !('code' in error) || !OF_ZLIB.test(String(error.code))) throw error;
    throw new MalformedGzip(`gzip with an error (${error.message})`, { cause: error });
  }
}

const OF_ZLIB = /^(Z_|ERR_TRAILING_JUNK_)/;

async function* bounded(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > LARGEST_GZIP_BYTES) throw new OverBound(`more than ${LARGEST_GZIP_BYTES / 1024 / 1024} MiB of gzip`);
    yield chunk;
  }
}
