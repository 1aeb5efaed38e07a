// What packaging and deploying do besides what serverless.yml says: check the parameters and cluster.yml, build the
// allocator layer, make what is packaged readable to Lambda, stamp the deployment, go on with a table that an earlier stack left behind, and leave out the parts
// and the function that the parameters turn off.
import '../tools/check-node.mjs';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { makeReadable } from '../tools/read-zip.mjs';
import { buildAllocatorLayer } from './allocator-layer.mjs';

export default class DeploymentPlugin {
  constructor(serverless, options, { log }) {
    const { service, serviceDir } = serverless;

    const inForce = async () => {
      // Only now, as an older Node could not read these, and is told so above.
      const { parametersInForce } = await import('./check-parameters.ts');
      return parametersInForce(serverless.configurationInput.params, service.provider.stage, options.param);
    };

    const check = async () => {
      const { parameterFaults } = await import('./check-parameters.ts');
      const { clusterFileFaults } = await import('./check-cluster-file.ts');
      const parameters = await inForce();
      const faults = [parameterFaults(parameters), clusterFileFaults(path.join(serviceDir, 'cluster.yml'))];
      const told = faults.filter((text) => text !== undefined).join('\n');
      if (told !== '') throw new serverless.classes.Error(told, 'BAD_INPUT');
      return parameters;
    };

    const useTableLeftBehind = async () => {
      const { isLeftBehind } = await import('./left-behind-table.ts');
      const name = service.custom.table;
      if (!(await isLeftBehind(name, serverless.getProvider('aws')))) return;
      log.notice(`The table ${name} is there already and not of this stack: it is used as it is.`);
      service.resources.Conditions.OwnTable = { 'Fn::Equals': ['left behind', ''] };
    };

    const prepare = async () => {
      const { table } = await check();
      await buildAllocatorLayer(path.join(serviceDir, service.layers.allocator.path));
      const isDeployment = serverless.processedInput.commands.join(' ') === 'deploy';
      if (isDeployment && table === undefined) await useTableLeftBehind();
      const { resolveConditions } = await import('./resolve-conditions.ts');
      service.resources = resolveConditions(service.resources);
    };

    const makeArchivesReadable = () => {
      const folder = path.join(serviceDir, '.serverless');
      for (const name of readdirSync(folder).filter((file) => file.endsWith('.zip'))) {
        const zip = readFileSync(path.join(folder, name));
        makeReadable(zip);
        writeFileSync(path.join(folder, name), zip);
      }
    };

    this.hooks = {
      initialize: async () => {
        const { applyAdmission } = await import('./admission-function.ts');
        applyAdmission(service.functions, await inForce());
        // osls would ask CloudFormation for the last layer, even if it only packages, and not upload one that is the
        // same; but a rollback needs the layer of its own deployment.
        const layers = serverless.pluginManager.plugins.find((plugin) => 'compareWithLastLayer' in plugin);
        layers.compareWithLastLayer = async () => {};
      },
      'before:package:cleanup': prepare,
      // After every plugin has written its archives, and before their hashes are taken.
      'before:package:compileLayers': makeArchivesReadable,
      'before:deploy:function:packageFunction': check,
    };
  }
}
