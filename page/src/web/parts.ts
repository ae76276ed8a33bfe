// What the page carries: the worker's script, the module and the report page. Each is text in an element that nothing runs.
import { bytesOfBase64, unpack } from '../document/load';
import { unpackLzma } from './lzma';
import type { Parts } from './run';

const kModuleFile = 'ashlar_web.wasm'; // beside a page that was served without the module in it

// From a host there is the same page as one file, to keep.
export const kOneFile = 'ashlar.html';
export const isServed = (): boolean => document.getElementById('ashlar-module') === null;

const textOf = (id: string): string | null => document.getElementById(id)?.textContent?.trim() ?? null;

async function moduleBytes(): Promise<ArrayBuffer> {
  const packed = textOf('ashlar-module');
  if (packed !== null) return unpackLzma(bytesOfBase64(packed)).buffer;
  const answer = await fetch(kModuleFile).catch(() => null);
  if (answer === null || !answer.ok) throw new Error(`${kModuleFile}, which belongs beside this page, did not come: take the one file, ${kOneFile}`);
  return answer.arrayBuffer();
}

export async function loadParts(): Promise<Parts> {
  const [worker, template] = await Promise.all(['ashlar-worker', 'ashlar-report'].map((id) => unpack(textOf(id) ?? '')));
  const decode = (bytes: ArrayBuffer): string => new TextDecoder().decode(bytes);
  return { worker: decode(worker), template: decode(template), module: await moduleBytes() };
}
