#!/usr/bin/env node
// The command: from an installed package its bundle, in this repository the source itself.
import { existsSync } from 'node:fs';
// Not by its name: an old Node does not have it, and is to be told so in words.
import module from 'node:module';
import '../tools/check-node.mjs';

// A short command takes half the time when nothing is compiled anew.
module.enableCompileCache();
const bundle = new URL('../dist/kbctl.mjs', import.meta.url);
const source = new URL('./main.ts', import.meta.url);
await import(existsSync(source) ? source.href : bundle.href);
