import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { RequestOptions } from 'node:https';
import { basename, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { isNativeError } from 'node:util/types';
import * as z from 'zod/mini';
import type { PluginCall, PluginCredential, RunPlugin } from '../lib/kubernetes/kubeconfig.ts';
import { codeOf, isRecord, jsonIn } from '../lib/util/values.ts';

export interface PluginTerminal {
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
}

/**
 * Runs credential plugins: exec plugins as `k8s.io/client-go/plugin/pkg/client/auth/exec` does, and the older auth providers with
 * `@kubernetes/client-node`. The Lambda functions do not load this code.
 */
export function pluginRunner(terminal: PluginTerminal): RunPlugin {
  return (call) => (call.user.exec === undefined ? authProvider(call) : execPlugin(call, terminal));
}

const GROUP = 'client.authentication.k8s.io';
/** The name of the extension that plugins receive from the cluster's entry in the kubeconfig. */
const EXTENSION = `${GROUP}/exec`;
/** The time limit of a plugin, which may wait for a login in a browser. */
const LONGEST_MS = 10 * 60_000;
const SAY_AFTER_MS = 3_000;

const execShape = z.object({
  apiVersion: z.enum([`${GROUP}/v1`, `${GROUP}/v1beta1`]),
  command: z.string().check(z.minLength(1)),
  args: z.nullish(z.array(z.string())),
  env: z.nullish(z.array(z.object({ name: z.string().check(z.minLength(1)), value: z.nullish(z.string()) }))),
  installHint: z.nullish(z.string()),
  provideClusterInfo: z.nullish(z.boolean()),
  interactiveMode: z.nullish(z.enum(['Never', 'IfAvailable', 'Always'])),
});
type Exec = z.infer<typeof execShape>;

const replyShape = z.object({
  kind: z.literal('ExecCredential'),
  apiVersion: z.string(),
  status: z.nullish(
    z.object({
      expirationTimestamp: z.nullish(z.string()),
      token: z.nullish(z.string()),
      clientCertificateData: z.nullish(z.string()),
      clientKeyData: z.nullish(z.string()),
    }),
  ),
});

/** Keeps the credential until it expires, as client-go does. Requests at the same time share one run of the plugin. */
function execPlugin(call: PluginCall, terminal: PluginTerminal): () => Promise<PluginCredential> {
  let kept: ReturnType<typeof runExec> | undefined;
  return async () => {
    const current = kept;
    const last = await current?.catch(() => undefined);
    const isValid = last !== undefined && last.endsMs > Date.now();
    if (!isValid && kept === current) kept = runExec(call, terminal);
    const { credential } = await (kept ?? runExec(call, terminal));
    return credential;
  };
}

async function runExec(call: PluginCall, terminal: PluginTerminal) {
  if (call.user['auth-provider'] !== undefined) throw new Error('it has both exec and auth-provider');
  const parsed = execShape.safeParse(call.user.exec);
  if (!parsed.success) {
    const field = parsed.error.issues[0]?.path.join('.') ?? 'exec';
    throw new Error(`its exec.${field} is missing or is not supported`);
  }
  const exec = parsed.data;
  // Only version v1beta1 has a default for `interactiveMode`.
  if (exec.apiVersion === `${GROUP}/v1` && !exec.interactiveMode)
    throw new Error('its exec.interactiveMode is missing');
  const output = await outputOf(exec, call, terminal);
  const reply = replyShape.safeParse(jsonIn(output));
  if (!reply.success || reply.data.apiVersion !== exec.apiVersion) {
    throw new Error(`it did not print an ExecCredential of ${exec.apiVersion}`);
  }
  const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp } = reply.data.status ?? {};
  if (!token && !cert && !key) throw new Error('its ExecCredential has no status with a token or a certificate');
  if (!cert !== !key) throw new Error('its ExecCredential has only one of clientCertificateData and clientKeyData');
  const endsMs = expirationTimestamp ? Date.parse(expirationTimestamp) : Number.POSITIVE_INFINITY;
  return { credential: { ...(token && { token }), ...(cert && { cert }), ...(key && { key }) }, endsMs };
}

async function outputOf(exec: Exec, call: PluginCall, { signal, say }: PluginTerminal): Promise<string> {
  const { args, env, command } = exec;
  const interactive = hasTerminal(exec);
  // A path is relative to the kubeconfig. A bare name is looked up in the PATH.
  const program = basename(command) === command ? command : resolve(call.folder, command);
  const given = Object.fromEntries((env ?? []).map(({ name, value }) => [name, value ?? '']));
  const limit = AbortSignal.timeout(LONGEST_MS);
  const child = spawn(program, args ?? [], {
    env: { ...process.env, ...given, KUBERNETES_EXEC_INFO: JSON.stringify(infoFor(exec, call, interactive)) },
    stdio: [interactive ? 'inherit' : 'ignore', 'pipe', 'inherit'],
    signal: AbortSignal.any([signal, limit]),
  });
  const stop = () => child.kill();
  process.once('exit', stop);
  const waiting = setTimeout(() => say(`waiting for the credential plugin ${program}; Ctrl-C ends it`), SAY_AFTER_MS);
  try {
    const [output, [code, by]] = await Promise.all([text(child.stdout), once(child, 'close')]);
    if (code === 0) return output;
    throw new Error(`ended with ${code === null ? `signal ${by}` : `exit code ${code}`}`);
  } catch (error) {
    const ended = limit.aborted ? 'did not end within ten minutes' : signal.aborted && 'was ended by Ctrl-C';
    throw new Error(`${program} ${ended || failureOf(error, exec)}`, { cause: error });
  } finally {
    clearTimeout(waiting);
    process.off('exit', stop);
  }
}

function hasTerminal({ interactiveMode }: Exec): boolean {
  const isTerminal = process.stdin.isTTY === true;
  if (interactiveMode === 'Always' && !isTerminal) throw new Error('it needs a terminal for its standard input');
  return isTerminal && interactiveMode !== 'Never';
}

function failureOf(error: unknown, { installHint }: Exec): string {
  if (codeOf(error) === 'ENOENT') return `does not exist${installHint ? `. ${installHint}` : ''}`;
  return isNativeError(error) ? error.message : String(error);
}

/** Returns the ExecCredential that the plugin reads from its environment. */
function infoFor({ apiVersion, provideClusterInfo }: Exec, { cluster, ca }: PluginCall, interactive: boolean): object {
  const { server, 'tls-server-name': name, 'insecure-skip-tls-verify': insecure, extensions = [] } = cluster;
  const info = {
    server,
    'tls-server-name': name,
    'insecure-skip-tls-verify': insecure,
    'certificate-authority-data': ca && Buffer.from(ca).toString('base64'),
    'disable-compression': cluster['disable-compression'],
    config: extensions.filter(isRecord).find((extension) => extension['name'] === EXTENSION)?.['extension'] ?? null,
  };
  return { kind: 'ExecCredential', apiVersion, spec: { ...(provideClusterInfo && { cluster: info }), interactive } };
}

function authProvider({ cluster, user }: PluginCall): () => Promise<PluginCredential> {
  const named = import('@kubernetes/client-node').then(({ KubeConfig }) => {
    const config = new KubeConfig();
    config.loadFromOptions({
      clusters: [{ name: 'cluster', server: cluster.server }],
      users: [{ name: 'user', authProvider: user['auth-provider'] }],
      contexts: [{ name: 'context', cluster: 'cluster', user: 'user' }],
      currentContext: 'context',
    });
    return config;
  });
  return async () => {
    const options: RequestOptions = {};
    await (await named).applyToHTTPSOptions(options);
    const [, token] = String(Object(options.headers)['Authorization'] ?? '').split('Bearer ');
    if (token === undefined) throw new Error('it gave no token');
    return { token };
  };
}
