/** The package has no types of its own. */
declare module 'dynalite' {
  import type { Server } from 'node:http';

  interface DynaliteOptions {
    /** The folder of the tables. Without a folder, the tables are in memory. */
    readonly path?: string;
    readonly createTableMs?: number;
    readonly deleteTableMs?: number;
  }

  export default function dynalite(options?: DynaliteOptions): Server;
}
