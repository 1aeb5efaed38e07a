import { InvalidArgumentError } from 'commander';

/** @throws InvalidArgumentError of commander, whose message is shown beside the option. */
export function parsePort(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new InvalidArgumentError('A port is a number from 0 to 65535; 0 takes a free one.');
}
