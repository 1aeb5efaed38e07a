import { kubeconfigReader, type ReadKubeconfig } from './read-kubeconfig.ts';
import { type RequestToken, tokenRequester } from './request-token.ts';
import type { StorePlace } from './store-client.ts';

export interface KubeconfigSources {
  readonly read: ReadKubeconfig;
  readonly requestToken: RequestToken;
}

export function kubeconfigSources(place: StorePlace = {}): KubeconfigSources {
  return { read: kubeconfigReader(place), requestToken: tokenRequester(place) };
}
