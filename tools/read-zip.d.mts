export function readZip(zip: Buffer): Map<string, Buffer>;
export function unreadableIn(zip: Buffer): readonly string[];
