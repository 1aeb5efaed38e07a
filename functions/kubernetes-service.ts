import { scheduled } from '../lib/dispatch/scheduled.ts';
import { kubernetesService } from '../lib/loops/kubernetes-service.ts';

export const handler = scheduled(kubernetesService);
