import type { ClusterStatus } from '../../lib/status/cluster-status.ts';
import { clusterDetails, figuresOf } from './cluster-details.ts';
import { badge, HEALTH_WORDS } from './health.ts';
import { html, name } from './html.ts';
import { type PageOptions, page } from './page-frame.ts';

const DETAILS_BYTES = 120_000;

export interface ClusterPageOptions extends PageOptions {
  /** When the table was read. */
  readonly atMs: number;
}

/** The page of one cluster, with all its maps. */
export function renderClusterPage(cluster: ClusterStatus, options: ClusterPageOptions): string {
  const { atMs, live } = options;
  const { health } = cluster;
  return page({
    ...options,
    title: `${cluster.name}: ${HEALTH_WORDS[health]}`,
    health,
    heading: name(cluster.name),
    about: badge(health),
    summary: `${figuresOf(cluster)}.`,
    ...(live && { nav: html`<nav aria-label="Up"><a href="/">All clusters</a></nav>` }),
    main: html`<section aria-label="Details"><h2 class="sr">Details</h2><h3 class="sr">${cluster.name}</h3>${clusterDetails(cluster, atMs, DETAILS_BYTES)}</section>`,
  });
}

/** What is said instead of a cluster, or of all, when there is nothing to show. */
export function renderMessagePage(title: string, message: string, options: PageOptions = {}): string {
  return page({
    ...options,
    title,
    health: 'unknown',
    heading: title,
    about: message,
    summary: '',
    nav: options.live && html`<nav aria-label="Up"><a href="/">All clusters</a></nav>`,
    main: '',
  });
}
