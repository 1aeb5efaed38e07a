import type { FieldValue, TelemetryFactory } from '../lib/telemetry/telemetry.ts';

/** For passes that a person waits for: warnings and errors as sentences, and no figures. */
export function sayingTelemetry(say: (line: string) => void): TelemetryFactory {
  return ({ loop }) => ({
    log: (level, message, { cluster, errors, ...fields } = {}) => {
      if (level !== 'warn' && level !== 'error') return;
      const who = typeof cluster === 'string' ? `${cluster} ${loop}` : loop;
      const sentences = [...listIn(errors), ...Object.values(fields).flatMap(listIn)];
      for (const text of sentences.length > 0 ? sentences : [message]) say(`${who}: ${text}`);
    },
    count: () => {},
    sample: () => {},
    flush: () => {},
  });
}

function listIn(value: FieldValue): readonly string[] {
  return Array.isArray(value) ? value : [];
}
