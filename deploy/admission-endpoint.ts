import { attribute, type Resource, type Resources, ref, substitute, type Value, whether } from './cloudformation.ts';

const FUNCTION = ref('AdmissionLambdaFunction');
const FUNCTION_ARN = attribute('AdmissionLambdaFunction', 'Arn');

/** Open to everyone, as AWS sees it: the token of each cluster decides (docs/admission.md). */
function permission(Condition: string, Properties: Resource['Properties']): Resource {
  return { Type: 'AWS::Lambda::Permission', Condition, Properties: { FunctionName: FUNCTION_ARN, ...Properties } };
}

const IS_PRIVATE = 'HasPrivateAdmission';
const VPC_ENDPOINTS: Value = { 'Fn::Split': [',', ref('AdmissionVpcEndpointIds')] };

/** The URL of the function, or an API that passes every path to it, as the parameter admissionEndpoint chooses. */
export const ADMISSION_ENDPOINT: Resources = {
  AdmissionUrl: {
    Type: 'AWS::Lambda::Url',
    Condition: 'HasAdmissionUrl',
    Properties: { AuthType: 'NONE', TargetFunctionArn: FUNCTION_ARN },
  },
  AdmissionUrlPermission: permission('HasAdmissionUrl', {
    Action: 'lambda:InvokeFunctionUrl',
    Principal: '*',
    FunctionUrlAuthType: 'NONE',
  }),
  AdmissionUrlInvokePermission: permission('HasAdmissionUrl', {
    Action: 'lambda:InvokeFunction',
    Principal: '*',
    InvokedViaFunctionUrl: true,
  }),
  AdmissionApi: {
    Type: 'AWS::ApiGateway::RestApi',
    Condition: 'HasAdmissionApi',
    Properties: {
      Name: substitute('${AWS::StackName}-admission'),
      EndpointConfiguration: whether(
        IS_PRIVATE,
        { Types: ['PRIVATE'], VpcEndpointIds: VPC_ENDPOINTS },
        { Types: ['REGIONAL'] },
      ),
      // A private API refuses everything without a policy of its own.
      Policy: whether(IS_PRIVATE, {
        Version: '2012-10-17',
        Statement: [
          {
            Effect: 'Allow',
            Principal: '*',
            Action: 'execute-api:Invoke',
            Resource: 'execute-api:/*',
            Condition: { StringEquals: { 'aws:SourceVpce': VPC_ENDPOINTS } },
          },
        ],
      }),
    },
  },
  AdmissionApiResource: {
    Type: 'AWS::ApiGateway::Resource',
    Condition: 'HasAdmissionApi',
    Properties: {
      RestApiId: ref('AdmissionApi'),
      ParentId: attribute('AdmissionApi', 'RootResourceId'),
      PathPart: '{cluster}',
    },
  },
  AdmissionApiMethod: {
    Type: 'AWS::ApiGateway::Method',
    Condition: 'HasAdmissionApi',
    Properties: {
      RestApiId: ref('AdmissionApi'),
      ResourceId: ref('AdmissionApiResource'),
      HttpMethod: 'POST',
      AuthorizationType: 'NONE',
      Integration: {
        Type: 'AWS_PROXY',
        IntegrationHttpMethod: 'POST',
        Uri: substitute(
          'arn:${AWS::Partition}:apigateway:${AWS::Region}:lambda:path/2015-03-31/functions/${Function}/invocations',
          { Function: FUNCTION_ARN },
        ),
      },
    },
  },
  AdmissionApiDeployment: {
    Type: 'AWS::ApiGateway::Deployment',
    Condition: 'HasAdmissionApi',
    DependsOn: 'AdmissionApiMethod',
    Properties: { RestApiId: ref('AdmissionApi') },
  },
  AdmissionApiStage: {
    Type: 'AWS::ApiGateway::Stage',
    Condition: 'HasAdmissionApi',
    Properties: {
      RestApiId: ref('AdmissionApi'),
      DeploymentId: ref('AdmissionApiDeployment'),
      StageName: 'admission',
    },
  },
  AdmissionApiPermission: permission('HasAdmissionApi', {
    Action: 'lambda:InvokeFunction',
    Principal: 'apigateway.amazonaws.com',
    SourceArn: substitute('arn:${AWS::Partition}:execute-api:${AWS::Region}:${AWS::AccountId}:${AdmissionApi}/*'),
  }),
};

/** Where API servers send reviews: the path is the name of the cluster. */
export const ADMISSION_URL = whether(
  'HasAdmissionApi',
  substitute('https://${AdmissionApi}.execute-api.${AWS::Region}.${AWS::URLSuffix}/admission/'),
  whether('HasAdmissionUrl', attribute('AdmissionUrl', 'FunctionUrl'), ''),
);

/** The count of replies of status 500 and more, under the name that the endpoint gives it. */
export const ADMISSION_FAILURES = {
  functionUrl: {
    Namespace: 'AWS/Lambda',
    MetricName: 'Url5xxCount',
    Dimensions: [{ Name: 'FunctionName', Value: FUNCTION }],
  },
  apiGateway: {
    Namespace: 'AWS/ApiGateway',
    MetricName: '5XXError',
    Dimensions: [{ Name: 'ApiName', Value: substitute('${AWS::StackName}-admission') }],
  },
} as const;
