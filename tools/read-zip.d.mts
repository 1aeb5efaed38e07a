export function readZip(zip: Buffer): Map<string, Buffer>;
