import * as z from 'zod/mini';
import { ADDRESS_MANAGED_BY_LABEL, FAMILY_LABEL, type IPAddressRecord } from '../cluster/kubernetes-objects.ts';
import { type ProtobufReader, readLabel, readTimeMs } from './protobuf.ts';
import { LONGEST_CLAIM_TEXT } from './reply-bounds.ts';
import { claimText, creationMs, type ItemReader, orEmpty, readJsonItem } from './streamed-list.ts';

// Field numbers: k8s.io/api/networking/v1/generated.proto and k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto.

const LABELS = [Buffer.from(FAMILY_LABEL), Buffer.from(ADDRESS_MANAGED_BY_LABEL)];
const NO_PARENT = { group: '', resource: '', namespace: '', name: '' };

type Meta = Omit<IPAddressRecord, 'parent'>;
type Parent = IPAddressRecord['parent'];

function readIpAddress(reader: ProtobufReader): IPAddressRecord {
  let meta: Meta = { name: '', uid: '', resourceVersion: '', createdAtMs: 0, family: '', managedBy: '' };
  let parent: Parent = NO_PARENT;
  reader.message((field) => {
    if (field === 1) meta = readMeta(reader);
    else if (field === 2) parent = readSpec(reader);
  });
  return { ...meta, parent };
}

function readMeta(reader: ProtobufReader): Meta {
  const meta = { name: '', uid: '', resourceVersion: '', createdAtMs: 0 };
  const labels = ['', ''];
  reader.message((field) => {
    if (field === 1) meta.name = reader.text(LONGEST_CLAIM_TEXT);
    else if (field === 5) meta.uid = reader.text(LONGEST_CLAIM_TEXT);
    else if (field === 6) meta.resourceVersion = reader.text(LONGEST_CLAIM_TEXT);
    else if (field === 8) meta.createdAtMs = readTimeMs(reader);
    else if (field === 11) {
      const [index, value] = readLabel(reader, LABELS) ?? [];
      if (index !== undefined && value !== undefined) labels[index] = value;
    }
  });
  const [family = '', managedBy = ''] = labels;
  return { ...meta, family, managedBy };
}

function readSpec(reader: ProtobufReader): Parent {
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

const ipAddress = z.object({
  metadata: z.object({
    name: claimText,
    uid: claimText,
    resourceVersion: claimText,
    creationTimestamp: creationMs,
    labels: orEmpty(z.object({ [FAMILY_LABEL]: claimText, [ADDRESS_MANAGED_BY_LABEL]: claimText }), {}),
  }),
  spec: orEmpty(
    z.object({
      parentRef: orEmpty(
        z.object({ group: claimText, resource: claimText, namespace: claimText, name: claimText }),
        {},
      ),
    }),
    {},
  ),
});

/** Reads an IPAddress (`networking.k8s.io/v1`). */
export function ipAddressInJson(object: unknown): IPAddressRecord {
  const { metadata, spec } = readJsonItem(ipAddress, 'IPAddress', object);
  const { labels, creationTimestamp: createdAtMs, ...names } = metadata;
  const { [FAMILY_LABEL]: family, [ADDRESS_MANAGED_BY_LABEL]: managedBy } = labels;
  return { ...names, createdAtMs, family, managedBy, parent: spec.parentRef };
}

export const IP_ADDRESS_READER: ItemReader<IPAddressRecord> = {
  kind: 'IPAddress',
  fromProtobuf: readIpAddress,
  fromJson: ipAddressInJson,
};
