import { crc32, deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const MOST_COLOURS = 256;

interface Picture {
  readonly width: number;
  readonly height: number;
  /** Colours as 0xrrggbb, row by row. */
  readonly pixels: Uint32Array;
}

/**
 * The same picture with its 256 most frequent colours: a third of the bytes, where a screen has few colours anyway.
 * Takes what browsers write: 8 bits, RGB or opaque RGBA, not interlaced.
 */
export function withPalette(png: Buffer): Buffer {
  const picture = decoded(png);
  const palette = mostFrequent(picture.pixels);
  const numbers = new Map<number, number>(palette.map((colour, index) => [colour, index]));
  const { width, height, pixels } = picture;
  const rows = Buffer.alloc((width + 1) * height);
  for (const [at, colour] of pixels.entries()) {
    const number = numbers.get(colour) ?? nearest(palette, colour);
    numbers.set(colour, number);
    rows[at + Math.floor(at / width) + 1] = number;
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const colours = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  const data = deflateSync(rows, { level: 9 });
  return Buffer.concat([SIGNATURE, chunk('IHDR', header), chunk('PLTE', colours), chunk('IDAT', data), chunk('IEND')]);
}

function decoded(png: Buffer): Picture {
  const data: Buffer[] = [];
  for (let at = SIGNATURE.length; at < png.length; at += png.readUInt32BE(at) + 12) {
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT')
      data.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
  }
  const [width, height, size] = [png.readUInt32BE(16), png.readUInt32BE(20), png[25] === 6 ? 4 : 3];
  const bytes = unfiltered(inflateSync(Buffer.concat(data)), width * size, size);
  const pixels = Uint32Array.from({ length: width * height }, (_, at) => bytes.readUIntBE(at * size, 3));
  return { width, height, pixels };
}

/** Rows without the byte that names their filter, and without the filter. */
function unfiltered(filtered: Buffer, rowBytes: number, size: number): Buffer {
  const rows = filtered.length / (rowBytes + 1);
  const bytes = Buffer.alloc(rows * rowBytes);
  for (let row = 0; row < rows; row++) {
    const filter = filtered[row * (rowBytes + 1)];
    for (let column = 0; column < rowBytes; column++) {
      const at = row * rowBytes + column;
      const left = column < size ? 0 : (bytes[at - size] ?? 0);
      const up = bytes[at - rowBytes] ?? 0;
      const corner = column < size ? 0 : (bytes[at - rowBytes - size] ?? 0);
      const told = filtered[row * (rowBytes + 1) + 1 + column] ?? 0;
      bytes[at] = told + ([0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter ?? 0] ?? 0);
    }
  }
  return bytes;
}

function paeth(left: number, up: number, corner: number): number {
  const guess = left + up - corner;
  const [toLeft, toUp, toCorner] = [left, up, corner].map((value) => Math.abs(guess - value)) as [
    number,
    number,
    number,
  ];
  if (toLeft <= toUp && toLeft <= toCorner) return left;
  return toUp <= toCorner ? up : corner;
}

function mostFrequent(pixels: Uint32Array): number[] {
  const counts = new Map<number, number>();
  for (const colour of pixels) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  return [...counts]
    .sort(([, one], [, other]) => other - one)
    .slice(0, MOST_COLOURS)
    .map(([colour]) => colour);
}

function nearest(palette: readonly number[], colour: number): number {
  const far = (other: number) =>
    [16, 8, 0].reduce((sum, bits) => sum + (((colour >> bits) & 255) - ((other >> bits) & 255)) ** 2, 0);
  return palette.reduce((best, other, index) => (far(other) < far(palette[best] ?? 0) ? index : best), 0);
}

function chunk(type: string, data: Buffer = Buffer.alloc(0)): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, check]);
}
