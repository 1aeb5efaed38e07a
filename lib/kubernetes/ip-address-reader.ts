import { ADDRESS_MANAGED_BY_LABEL, FAMILY_LABEL, type IPAddressRecord } from '../cluster/kubernetes-objects.ts';
import { LONGEST_TEXT } from '../util/bounds.ts';
import type { JsonRecord } from '../util/values.ts';
import { asRecord, type Changing, type ItemReader, metadataIn, recordIn, textIn, wrongType } from './item-reader.ts';
import type { ProtobufReader } from './protobuf.ts';

type Parent = IPAddressRecord['parent'];

const NO_PARENT: Parent = { group: '', resource: '', namespace: '', name: '' };

export const IP_ADDRESS_READER: ItemReader<IPAddressRecord> = {
  kind: 'IPAddress',
  fromProtobuf: readIpAddress,
  fromJson: (object) => {
    const ipAddress = asRecord(object, 'IPAddress');
    const metadata = recordIn(ipAddress, 'metadata');
    const labels = recordIn(metadata, 'labels');
    const parent = recordIn(recordIn(ipAddress, 'spec'), 'parentRef');
    return {
      ...metadataIn(metadata),
      family: textIn(labels, FAMILY_LABEL),
      managedBy: textIn(labels, ADDRESS_MANAGED_BY_LABEL),
      parent: {
        group: startIn(parent, 'group'),
        resource: startIn(parent, 'resource'),
        namespace: startIn(parent, 'namespace'),
        name: startIn(parent, 'name'),
      },
    };
  },
};

/** Returns the start of a string in a parentRef, where API servers allow any length. Names of Services are never cut. */
function startIn(record: JsonRecord, field: string): string {
  const value = record[field] ?? '';
  if (typeof value !== 'string') throw wrongType(field);
  return value.slice(0, LONGEST_TEXT);
}

// Field numbers: k8s.io/api/networking/v1/generated.proto and k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto.

function readIpAddress(reader: ProtobufReader, previous: IPAddressRecord | undefined): IPAddressRecord {
  const record: Changing<IPAddressRecord> = {
    name: '',
    uid: '',
    resourceVersion: '',
    createdAtMs: 0,
    family: '',
    managedBy: '',
    parent: NO_PARENT,
  };
  reader.enter();
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) readMetadata(reader, record);
    else if (field === 2) readSpec(reader, record, previous?.parent ?? NO_PARENT);
  }
  return record;
}

function readMetadata(reader: ProtobufReader, record: Changing<IPAddressRecord>): void {
  reader.enter();
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) record.name = reader.text(LONGEST_TEXT);
    else if (field === 5) record.uid = reader.text(LONGEST_TEXT);
    else if (field === 6) record.resourceVersion = reader.text(LONGEST_TEXT);
    else if (field === 8) record.createdAtMs = reader.timeMs();
    else if (field === 11) readLabel(reader, record);
  }
}

function readLabel(reader: ProtobufReader, record: Changing<IPAddressRecord>): void {
  let key = '';
  reader.enter();
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    // The key of a label comes before its value.
    if (field === 1) key = reader.textStart(LONGEST_TEXT, ADDRESS_MANAGED_BY_LABEL);
    else if (field === 2 && key === FAMILY_LABEL) record.family = reader.text(LONGEST_TEXT, 'IPv4');
    else if (field === 2 && key === ADDRESS_MANAGED_BY_LABEL) record.managedBy = reader.text(LONGEST_TEXT);
  }
}

function readSpec(reader: ProtobufReader, record: Changing<IPAddressRecord>, likely: Parent): void {
  reader.enter();
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) record.parent = readParent(reader, likely);
  }
}

function readParent(reader: ProtobufReader, likely: Parent): Parent {
  const parent = { ...NO_PARENT };
  reader.enter();
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) parent.group = reader.textStart(LONGEST_TEXT);
    else if (field === 2) parent.resource = reader.textStart(LONGEST_TEXT, likely.resource);
    else if (field === 3) parent.namespace = reader.textStart(LONGEST_TEXT, likely.namespace);
    else if (field === 4) parent.name = reader.textStart(LONGEST_TEXT);
  }
  return parent;
}
