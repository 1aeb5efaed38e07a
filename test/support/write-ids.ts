/** `w1`, `w2`, ...: ids that are told apart and read easily. */
export function countedWriteIds(): () => string {
  let count = 0;
  return () => {
    count += 1;
    return `w${count}`;
  };
}
