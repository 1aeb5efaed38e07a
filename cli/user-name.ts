import { userInfo } from 'node:os';

/** Of whoever runs the command, on this machine. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A user without an entry, as in a container.
    return `user ${process.getuid?.() ?? 'unknown'}`;
  }
}
