import { createServer, type IncomingMessage } from 'node:http';
import { answering, type LocalReply } from '../../local/loopback-server.ts';
import { type ListenAddress, listening } from '../listen.ts';
import { sharedRead } from '../page/serve-page.ts';
import type { RunMonitor } from './run-monitor.ts';

type Monitored = Pick<RunMonitor, 'stuckLoops' | 'isReady' | 'metrics'>;

/** Answers scrapes and probes. The answers have no secrets, so requests need no key. */
export async function answerMonitorRequest(
  { method, url }: Pick<IncomingMessage, 'method' | 'url'>,
  { stuckLoops, isReady, metrics }: Monitored,
): Promise<LocalReply> {
  if (method !== 'GET' && method !== 'HEAD') return plain(405, 'Use GET.');
  switch (url?.split('?', 1)[0] ?? '') {
    case '/metrics': {
      const { contentType, text } = await metrics();
      return { status: 200, headers: { 'content-type': contentType }, body: text };
    }
    case '/healthz': {
      const stuck = stuckLoops();
      if (stuck.length === 0) return plain(200, 'ok');
      return plain(503, `No claim of a tick was tried for two intervals: ${stuck.join(', ')}.`);
    }
    case '/readyz':
      if (isReady()) return plain(200, 'ok');
      return plain(503, 'The table does not answer: see the log.');
    default:
      return plain(404, 'Not found: use /metrics, /healthz or /readyz.');
  }
}

function plain(status: number, text: string): LocalReply {
  return { status, headers: { 'content-type': 'text/plain; charset=utf-8' }, body: `${text}\n` };
}

/** The time for which scrapes share one result. */
const FRESH_MS = 1_000;
const MOST_CONNECTIONS = 64;

/** @throws CliError if it cannot listen at the address */
export async function serveMonitor(monitor: RunMonitor, address: ListenAddress, nowMs: () => number) {
  const ended = new AbortController();
  const metrics = sharedRead(() => monitor.metrics(), { freshMs: FRESH_MS, nowMs, ended: ended.signal });
  const server = createServer(
    { requestTimeout: 10_000, headersTimeout: 5_000 },
    answering((request) => answerMonitorRequest(request, { ...monitor, metrics })),
  );
  server.maxConnections = MOST_CONNECTIONS;
  return { close: await listening(server, address, 'Metrics', ended) };
}
