#!/usr/bin/env node
// Runs kbctl from the bundle of an installed package, or from the source in this repository.
import { existsSync } from 'node:fs';
// This is a default import, because an old Node has no named export and must still reach the error message of check-node.mjs.
import module from 'node:module';
import '../tools/check-node.mjs';

// The compile cache halves the time of a short command.
module.enableCompileCache();
const bundle = new URL('../dist/kbctl.mjs', import.meta.url);
const source = new URL('./main.ts', import.meta.url);
await import(existsSync(source) ? source.href : bundle.href);
