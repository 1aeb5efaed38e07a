// Runs a handler as Lambda's runtime does. Reads one invocation from each line of standard input, and reports its end with a line
// on standard output that begins with the first argument. All other lines are logs of the handler. The third argument is the
// folder of the layers.
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

interface Request {
  readonly requestId: string;
  readonly event: unknown;
  readonly limitMs: number;
}

type Handler = (event: unknown, context: object) => Promise<unknown>;

const [, , mark = '', entry = '', opt = '/opt'] = process.argv;
const [file = '', name = ''] = entry.split(/\.(?=[^./]+$)/);
const root = process.env['LAMBDA_TASK_ROOT'] ?? '.';

registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier.startsWith('/opt/') ? pathToFileURL(join(opt, specifier.slice(5))).href : specifier, context),
});

function tell(end: object): void {
  process.stdout.write(`${mark}${JSON.stringify(end)}\n`);
}

function errorOf(error: unknown): object {
  return error instanceof Error
    ? { errorType: error.name, errorMessage: error.message }
    : { errorType: typeof error, errorMessage: String(error) };
}

let handler: Handler | undefined;
for await (const line of createInterface({ input: process.stdin })) {
  const { requestId, event, limitMs }: Request = JSON.parse(line);
  const endsAtMs = Date.now() + limitMs;
  const context = {
    awsRequestId: requestId,
    functionName: process.env['AWS_LAMBDA_FUNCTION_NAME'],
    getRemainingTimeInMillis: () => Math.max(0, endsAtMs - Date.now()),
  };
  try {
    handler ??= (await import(pathToFileURL(join(root, `${file}.mjs`)).href))[name] as Handler;
    if (handler.length > 2) throw new Error('Lambda would pass a callback to the handler');
    const answer = (await handler(event, context)) ?? null;
    tell({ answer, peakMemoryMb: process.resourceUsage().maxRSS / 1024 });
  } catch (error) {
    tell({ error: errorOf(error) });
  }
}
process.exit();
