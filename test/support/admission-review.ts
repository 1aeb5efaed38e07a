/** What a test says of a Service's spec; the rest is as the API's defaulting leaves it. */
export type SpecFields = Readonly<Record<string, unknown>>;

export interface ReviewFields {
  readonly uid?: string;
  readonly operation?: string;
  readonly name?: string;
  readonly generateName?: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly spec?: SpecFields;
  readonly oldSpec?: SpecFields;
  readonly dryRun?: boolean;
}

/** A review of `admission.k8s.io/v1`, as an API server sends it: of an update when there is an old spec. */
export function aReview(fields: ReviewFields = {}) {
  const { uid = 'u-1', name = 'web', generateName, namespace = 'default', labels, dryRun = false } = fields;
  const { spec = {}, oldSpec } = fields;
  const metadata = {
    namespace,
    ...(generateName === undefined ? { name } : { generateName }),
    ...(labels && { labels }),
  };
  const service = (given: SpecFields) => ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata,
    spec: { type: 'ClusterIP', ports: [{ protocol: 'TCP', port: 80, targetPort: 80 }], ...given },
    status: { loadBalancer: {} },
  });
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid,
      kind: { group: '', version: 'v1', kind: 'Service' },
      operation: fields.operation ?? (oldSpec === undefined ? 'CREATE' : 'UPDATE'),
      namespace,
      dryRun,
      object: service(spec),
      oldObject: oldSpec === undefined ? null : service(oldSpec),
    },
  };
}
