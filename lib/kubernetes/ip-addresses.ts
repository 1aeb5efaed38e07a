import * as z from 'zod/mini';
import { ADDRESS_MANAGED_BY_LABEL, FAMILY_LABEL, type IPAddressRecord } from '../cluster/kubernetes-objects.ts';
import { type ProtobufReader, readMeta } from './protobuf.ts';
import { LONGEST_CLAIM_TEXT } from './reply-bounds.ts';
import { claimText, type ItemReader, metadataShape, orEmpty, readJsonItem } from './streamed-list.ts';

// Field numbers: k8s.io/api/networking/v1/generated.proto and k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto.

const LABELS = [Buffer.from(FAMILY_LABEL), Buffer.from(ADDRESS_MANAGED_BY_LABEL)];
const NO_PARENT = { group: '', resource: '', namespace: '', name: '' };

function readIpAddress(reader: ProtobufReader): IPAddressRecord {
  let meta: Omit<IPAddressRecord, 'parent'> | undefined;
  let parent: IPAddressRecord['parent'] = NO_PARENT;
  reader.message((field) => {
    if (field === 1) {
      const { namespace: _, labels, ...names } = readMeta(reader, LABELS);
      meta = { ...names, family: labels[0] ?? '', managedBy: labels[1] ?? '' };
    } else if (field === 2) parent = readSpec(reader);
  });
  const none = { name: '', uid: '', resourceVersion: '', createdAtMs: 0, family: '', managedBy: '' };
  return { ...(meta ?? none), parent };
}

function readSpec(reader: ProtobufReader): IPAddressRecord['parent'] {
  const parent = { ...NO_PARENT };
  const fields = { 1: 'group', 2: 'resource', 3: 'namespace', 4: 'name' } as const;
  reader.message((field) => {
    if (field !== 1) return;
    reader.message((part) => {
      const name = part === 1 || part === 2 || part === 3 || part === 4 ? fields[part] : undefined;
      if (name !== undefined) parent[name] = reader.text(LONGEST_CLAIM_TEXT);
    });
  });
  return parent;
}

const parentRef = z.object({ group: claimText, resource: claimText, namespace: claimText, name: claimText });
const ipAddress = z.object({
  metadata: metadataShape({ [FAMILY_LABEL]: claimText, [ADDRESS_MANAGED_BY_LABEL]: claimText }),
  spec: orEmpty(z.object({ parentRef: orEmpty(parentRef, {}) }), {}),
});

/** Reads an IPAddress (`networking.k8s.io/v1`). */
export function ipAddressInJson(object: unknown): IPAddressRecord {
  const { metadata, spec } = readJsonItem(ipAddress, 'IPAddress', object);
  const { namespace: _, labels, creationTimestamp: createdAtMs, ...names } = metadata;
  const { [FAMILY_LABEL]: family, [ADDRESS_MANAGED_BY_LABEL]: managedBy } = labels;
  return { ...names, createdAtMs, family, managedBy, parent: spec.parentRef };
}

export const IP_ADDRESS_READER: ItemReader<IPAddressRecord> = {
  kind: 'IPAddress',
  fromProtobuf: readIpAddress,
  fromJson: ipAddressInJson,
};
