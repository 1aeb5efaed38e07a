import { expect, test } from '@jest/globals';
import { nameApiDeployment } from '../../deploy/api-deployment.ts';
import { templateParameters } from '../../deploy/parameters.ts';
import { uncompiledTemplate } from '../support/uncompiled-template.ts';

const named = (admissionVpcEndpointIds: string) => {
  const Parameters = { ...templateParameters({ admissionVpcEndpointIds }) };
  const { Resources } = nameApiDeployment({ ...uncompiledTemplate(), Parameters });
  const [name = ''] = Object.keys(Resources).filter((id) => id.startsWith('AdmissionApiDeployment'));
  return { name, stage: Resources['AdmissionApiStage']?.Properties['DeploymentId'] };
};

test('the API of the webhook is deployed again when its policy names other VPC endpoints', () => {
  const names = ['', 'vpce-1', 'vpce-1,vpce-2', ''].map((ids) => named(ids).name);
  expect(new Set(names).size).toBe(3);
  expect(names[3]).toBe(names[0]);
});

test('the stage is at the deployment of the name', () => {
  const { name, stage } = named('vpce-1');
  expect(name).toMatch(/^AdmissionApiDeployment[0-9a-f]{8}$/);
  expect(stage).toEqual({ Ref: name });
});
