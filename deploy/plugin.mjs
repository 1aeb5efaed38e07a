// What packaging and deploying do besides serverless.yml: check the parameters, refuse to reset
// what the stack was deployed with, build the allocator layer, make packaged files readable to Lambda, complete the
// template, use a table that an earlier stack left behind, and print what to do next.
import '../tools/check-node.mjs';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { makeReadable } from '../tools/read-zip.mjs';
import { buildAllocatorLayer } from './allocator-layer.mjs';

export default class DeploymentPlugin {
  constructor(serverless, options, { log }) {
    const { service, serviceDir } = serverless;
    const aws = () => serverless.getProvider('aws');
    const stackName = () => aws().naming.getStackName();
    const fail = (text) => {
      throw new serverless.classes.Error(text, 'BAD_INPUT');
    };
    /** In force for this command. */
    let deployment;
    let isCompared = false;

    const applyParameters = async () => {
      // Only now, as an older Node cannot read TypeScript, and check-node.mjs reports it.
      const { parametersInForce } = await import('./parameters.ts');
      const { roles } = await import('./roles.ts');
      const { stage, region } = service.provider;
      deployment = parametersInForce(serverless.configurationInput.params ?? {}, stage, options.param);
      // osls compares templates and packages, and would not see that a parameter changed.
      options.force = true;
      const { deploymentBucket, deploymentRoleArn, tags } = deployment.values;
      service.resources = { Resources: roles(`kbc-${stage}-${region}`) };
      if (deploymentBucket) service.provider.deploymentBucket = deploymentBucket;
      if (deploymentRoleArn) service.provider.iam = { ...service.provider.iam, deploymentRole: deploymentRoleArn };
      if (tags) service.provider.stackTags = Object.fromEntries(tags.split(',').map((tag) => tag.split(/=(.*)/s)));
    };

    const check = async () => {
      const { parameterFaults } = await import('./parameters.ts');
      const faults = parameterFaults(deployment.values, service.provider.stage);
      if (faults !== undefined) fail(faults);
    };

    /** Before a deployment changes anything. */
    const compareWithStack = async () => {
      if (isCompared) return;
      isCompared = true;
      const { describeStack, isLeftBehind, rollbackConfiguration } = await import('./deployed-stack.ts');
      const { resetParameters, stackParameters } = await import('./parameters.ts');
      const name = stackName();
      const stack = await describeStack(name, aws());
      if (!deployment.requested.has('table') && (await isLeftBehind(name, aws()))) {
        log.notice(`The table ${name} exists and does not belong to this stack: it is used unchanged.`);
        deployment.values.table = name;
      }
      const given = [
        ...['stage', 'region', 'aws-profile'].flatMap((option) =>
          options[option] ? [`--${option} ${options[option]}`] : [],
        ),
        ...(options.param ?? []).map((pair) => `--param ${pair}`),
      ];
      const reset = resetParameters(stack?.parameters ?? {}, deployment, { stack: name, given });
      if (reset !== undefined) fail(reset);
      setStackParameters(
        Object.entries(stackParameters(deployment.values)).map(([ParameterKey, ParameterValue]) => ({
          ParameterKey,
          ParameterValue,
        })),
      );
      const rollback = rollbackConfiguration(name, stack, Number(deployment.values.rollbackMinutes));
      if (rollback !== undefined) service.provider.rollbackConfiguration = rollback;
    };

    const setStackParameters = (parameters) => {
      service.provider.stackParameters = parameters;
    };

    const prepare = async () => {
      await check();
      if (serverless.processedInput.commands.join(' ') === 'deploy') await compareWithStack();
      await buildAllocatorLayer(path.join(serviceDir, service.layers.allocator.path));
    };

    const makeArchivesReadable = () => {
      const folder = path.join(serviceDir, '.serverless');
      for (const name of readdirSync(folder).filter((file) => file.endsWith('.zip'))) {
        const zip = readFileSync(path.join(folder, name));
        makeReadable(zip);
        writeFileSync(path.join(folder, name), zip);
      }
    };

    /** The first deployment begins with a template of its own, which has only the bucket. */
    const declareParameters = async () => {
      const { templateParameters } = await import('./parameters.ts');
      service.provider.coreCloudFormationTemplate.Parameters = templateParameters();
    };

    const complete = async () => {
      const { completeTemplate } = await import('./template.ts');
      const { compiledCloudFormationTemplate: compiled } = service.provider;
      service.provider.compiledCloudFormationTemplate = completeTemplate(compiled);
    };

    const keepParameters = async () => {
      const { describeStack } = await import('./deployed-stack.ts');
      const { parameters = {} } = (await describeStack(stackName(), aws())) ?? {};
      setStackParameters(Object.keys(parameters).map((ParameterKey) => ({ ParameterKey, UsePreviousValue: true })));
    };

    const printNextSteps = async () => {
      const { describeStack } = await import('./deployed-stack.ts');
      const { outputs = {} } = (await describeStack(stackName(), aws())) ?? {};
      log.notice();
      log.notice('Next:');
      const steps = {
        'register a cluster': 'RegisterCommand',
        status: 'StatusCommand',
        dashboard: 'DashboardUrl',
        'admission URL': 'AdmissionUrl',
      };
      for (const [name, output] of Object.entries(steps)) {
        if (outputs[output]) log.notice(`  ${name}: ${outputs[output]}`);
      }
    };

    this.hooks = {
      initialize: async () => {
        await applyParameters();
        // osls would ask CloudFormation for the last layer, even if it only packages, and not upload one that is the
        // same; but a rollback needs the layer of its own deployment.
        const layers = serverless.pluginManager.plugins.find((plugin) => 'compareWithLastLayer' in plugin);
        layers.compareWithLastLayer = async () => {};
      },
      'before:package:cleanup': prepare,
      'after:package:initialize': declareParameters,
      // After every plugin has written its archives, and before their hashes are taken.
      'before:package:compileLayers': makeArchivesReadable,
      'after:aws:package:finalize:mergeCustomProviderResources': complete,
      'before:deploy:deploy': compareWithStack,
      // osls lists the functions of serverless.yml, and this one may not be in the stack.
      'after:aws:deploy:deploy:updateStack': () => {
        if (deployment.values.admission !== 'on') delete service.functions.admission;
      },
      finalize: async () => {
        if (serverless.processedInput.commands.join(' ') === 'deploy') await printNextSteps();
      },
      'before:rollback:rollback': keepParameters,
      'before:deploy:function:packageFunction': check,
    };
  }
}
