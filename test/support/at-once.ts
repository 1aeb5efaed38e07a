/** Options of updates that do not wait between attempts. */
export const AT_ONCE = { wait: () => Promise.resolve() };
