export interface AlarmGuide {
  /** `page`: act at once. `ticket`: act on the next working day. */
  readonly severity: 'page' | 'ticket';
  /** The effect that users of the clusters notice. */
  readonly impact: string;
  /** The first command to run, if Lambda functions run the loops. */
  readonly stack: string;
  /** The first command if `kbctl run --table` runs the loops. Empty if the alarm does not apply to `kbctl run`. */
  readonly run: string;
}

function page(impact: string, stack: string, run = stack): AlarmGuide {
  return { severity: 'page', impact, stack, run };
}

function ticket(impact: string, stack: string, run = stack): AlarmGuide {
  return { severity: 'ticket', impact, stack, run };
}

const NAME = 'kube-bootstrap-controller';
const LOGS = `kubectl -n ${NAME} logs -l app.kubernetes.io/name=${NAME} --tail=200 --since=15m`;
const CPU = `kubectl -n ${NAME} set resources deployment/${NAME} --requests=cpu=200m   # double the current value`;
export const DOCTOR =
  "aws lambda invoke --function-name <stack>-doctor --payload '{}' --cli-binary-format raw-in-base64-out doctor.json";
const MORE_TICKS = 'npm run deploy -- --param tickConcurrency=40   # double the current value';
const UNPUBLISHED = 'An API server that dies now stays published.';

/** What an on-call engineer needs first, by section of docs/runbook.md. The `aws` commands need AWS CLI v2. */
export const ALARM_GUIDES: Readonly<Record<string, AlarmGuide>> = {
  'nothing-ran': page(UNPUBLISHED, DOCTOR, `kubectl -n ${NAME} get pods`),
  errors: page(UNPUBLISHED, DOCTOR, LOGS),
  'figures-missing': ticket('Alarms on clusters keep their states.', DOCTOR, LOGS),
  'clusters-overdue': page(UNPUBLISHED, MORE_TICKS, 'kbctl doctor <cluster> --table <table>'),
  'clusters-failing': ticket('Nothing is corrected in the cluster.', 'kbctl get runs <cluster> --table <table>'),
  'no-live-lease': page(
    'Pods of the cluster might not reach the API server. The endpoints stay published.',
    'kbctl get leases <cluster> --table <table>',
  ),
  findings: ticket('A Service might lose traffic to another one.', 'kbctl get findings --table <table>'),
  'two-owners': page('A dead API server might be published again.', 'kbctl get findings <cluster> --table <table>'),
  'credentials-ending': ticket(
    'None until the credential ends; then passes fail.',
    'kbctl doctor <cluster> --table <table>',
  ),
  'range-filling': ticket('None yet.', 'kbctl get ranges --table <table>'),
  'range-nearly-full': page('New Services soon get no address or port.', 'kbctl get ranges --table <table>'),
  'late-ticks': ticket('A dead API server stays published for longer.', MORE_TICKS, CPU),
  'late-probes': ticket(
    'A dead API server stays published for 40 s or longer.',
    'npm run deploy -- --param loopMemory=512   # double the current value',
    CPU,
  ),
  'unqueued-ticks': ticket('A dead API server stays published for longer.', DOCTOR, ''),
  'clock-skewed': ticket(
    'Only checks of certificates use the clock.',
    'npm run deploy',
    'chronyc tracking   # on the host of the pod',
  ),
  'clusters-lost': page(
    'Their endpoints stay unchanged, and nothing is corrected.',
    'kbctl cluster apply -f <folder> --table <table>',
  ),
  admission: page(
    'API servers with failurePolicy: Fail refuse new Services.',
    'npm run deploy -- --param admissionConcurrency=40   # double the current value',
    '',
  ),
  'release-failing': ticket('The update is rolled back.', 'npx serverless deploy list', ''),
};
