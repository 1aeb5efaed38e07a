import stringWidth from 'string-width';
import { escapeControls } from './terminal.ts';

/** The text in lines of at most `width` columns, `lead` before the first and as much space before the others. */
export function wrapped(text: string, width: number, lead = ''): string[] {
  const room = Math.max(20, width - lead.length);
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/).map(escapeControls)) {
    if (line !== '' && stringWidth(line) + 1 + stringWidth(word) > room) {
      lines.push(line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, line].map((content, index) => (index === 0 ? lead : ' '.repeat(lead.length)) + content);
}
