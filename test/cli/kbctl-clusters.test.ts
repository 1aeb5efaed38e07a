import { describeOnDynalite } from '../support/kbctl-on-dynalite.ts';

// Each command is a process of its own, on a machine that does other things.

describeOnDynalite('clusters');
