import { boundedText } from '../cluster/bounded-text.ts';
import type { ApiReply } from './transport.ts';

/** One after the other from the start, so that none is searched for twice. */
const WARNING = /[,\s]*(\d{3}) \S+ "((?:[^"\\]|\\.)*)"(?: "[^"]*")?/gy;
const LONGEST_HEADER = 2_000;
const MOST_WARNINGS = 10;
/** Endpoints are written on purpose: the original writes them, too. */
const EXPECTED = 'v1 Endpoints is deprecated';

/** What the API server warns of in this reply, a deprecated API for example. */
export function warningsOf(reply: ApiReply): string[] {
  const header = (reply.headers['warning'] ?? '').slice(0, LONGEST_HEADER);
  return [...header.matchAll(WARNING)]
    .filter(([, code]) => code === '299')
    .map(([, , text = '']) => boundedText(text.replace(/\\(.)/g, '$1')))
    .filter((text) => !text.startsWith(EXPECTED));
}

/** Logs each text once, however often it comes, and ten texts at most. Made once per cluster for the life of a process. */
export function tellOnce(tell: (text: string) => void): (text: string) => void {
  const told = new Set<string>();
  return (text) => {
    if (told.size < MOST_WARNINGS && !told.has(text)) {
      told.add(text);
      tell(text);
    }
  };
}
