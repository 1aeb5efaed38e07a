import { deregisterAddress } from '../../lib/dispatch/deregister-address.ts';
import type { Environment } from '../../lib/dispatch/environment.ts';
import { describeError } from '../../lib/telemetry/describe-error.ts';
import { exitCodeOf } from '../errors.ts';
import { EXIT, type ExitCode } from '../exit-codes.ts';

export interface OwnEnd {
  readonly environment: Environment;
  readonly cluster: string;
  readonly address: string;
  readonly say: (line: string) => void;
}

/** Twice the interval of the endpoints loop, as the original waits at its end. */
const LONGEST_MS = 20_000;

/** What an API server does at its end: its lease goes, and with it its endpoints. The next start brings it back at once. */
export async function deregisterSelf({ environment, cluster, address, say }: OwnEnd): Promise<ExitCode> {
  say(`Ending: ${address} is taken out of the endpoints. Ctrl-C once more ends at once.`);
  const { signal, cancel } = environment.startDeadline(LONGEST_MS);
  const invocation = {
    environment,
    telemetry: environment.telemetry({ loop: 'deregister' }),
    remainingMs: () => LONGEST_MS,
  };
  const asked = { cluster, address, goingDown: true };
  try {
    const result = await deregisterAddress(asked, invocation, { signal, wouldWrite: () => {} });
    if (result.outcome !== 'deregistered') {
      const stays = 'its lease runs out, and the endpoints stay as they are while nobody else is live';
      say(
        result.outcome === 'refused' && result.reason === 'lastLiveAddress'
          ? `${address} is the last live address: ${stays}.`
          : result.message,
      );
      return EXIT.fine;
    }
    say(result.stillPublished ? leftToLoop(address, result.error) : `${address} is out of the endpoints.`);
    return EXIT.fine;
  } catch (error) {
    say(`${address} could not be taken out, and its lease runs out: ${describeError(error).message}`);
    return exitCodeOf(error) ?? EXIT.findings;
  } finally {
    cancel();
  }
}

function leftToLoop(address: string, error: unknown): string {
  const why = error === undefined ? '' : ` (${describeError(error).message})`;
  return `${address} is withdrawn, and still in the endpoints${why}: the kubernetes-service loop takes it out at its next tick.`;
}
