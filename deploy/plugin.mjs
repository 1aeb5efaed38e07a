// Steps of packaging and deploying for which osls has no other extension point than hooks.
import path from 'node:path';
import { nameReplacedResources, packageHashes } from './compiled-template.ts';
import { describeStack, nextSteps, rollbackConfiguration } from './deployed-stack.ts';
import { buildAllocatorLayer } from './esbuild-plugins.ts';
import { keptParameters, parameterFaults, parametersInForce } from './parameters.ts';

export default class DeploymentPlugin {
  constructor(serverless, options, { log }) {
    const { service } = serverless;
    const stackName = () => serverless.getProvider('aws').naming.getStackName();
    const deployedStack = async () =>
      describeStack(stackName(), await serverless.getProvider('aws').getAwsSdkV3Config());
    const deployment = () =>
      parametersInForce(serverless.configurationInput.params ?? {}, service.provider.stage, options.param);
    const isDeploying = () => serverless.processedInput.commands.join(' ') === 'deploy';
    const packageFolder = () => path.resolve(serverless.serviceDir, service.package.path ?? '.serverless');
    // The schema of osls lacks this section of a template.
    serverless.configSchemaHandler.schema.properties.resources.properties.Rules = { type: 'object' };
    // Archives keep file modes. All users must be able to read the files, because Lambda reads them as another user.
    process.umask(0o022);

    this.hooks = {
      // osls does not upload a layer that equals the deployed layer, but a rollback needs the layer of its own
      // deployment. This hook disables the comparison, because osls has no option for this.
      initialize: () => {
        const layers = serverless.pluginManager.plugins.find((plugin) => 'compareWithLastLayer' in plugin);
        layers.compareWithLastLayer = async () => {};
      },
      // Checks the parameters, because CloudFormation ignores unknown ones. Builds the layer, because osls only packages it.
      'before:package:cleanup': async () => {
        const faults = parameterFaults(deployment().values, service.provider.stage);
        if (faults !== undefined) throw new serverless.classes.Error(faults, 'BAD_INPUT');
        // osls would report missing credentials only after it has packaged all functions.
        if (isDeploying()) await serverless.getProvider('aws').getAwsSdkV3CredentialsProvider()();
        const { exclude, plugins, banner, outputFileExtension, ...settings } = service.custom.esbuild;
        await buildAllocatorLayer(service.layers.allocator.path, settings);
      },
      // osls does not keep the parameters of the previous deployment, so this hook sets them again.
      'before:deploy:deploy': async () => {
        const { provider } = service;
        const next = deployment();
        const { Parameters } = provider.compiledCloudFormationTemplate;
        const stack = await deployedStack();
        const kept = Object.entries(keptParameters(stack?.parameters ?? {}, next));
        for (const [parameter, value] of kept) Parameters[parameter].Default = value;
        const list = kept.map(([parameter, value]) => `${parameter}=${value}`).join(', ');
        if (kept.length > 0) log.notice(`Kept, as this deployment does not set them: ${list}`);
        if (!next.requested.has('tags')) provider.stackTags = { ...stack?.tags, ...provider.stackTags };
        const template = provider.compiledCloudFormationTemplate;
        Object.assign(template, nameReplacedResources(template, packageHashes(packageFolder())));
        // An update sets each parameter, because an omitted parameter could keep its former value.
        if (stack !== undefined) {
          provider.stackParameters = Object.entries(Parameters).map(([ParameterKey, { Default = '' }]) => {
            return { ParameterKey, ParameterValue: String(Default) };
          });
        }
        provider.rollbackConfiguration = rollbackConfiguration(stackName(), stack, Number(next.values.rollbackMinutes));
      },
      // A rollback uses an old template. The parameter values of the old template would disable features that were
      // enabled since, so this hook keeps the deployed values. It also keeps the tags, because no template contains
      // them.
      'before:rollback:rollback': async () => {
        const { parameters = {}, tags } = (await deployedStack()) ?? {};
        const names = Object.keys(parameters);
        service.provider.stackParameters = names.map((ParameterKey) => ({ ParameterKey, UsePreviousValue: true }));
        service.provider.stackTags = { ...tags, ...service.provider.stackTags };
      },
      // osls lists the functions of serverless.yml at the end. This hook omits "admission" if the stack does not have it.
      'after:aws:deploy:deploy:updateStack': () => {
        if (service.provider.compiledCloudFormationTemplate.Parameters.Admission.Default !== 'on')
          delete service.functions.admission;
      },
      // osls prints the outputs of the stack only with --verbose.
      finalize: async () => {
        if (!isDeploying()) return;
        for (const line of nextSteps((await deployedStack())?.outputs ?? {})) log.notice(line);
      },
    };
  }
}
