const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The text; undefined for what is no UTF-8. */
export function utf8Text(bytes: Uint8Array): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}
