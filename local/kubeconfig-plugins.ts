import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { RequestOptions } from 'node:https';
import { basename, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import * as z from 'zod/mini';
import type { PluginCall, PluginCredential, RunPlugin } from '../lib/kubernetes/kubeconfig.ts';
import { jsonIn } from '../lib/util/values.ts';
import { codeOf } from './start-options.ts';

/**
 * Runs credential plugins: exec plugins as `k8s.io/client-go/plugin/pkg/client/auth/exec` does, the older auth providers with
 * `@kubernetes/client-node`. The Lambda functions load neither.
 */
export const runPlugin: RunPlugin = (call) => (call.user.exec === undefined ? authProvider(call) : execPlugin(call));

const GROUP = 'client.authentication.k8s.io';
/** The key of the extension of a cluster that its plugins get. */
const EXTENSION = `${GROUP}/exec`;
const LONGEST_MS = 10 * 60_000;

const execShape = z.object({
  apiVersion: z.enum([`${GROUP}/v1`, `${GROUP}/v1beta1`]),
  command: z.string().check(z.minLength(1)),
  args: z.nullish(z.array(z.string())),
  env: z.nullish(z.array(z.object({ name: z.string(), value: z.string() }))),
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

/** Keeps the credential until it expires, as client-go does. */
function execPlugin(call: PluginCall): () => Promise<PluginCredential> {
  let kept: Promise<{ readonly credential: PluginCredential; readonly endsMs: number }> | undefined;
  return async () => {
    const last = await kept?.catch(() => undefined);
    if (last === undefined || last.endsMs <= Date.now()) kept = runExec(call);
    const { credential } = await (kept ?? runExec(call));
    return credential;
  };
}

async function runExec(call: PluginCall) {
  const parsed = execShape.safeParse(call.user.exec);
  if (!parsed.success) {
    const field = parsed.error.issues[0]?.path.join('.') ?? 'exec';
    throw new Error(`its exec.${field} is missing or is not supported`);
  }
  const exec = parsed.data;
  const output = await outputOf(exec, call);
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

async function outputOf(exec: Exec, call: PluginCall): Promise<string> {
  const { args, env, command, installHint } = exec;
  const isTerminal = process.stdin.isTTY === true;
  if (exec.interactiveMode === 'Always' && !isTerminal) throw new Error('it needs a terminal for its standard input');
  const interactive = isTerminal && exec.interactiveMode !== 'Never';
  // A path is relative to the kubeconfig. A bare name is looked up in the PATH.
  const program = basename(command) === command ? command : resolve(call.folder, command);
  const given = Object.fromEntries((env ?? []).map(({ name, value }) => [name, value]));
  const child = spawn(program, args ?? [], {
    env: { ...process.env, ...given, KUBERNETES_EXEC_INFO: JSON.stringify(infoFor(exec, call, interactive)) },
    stdio: [interactive ? 'inherit' : 'ignore', 'pipe', 'inherit'],
  });
  const stop = () => child.kill();
  process.once('exit', stop);
  // The option `timeout` of spawn keeps its timer if the command does not exist, and the process would wait ten minutes to end.
  const limit = setTimeout(stop, LONGEST_MS);
  try {
    const [output, [code, signal]] = await Promise.all([text(child.stdout), once(child, 'close')]);
    if (code === 0) return output;
    throw new Error(`${program} ended with ${code === null ? `signal ${signal}` : `exit code ${code}`}`);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    throw new Error(`${program} does not exist${installHint ? `. ${installHint}` : ''}`, { cause: error });
  } finally {
    clearTimeout(limit);
    process.off('exit', stop);
  }
}

/** Returns the ExecCredential that the plugin reads from its environment. */
function infoFor({ apiVersion, provideClusterInfo }: Exec, { cluster }: PluginCall, interactive: boolean): object {
  const { extensions = [], 'disable-compression': _, ...fields } = cluster;
  const config = extensions.find(({ name }) => name === EXTENSION)?.extension;
  const info = provideClusterInfo && { cluster: { ...fields, ...(config !== undefined && { config }) } };
  return { kind: 'ExecCredential', apiVersion, spec: { ...info, interactive } };
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
    return token === undefined ? {} : { token };
  };
}
