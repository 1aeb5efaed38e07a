import { describeOnDynalite } from './kbctl-on-dynalite.ts';

describeOnDynalite('ranges');
