import { expect, test } from '@jest/globals';
import { openTable } from '../../cli/open-table.ts';
import { afterThisTest } from '../support/after-this-test.ts';
import { serve } from '../support/serve.ts';

Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'none', AWS_SECRET_ACCESS_KEY: 'none' });

const on = (AttributeName: string) => ({ TimeToLiveDescription: { TimeToLiveStatus: 'ENABLED', AttributeName } });
const refused = (code: string) => ({ __type: `com.amazon.coral.service#${code}`, message: 'refused' });

test.each([
  { reply: on('ttl'), advice: undefined },
  { reply: on('expires'), advice: /TTL on its attribute "ttl" is off/ },
  { reply: { TimeToLiveDescription: { TimeToLiveStatus: 'DISABLED' } }, advice: /is off: turn it on/ },
  { reply: refused('UnknownOperationException'), advice: /has no TTL: expired items stay/ },
  { reply: refused('AccessDeniedException'), advice: undefined },
])(
  'if the database answers $reply to the request for its TTL setting, the advice about the table is $advice',
  async ({ reply, advice }) => {
    const database = await serve((_, response) => {
      response.writeHead('__type' in reply ? 400 : 200, { 'content-type': 'application/x-amz-json-1.0' });
      response.end(JSON.stringify(reply));
    });
    afterThisTest(database.close);
    const options = { table: 'clusters', region: 'eu-test-1', endpointUrl: database.url };
    const opened = await openTable(options, [], new AbortController().signal, () => 0);
    afterThisTest(opened.close);
    const found = await opened.adviceOnTtl();
    if (advice === undefined) expect(found).toBeUndefined();
    else expect(found).toMatch(advice);
  },
);
