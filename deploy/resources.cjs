// The parts of serverless.yml that are written in TypeScript. osls reads only CommonJS here, and Node.js erases the
// types.

async function sources() {
  // This import must be first, because an older Node.js cannot read TypeScript.
  await import('../tools/check-node.mjs');
  return {
    ...(await import('./alarms.ts')),
    ...(await import('./dashboard.ts')),
    ...(await import('./functions.ts')),
    ...(await import('./parameters.ts')),
    ...(await import('./roles.ts')),
  };
}

/** @param variables the variables of osls: its options, and functions that resolve values of the configuration */
async function inForce({ options, resolveConfigurationProperty, resolveVariable }) {
  const { parametersInForce } = await sources();
  const blocks = (await resolveConfigurationProperty(['params'])) ?? {};
  return parametersInForce(blocks, await resolveVariable('sls:stage'), options.param).values;
}

module.exports = {
  parameters: async (variables) => {
    const { templateParameters } = await sources();
    return { Parameters: templateParameters(await inForce(variables)) };
  },
  // These values are resolved here and not with ${param:...} in serverless.yml, because osls would then refuse an empty value
  // such as "--param table=".
  deploymentBucket: async (variables) => (await inForce(variables)).deploymentBucket || null,
  deploymentRole: async (variables) => (await inForce(variables)).deploymentRoleArn || null,
  stackTags: async (variables) => (await sources()).stackTags(await inForce(variables)),
  functions: async () => {
    const { extensions, invocations, versions } = await sources();
    return { Resources: { ...versions(), ...invocations() }, extensions: extensions() };
  },
  roles: async ({ resolveVariable }) => {
    const { roles } = await sources();
    const [stage, region] = [await resolveVariable('sls:stage'), await resolveVariable('self:provider.region')];
    return { Resources: roles(`kbc-${stage}-${region}`) };
  },
  alarms: async () => ({ Resources: (await sources()).alarms() }),
  dashboard: async () => ({ Resources: (await sources()).DASHBOARD }),
};
