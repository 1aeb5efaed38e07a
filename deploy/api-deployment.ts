import { createHash } from 'node:crypto';
import type { Fields, Resources, Template } from './cloudformation.ts';

const NAME = 'AdmissionApiDeployment';

/**
 * Renames the deployment of the webhook's API after its content: CloudFormation deploys an API again only as a new
 * resource.
 */
export function nameApiDeployment<T extends Template>(template: T): T {
  const { [NAME]: deployment, AdmissionApiStage: stage, ...others } = template.Resources;
  if (deployment === undefined || stage === undefined) return template;
  const { AdmissionApi: api, AdmissionApiResource: resource, AdmissionApiMethod: method } = others;
  const { AdmissionVpcEndpointIds: ids } = template['Parameters'] as Fields;
  const hash = createHash('sha256').update(JSON.stringify([api, resource, method, ids]));
  const name = `${NAME}${hash.digest('hex').slice(0, 8)}`;
  const Properties = { ...stage.Properties, DeploymentId: { Ref: name } };
  const Resources: Resources = { ...others, [name]: deployment, AdmissionApiStage: { ...stage, Properties } };
  return { ...template, Resources };
}
