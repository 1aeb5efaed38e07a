import { describeOnDynalite } from '../support/kbctl-on-dynalite.ts';

describeOnDynalite('ranges');
