// What serverless.yml takes from TypeScript: osls reads only CommonJS here, and Node.js erases the types.
require('../tools/check-node.mjs');
const { alarms } = require('./alarms.ts');
const { DASHBOARD } = require('./dashboard.ts');
const { extensions, invocations } = require('./functions.ts');
const { parametersInForce, stackTags, templateParameters } = require('./parameters.ts');
const { roles } = require('./roles.ts');

/** @param variables of osls: its options, and functions that resolve what the configuration holds */
async function inForce({ options, resolveConfigurationProperty, resolveVariable }) {
  const blocks = (await resolveConfigurationProperty(['params'])) ?? {};
  return parametersInForce(blocks, await resolveVariable('sls:stage'), options.param).values;
}

module.exports = {
  parameters: async (variables) => ({ Parameters: templateParameters(await inForce(variables)) }),
  // Not ${param:...}, which refuses "--param table=".
  deploymentBucket: async (variables) => (await inForce(variables)).deploymentBucket || null,
  deploymentRole: async (variables) => (await inForce(variables)).deploymentRoleArn || null,
  stackTags: async (variables) => stackTags(await inForce(variables)),
  functions: () => ({ Resources: invocations(), extensions: extensions() }),
  roles: async ({ resolveVariable }) => {
    const [stage, region] = [await resolveVariable('sls:stage'), await resolveVariable('self:provider.region')];
    return { Resources: roles(`kbc-${stage}-${region}`) };
  },
  alarms: () => ({ Resources: alarms() }),
  dashboard: () => ({ Resources: DASHBOARD }),
};
