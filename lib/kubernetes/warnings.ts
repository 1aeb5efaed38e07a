import { boundedText } from '../cluster/bounded-text.ts';
import type { ApiReply } from './transport.ts';

const WARNING = /299 \S+ "((?:[^"\\]|\\.)*)"/g;

/** What the API server warns of in this reply, a deprecated API for example. */
export function warningsOf(reply: ApiReply): string[] {
  return [...(reply.headers['warning'] ?? '').matchAll(WARNING)].map(([, text = '']) =>
    boundedText(text.replace(/\\(.)/g, '$1')),
  );
}

/** Tells each text once, however often it comes. Made once for a process; forgets nothing, so it takes a hundred texts. */
export function tellOnce(tell: (text: string) => void): (text: string) => void {
  const told = new Set<string>();
  return (text) => {
    if (told.size < 100 && !told.has(text)) {
      told.add(text);
      tell(text);
    }
  };
}
