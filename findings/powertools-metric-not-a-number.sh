#!/usr/bin/env bash
# @aws-lambda-powertools/metrics 2.36.0 accepts NaN and Infinity as the value of a metric and writes null, because it checks only the type and JSON has
# neither. CloudWatch's embedded metric format takes numbers and lists of numbers (CloudWatch user guide, "Specification: Embedded metric format"),
# so that one division by zero spoils the line of all metrics of that name. A text as the value is an error.
# Seen on 2026-11-29 with Node.js 24:
#   "latency":[12,null,null]
#   text: 12 is not a valid number
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @aws-lambda-powertools/metrics@2.36.0
cat >run.mjs <<'JS'
import { Metrics, MetricUnit } from '@aws-lambda-powertools/metrics';

const metrics = new Metrics({ namespace: 'n', serviceName: 's' });
for (const value of [12, 0 / 0, 1 / 0]) metrics.addMetric('latency', MetricUnit.Milliseconds, value);
metrics.publishStoredMetrics();
try {
  metrics.addMetric('latency', MetricUnit.Milliseconds, '12');
} catch (error) {
  console.log(`text: ${error.message}`);
}
JS
node run.mjs | grep -o '"latency":.*]\|^text.*' | tee seen
diff - seen <<'SEEN'
"latency":[12,null,null]
text: 12 is not a valid number
SEEN
