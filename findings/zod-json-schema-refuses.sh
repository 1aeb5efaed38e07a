#!/usr/bin/env bash
# toJSONSchema of zod 4.6.7 with io: 'input' writes a JSON Schema that refuses input which the zod schema accepts: an IPv6 address that ends as IPv4
# (RFC 4291, section 2.2), because the pattern is another one than zod's own check, and a missing key with catch or preprocess, because the
# key is required. A schema that editors or API gateways use before zod thus refuses what the program accepts.
# Seen on 2026-11-29 with Node.js 24 and ajv 8.20.0:
#   IPv6 ::ffff:192.0.2.1: zod accepts, JSON Schema refuses
#   missing key with catch: zod accepts, JSON Schema refuses
#   missing key with preprocess: zod accepts, JSON Schema refuses
#   missing key with default: zod accepts, JSON Schema accepts
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --ignore-scripts zod@4.6.7 ajv@8.20.0
cat >run.mjs <<'JS'
import { Ajv2020 } from 'ajv/dist/2020.js';
import { z } from 'zod';

const ajv = new Ajv2020({ validateFormats: false });
const word = (ok) => (ok ? 'accepts' : 'refuses');
for (const [title, type, input] of [
  ['IPv6 ::ffff:192.0.2.1', z.ipv6(), { key: '::ffff:192.0.2.1' }],
  ['missing key with catch', z.string().catch('a'), {}],
  ['missing key with preprocess', z.preprocess((value) => value ?? 'a', z.string()), {}],
  ['missing key with default', z.string().default('a'), {}],
]) {
  const schema = z.object({ key: type });
  const json = z.toJSONSchema(schema, { io: 'input' });
  console.log(`${title}: zod ${word(schema.safeParse(input).success)}, JSON Schema ${word(ajv.validate(json, input))}`);
}
JS
node run.mjs | tee seen
diff - seen <<'SEEN'
IPv6 ::ffff:192.0.2.1: zod accepts, JSON Schema refuses
missing key with catch: zod accepts, JSON Schema refuses
missing key with preprocess: zod accepts, JSON Schema refuses
missing key with default: zod accepts, JSON Schema accepts
SEEN
