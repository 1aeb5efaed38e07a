/** The fields of a Service's spec that a test sets. The API server has filled in all defaults. */
export type ServiceFields = Readonly<Record<string, unknown>>;

export interface ReviewFields {
  readonly uid?: string;
  readonly operation?: string;
  readonly name?: string;
  readonly generateName?: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly spec?: ServiceFields;
  readonly oldSpec?: ServiceFields;
  readonly dryRun?: boolean;
}

/** Returns an `admission.k8s.io/v1` review as an API server sends it. With an old spec it is a review of an update. */
export function aReview(fields: ReviewFields = {}) {
  const { uid = 'u-1', name = 'web', generateName, namespace = 'default', labels, dryRun = false } = fields;
  const { spec = {}, oldSpec } = fields;
  const names = generateName === undefined ? { name } : { generateName };
  const metadata = { namespace, ...names, ...(labels && { labels }) };
  const service = (given: ServiceFields) => ({
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
