import { Agent, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { ACCOUNT, REGION } from '../support/emulator-aws.ts';
import { serve } from '../support/serve.ts';

/** A call of the AWS SDK in the terms of IAM. */
export interface AwsCall {
  /** The access key id of the signature. It is the name of the calling function. */
  readonly caller: string;
  /** The action, such as `dynamodb:GetItem`. */
  readonly action: string;
  /** The ARN of the resource, or `*` if the action has no resource. */
  readonly resource: string;
}

/** Defines whether the emulator answers a call. */
type Fate = 'answered' | 'unanswered';

/**
 * Starts a proxy between clients and the emulator, which records every call.
 * @param forced headers that replace those of the clients
 */
export async function startCallRecorder(emulator: string, forced: Readonly<Record<string, string>> = {}) {
  const { hostname, port } = new URL(emulator);
  const agent = new Agent({ keepAlive: true });
  const calls: AwsCall[] = [];
  let decide: (call: AwsCall) => Fate = () => 'answered';

  const forward = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await buffer(request);
    const call = callOf(request, body);
    calls.push(call);
    if (decide(call) === 'unanswered') return;
    const { method = 'GET', url = '/' } = request;
    const headers = { ...request.headers, ...forced };
    const onward = httpRequest({ agent, hostname, port, method, path: url, headers }, (reply) => {
      response.writeHead(reply.statusCode ?? 502, reply.headers);
      reply.pipe(response);
    });
    onward.on('error', (error) => response.destroy(error)).end(body);
  };

  const { url: endpoint, close } = await serve((request, response) => {
    forward(request, response).catch((error: unknown) => {
      // The function sees this error too, as a failed call.
      response.writeHead(500).end(String(error));
    });
  });
  return {
    endpoint,
    calls: calls as readonly AwsCall[],
    /** Sets the function that decides about each call from now on. By default every call is answered. */
    decide(fate: (call: AwsCall) => Fate) {
      decide = fate;
    },
    async close() {
      await close();
      agent.destroy();
    },
  };
}

function callOf({ headers, method = '', url = '' }: IncomingMessage, body: Buffer): AwsCall {
  const [, caller = '?', service = '?'] =
    /Credential=([^/]+)\/\d+\/[^/]+\/([^/]+)\/aws4_request/.exec(headers.authorization ?? '') ?? [];
  const target = String(headers['x-amz-target'] ?? '');
  if (service === 's3') return { caller, ...s3Call(method, new URL(url, 'http://s3')) };
  if (service === 'lambda') return { caller, ...lambdaCall(method, url) };
  if (service === 'apigateway') {
    return { caller, action: `apigateway:${method}`, resource: `arn:aws:apigateway:${REGION}::${url.split('?')[0]}` };
  }
  if (target === '') {
    const form = new URLSearchParams(body.toString());
    const stack = form.get('StackName');
    const resource = stack === null ? '*' : `arn:aws:${service}:${REGION}:${ACCOUNT}:stack/${stack}/id`;
    return { caller, action: `${service}:${form.get('Action') ?? '?'}`, resource };
  }
  // IAM has no permission for a batch operation of SQS, only for the operation on a single message.
  const operation = target.slice(target.lastIndexOf('.') + 1).replace(/^(SendMessage|DeleteMessage)Batch$/, '$1');
  const fields: Readonly<Record<string, unknown>> = JSON.parse(body.toString() || '{}');
  return { caller, action: `${service}:${operation}`, resource: resourceOf(service, fields) };
}

const S3_ACTIONS: Readonly<Record<string, string>> = {
  'GET bucket': 'ListBucket',
  'HEAD bucket': 'ListBucket',
  'GET bucket location': 'GetBucketLocation',
  'GET bucket versions': 'ListBucketVersions',
  'PUT bucket': 'CreateBucket',
  'POST bucket delete': 'DeleteObject',
  'GET object': 'GetObject',
  'HEAD object': 'GetObject',
  'PUT object': 'PutObject',
};

/** Returns the action of a REST request to `/<bucket>/<key>`. No policy grants an action that is not in the list. */
function s3Call(method: string, { pathname, searchParams }: URL): Omit<AwsCall, 'caller'> {
  const [, bucket = '', key = ''] = /^\/([^/]*)\/?(.*)$/.exec(pathname) ?? [];
  const sub = ['location', 'versions', 'delete', 'policy', 'tagging'].filter((name) => searchParams.has(name));
  const request = [method, key === '' ? 'bucket' : 'object', ...sub].join(' ');
  const objects = sub.includes('delete') ? '*' : key;
  const resource = `arn:aws:s3:::${bucket}${objects === '' ? '' : `/${objects}`}`;
  return { action: `s3:${S3_ACTIONS[request] ?? request}`, resource };
}

function lambdaCall(method: string, url: string): Omit<AwsCall, 'caller'> {
  const [, name = '?', sub = ''] = /\/functions\/([^/?]+)\/?([^?]*)/.exec(url) ?? [];
  const actions: Readonly<Record<string, string>> = { GET: 'GetFunction', 'POST invocations': 'InvokeFunction' };
  const operation = actions[`${method} ${sub}`.trim()];
  const resource = `arn:aws:lambda:${REGION}:${ACCOUNT}:function:${name}`;
  return { action: `lambda:${operation ?? `${method} ${url}`}`, resource };
}

function resourceOf(service: string, fields: Readonly<Record<string, unknown>>): string {
  const arn = (type: string, name: unknown) =>
    String(name).startsWith('arn:') ? String(name) : `arn:aws:${service}:${REGION}:${ACCOUNT}:${type}${String(name)}`;
  switch (service) {
    case 'dynamodb': {
      // A batch names its table as a key.
      const { TableName: table = Object.keys(fields['RequestItems'] ?? {})[0] } = fields;
      return table === undefined ? '*' : arn('table/', table);
    }
    case 'sqs': {
      const { QueueUrl: url } = fields;
      return url === undefined ? arn('', fields['QueueName'] ?? '*') : arn('', String(url).split('/').at(-1));
    }
    case 'events':
      return arn('event-bus/', 'default');
    case 'secretsmanager':
      return fields['SecretId'] === undefined ? '*' : arn('secret:', fields['SecretId']);
    case 'ssm':
      return fields['Name'] === undefined ? '*' : arn('parameter/', String(fields['Name']).replace(/^\//, ''));
    default:
      return '*';
  }
}
