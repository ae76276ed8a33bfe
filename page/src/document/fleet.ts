// What the page reads of a fleet's answer (answers/fleet.ts).

// "0 12 - 900": -1 where the rank has no value.
export function sharesOf(text: string): Int16Array {
  return Int16Array.from(text.split(' ').filter((word) => word !== ''), (word) => (word === '-' ? -1 : Number(word)));
}
