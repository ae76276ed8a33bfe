// How the inputs of a page are named and in what order they stand.
import type { Input, PageDocument } from '../document/types';
import { count } from '../view/format';

const isFailed = (input: Input): boolean => input.explanation.headline.startsWith('OUT OF MEMORY');

// Places in the document: what failed stands first.
export function orderOfInputs(doc: PageDocument): number[] {
  const places = doc.inputs.map((_, i) => i);
  return [...places.filter((i) => isFailed(doc.inputs[i])), ...places.filter((i) => !isFailed(doc.inputs[i]))];
}

// A name that no other input has: messages of one file are told apart by what they say.
export function nameOfInput(doc: PageDocument, index: number): string {
  const input = doc.inputs[index];
  const name = input.rank === null ? input.name : `rank ${input.rank}: ${input.name}`;
  if (doc.inputs.filter((other) => other.name === input.name && other.rank === input.rank).length < 2) return name;
  const place = doc.inputs.slice(0, index + 1).filter((other) => other.name === input.name).length;
  const [, ...words] = input.explanation.headline.split(/ {2,}/);
  return `${count(place)}: ${words.join(' ').split(', ')[0] || name}`;
}

export function titleOfInputs(doc: PageDocument): string {
  const [first, ...rest] = doc.inputs;
  const isOneFile = rest.every((input) => input.name === first.name);
  return isOneFile ? `${count(doc.inputs.length)} messages in one file` : `${count(doc.inputs.length)} inputs`;
}

// Whether the page tells of a run that has not been: nothing of it was recorded, and nothing of it can be recorded better.
export const isForetold = (doc: PageDocument): boolean => doc.estimate !== null || doc.dry_run !== null || doc.fit !== null;
