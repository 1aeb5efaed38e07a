import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// Keeps the temporary files of this process and of its child processes in one folder, which is removed at the end.
const folder = mkdtempSync(join(tmpdir(), 'kube-bootstrap-controller-tests-'));
process.env['TMPDIR'] = folder;
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
