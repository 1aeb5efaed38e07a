// Steps of packaging and deploying for which osls has no other extension point than hooks.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { buildAllocatorLayer } from './allocator-layer.mjs';
import { describeStack, isLeftBehind, nextSteps, rollbackConfiguration } from './deployed-stack.ts';
import { keptParameters, parameterFaults, parametersInForce } from './parameters.ts';
import { nameReplacedResources } from './replaced-resources.ts';

export default class DeploymentPlugin {
  constructor(serverless, options, { log }) {
    const { service } = serverless;
    const aws = () => serverless.getProvider('aws');
    const deployment = () =>
      parametersInForce(serverless.configurationInput.params ?? {}, service.provider.stage, options.param);
    const fail = (text) => {
      throw new serverless.classes.Error(text, 'BAD_INPUT');
    };
    // The schema of osls lacks this section of a template.
    serverless.configSchemaHandler.schema.properties.resources.properties.Rules = { type: 'object' };
    // Archives keep the modes of files, and Lambda runs as another user.
    process.umask(0o022);

    const prepare = async () => {
      const faults = parameterFaults(deployment().values, service.provider.stage);
      if (faults !== undefined) fail(faults);
      await buildAllocatorLayer(service.layers.allocator.path);
    };

    const hashOfPackage = (name) => {
      const folder = path.resolve(serverless.serviceDir, service.package.path ?? '.serverless');
      return createHash('sha256')
        .update(readFileSync(path.join(folder, name)))
        .digest('hex');
    };

    const compareWithStack = async () => {
      const { values, requested } = deployment();
      const template = service.provider.compiledCloudFormationTemplate;
      const { Parameters } = template;
      const name = aws().naming.getStackName();
      const stack = await describeStack(name, aws());
      if (!requested.has('table') && (await isLeftBehind(name, aws()))) {
        log.notice(`The table ${name} exists and does not belong to this stack: it is used unchanged.`);
        Parameters.TableName.Default = name;
      }
      const kept = Object.entries(keptParameters(stack?.parameters ?? {}, { Parameters, requested }));
      for (const [parameter, value] of kept) Parameters[parameter].Default = value;
      const list = kept.map(([parameter, value]) => `${parameter}=${value}`).join(', ');
      if (kept.length > 0) log.notice(`Kept, as this deployment does not set them: ${list}`);
      if (!requested.has('tags')) service.provider.stackTags = { ...stack?.tags, ...service.provider.stackTags };
      Object.assign(template, nameReplacedResources(template, hashOfPackage));
      // An update names each value: an omitted one could keep its former value.
      const inForce = Object.entries(Parameters).map(([ParameterKey, { Default = '' }]) => ({
        ParameterKey,
        ParameterValue: String(Default),
      }));
      if (stack !== undefined) service.provider.stackParameters = inForce;
      const rollback = rollbackConfiguration(name, stack, Number(values.rollbackMinutes));
      if (rollback !== undefined) service.provider.rollbackConfiguration = rollback;
    };

    const keepParameters = async () => {
      const { parameters = {} } = (await describeStack(aws().naming.getStackName(), aws())) ?? {};
      const kept = Object.keys(parameters).map((ParameterKey) => ({ ParameterKey, UsePreviousValue: true }));
      service.provider.stackParameters = kept;
    };

    const printNextSteps = async () => {
      if (serverless.processedInput.commands.join(' ') !== 'deploy') return;
      const stack = await describeStack(aws().naming.getStackName(), aws());
      for (const line of nextSteps(stack?.outputs ?? {})) log.notice(line);
    };

    this.hooks = {
      // osls would ask CloudFormation for the last layer, even if it only packages, and not upload an equal one; but a
      // rollback needs the layer of its own deployment. No option disables that.
      initialize: () => {
        const layers = serverless.pluginManager.plugins.find((plugin) => 'compareWithLastLayer' in plugin);
        layers.compareWithLastLayer = async () => {};
      },
      // CloudFormation ignores unknown parameters, and osls packages a layer but does not build it.
      'before:package:cleanup': prepare,
      // osls does not keep the parameters of the previous deployment, and does not know that a table outlived its
      // stack.
      'before:deploy:deploy': compareWithStack,
      // The template of a rollback has the parameters of its time: it would disable what was enabled since.
      'before:rollback:rollback': keepParameters,
      // osls lists the functions of serverless.yml at the end, and this one may not be in the stack.
      'after:aws:deploy:deploy:updateStack': () => {
        const { Admission } = service.provider.compiledCloudFormationTemplate.Parameters;
        if (Admission.Default !== 'on') delete service.functions.admission;
      },
      // osls prints the outputs of the stack only with --verbose.
      finalize: printNextSteps,
    };
  }
}
