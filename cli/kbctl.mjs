#!/usr/bin/env node
// The command: from an installed package its bundle, in this repository the source itself.
import { existsSync } from 'node:fs';
import '../tools/check-node.mjs';

const bundle = new URL('../dist/kbctl.mjs', import.meta.url);
const source = new URL('./main.ts', import.meta.url);
await import(existsSync(source) ? source.href : bundle.href);
