#!/usr/bin/env bash
# Two calls of addDimensions of @aws-lambda-powertools/metrics 2.36.0 make two sets of dimensions, so that CloudWatch has two series for each metric and none
# with both dimensions. Two calls of addDimension make one set. The comment of the
# method has it as "useful when you want to add multiple dimensions to the metrics at once". An alarm on both dimensions gets no data.
# Seen on 2026-11-29 with Node.js 24:
#   addDimension twice: [["service","a","b"]]
#   addDimensions once: [["service","a","b"]]
#   addDimensions twice: [["service","a"],["service","b"]]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts @aws-lambda-powertools/metrics@2.36.0
cat >run.mjs <<'JS'
import { Metrics, MetricUnit } from '@aws-lambda-powertools/metrics';

/** Prints the sets of dimensions of one metric. */
function print(name, add) {
  const metrics = new Metrics({ namespace: 'n', serviceName: 's' });
  add(metrics);
  metrics.addMetric('count', MetricUnit.Count, 1);
  const { CloudWatchMetrics } = metrics.serializeMetrics()._aws;
  console.log(`${name}: ${JSON.stringify(CloudWatchMetrics[0].Dimensions)}`);
}
print('addDimension twice', (metrics) => metrics.addDimension('a', '1').addDimension('b', '2'));
print('addDimensions once', (metrics) => metrics.addDimensions({ a: '1', b: '2' }));
print('addDimensions twice', (metrics) => metrics.addDimensions({ a: '1' }).addDimensions({ b: '2' }));
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
addDimension twice: [["service","a","b"]]
addDimensions once: [["service","a","b"]]
addDimensions twice: [["service","a"],["service","b"]]
SEEN
