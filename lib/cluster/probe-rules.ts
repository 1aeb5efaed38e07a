import { fault, type SpecFault, type SpecPath } from './spec-fault.ts';
import type { ServerDraft } from './spec-shape.ts';

export function probeFaults(at: SpecPath, probe: NonNullable<ServerDraft['probe']>): SpecFault[] {
  const { url, path, authenticate } = probe;
  const faults: SpecFault[] = [];
  if (path !== undefined && !/^\/[^\s#]*$/.test(path)) {
    faults.push(fault([...at, 'path'], `${JSON.stringify(path)} is no path`, 'write a path such as /readyz'));
  }
  if (url === undefined) return faults;
  if (path !== undefined) {
    faults.push(fault([...at, 'path'], 'has no meaning beside probe.url', 'put the path into the url'));
  }
  return [...faults, ...urlFaults([...at, 'url'], url, authenticate === true)];
}

function urlFaults(at: SpecPath, text: string, authenticate: boolean): SpecFault[] {
  const url = URL.parse(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    const fix = 'write a whole URL such as https://10.0.0.10:6443/readyz';
    return [fault(at, `${JSON.stringify(text)} is no http or https URL`, fix)];
  }
  if (url.username !== '' || url.password !== '') {
    const fix = 'take it out; probe.authenticate sends the one of the kubeconfig';
    return [fault(at, 'carries a credential, which would be kept and logged', fix)];
  }
  if (!authenticate || url.protocol === 'https:') return [];
  const message = 'would carry the credential of probe.authenticate in the clear';
  return [fault(at, message, 'write an https URL, or leave out probe.authenticate')];
}
