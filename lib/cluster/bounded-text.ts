const LONGEST_TEXT = 300;

/**
 * Returns one line of at most `longest` characters and an ellipsis. Every text that an API server, a name server or a
 * certificate chose goes through here before it becomes part of a message. It is cut first: what follows costs the same
 * however long the text was.
 */
export function boundedText(value: unknown, longest = LONGEST_TEXT): string {
  const text = typeof value === 'object' && value !== null ? 'an object' : String(value);
  const line = text.slice(0, longest).toWellFormed().replace(/\s+/g, ' ').trim();
  return text.length > longest ? `${line}…` : line;
}
