export interface AlarmGuide {
  /** `page`: act at once. `ticket`: act on the next working day. */
  readonly severity: 'page' | 'ticket';
  /** The effect that users of the clusters notice. */
  readonly impact: string;
  /** The first command to run, if Lambda functions run the loops. */
  readonly stack: string;
  /** The first command if `kbctl run --table` runs the loops. Default: `stack`. Empty if `kbctl run` has no such alarm. */
  readonly run?: string;
}

const NAME = 'kube-bootstrap-controller';
const LOGS = `kubectl -n ${NAME} logs -l app.kubernetes.io/name=${NAME} --tail=200 --since=15m`;
const CPU = `kubectl -n ${NAME} set resources deployment/${NAME} --requests=cpu=200m   # double the current value`;
export const DOCTOR =
  "aws lambda invoke --function-name <stack>-doctor --payload '{}' --cli-binary-format raw-in-base64-out doctor.json";
const UNPUBLISHED = 'An API server that dies now stays published.';

/** What an on-call engineer needs first, by section of docs/runbook.md. The `aws` commands need AWS CLI v2. */
export const ALARM_GUIDES: Readonly<Record<string, AlarmGuide>> = {
  'nothing-ran': { severity: 'page', impact: UNPUBLISHED, stack: DOCTOR, run: `kubectl -n ${NAME} get pods` },
  errors: { severity: 'page', impact: UNPUBLISHED, stack: DOCTOR, run: LOGS },
  'figures-missing': { severity: 'ticket', impact: 'Alarms on clusters keep their states.', stack: DOCTOR, run: LOGS },
  'clusters-overdue': {
    severity: 'page',
    impact: UNPUBLISHED,
    stack: 'npm run deploy -- --param tickConcurrency=40   # double the current value',
    run: 'kbctl doctor <cluster> --table <table>',
  },
  'clusters-failing': {
    severity: 'ticket',
    impact: 'Nothing is corrected in the cluster.',
    stack: 'kbctl get runs <cluster> --table <table>',
  },
  'no-live-lease': {
    severity: 'page',
    impact: 'Pods of the cluster might not reach the API server. The endpoints stay published.',
    stack: 'kbctl get leases <cluster> --table <table>',
  },
  findings: {
    severity: 'ticket',
    impact: 'A Service might lose traffic to another one.',
    stack: 'kbctl get findings --table <table>',
  },
  'two-owners': {
    severity: 'page',
    impact: 'A dead API server might be published again.',
    stack: 'kbctl get findings <cluster> --table <table>',
  },
  'credentials-ending': {
    severity: 'ticket',
    impact: 'None until the credential ends; then passes fail.',
    stack: 'kbctl doctor <cluster> --table <table>',
  },
  'range-filling': { severity: 'ticket', impact: 'None yet.', stack: 'kbctl get ranges --table <table>' },
  'range-nearly-full': {
    severity: 'page',
    impact: 'New Services soon get no address or port.',
    stack: 'kbctl get ranges --table <table>',
  },
  'late-ticks': {
    severity: 'ticket',
    impact: 'A dead API server stays published for longer.',
    stack: 'npm run deploy -- --param tickConcurrency=40   # double the current value',
    run: CPU,
  },
  'late-probes': {
    severity: 'ticket',
    impact: 'A dead API server stays published for 40 s or longer.',
    stack: 'npm run deploy -- --param loopMemory=512   # double the current value',
    run: CPU,
  },
  'unqueued-ticks': {
    severity: 'ticket',
    impact: 'A dead API server stays published for longer.',
    stack: DOCTOR,
    run: '',
  },
  'clock-skewed': {
    severity: 'ticket',
    impact: 'Only checks of certificates use the clock.',
    stack: 'npm run deploy',
    run: 'chronyc tracking   # on the host of the pod',
  },
  'clusters-lost': {
    severity: 'page',
    impact: 'Their endpoints stay unchanged, and nothing is corrected.',
    stack: 'kbctl cluster apply -f <folder> --table <table>',
  },
  admission: {
    severity: 'page',
    impact: 'API servers with failurePolicy: Fail refuse new Services.',
    stack: 'npm run deploy -- --param admissionConcurrency=40   # double the current value',
    run: '',
  },
  'release-failing': {
    severity: 'ticket',
    impact: 'The update is rolled back.',
    stack: 'npx serverless deploy list',
    run: '',
  },
};
