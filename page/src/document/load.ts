// Reads the document out of the page: the index at once, and the blobs of columns when they are asked for.
import { decodeColumn, type Numbers } from './columns';
import type { PageDocument, Run } from './types';

export function readIndex(root: Document): PageDocument {
  const element = root.getElementById('ashlar-document');
  if (element === null) throw new Error('this page holds no document: make one by `ashlar report FILE -o out.html`');
  const index = JSON.parse(element.textContent ?? '') as PageDocument;
  if (index.format !== 'ashlar-page' || index.version !== 1)
    throw new Error(`this page shows version 1 of its document, and this is version ${String(index.version)}`);
  return index;
}

export function bytesOfBase64(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }).fromBase64;
  if (native !== undefined) return native(text);
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < characters.length; ++i) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

export async function unpack(base64: string): Promise<ArrayBuffer> {
  const stream = new Blob([bytesOfBase64(base64)]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).arrayBuffer();
}

// The unpacked blobs of a page, each unpacked once.
export class Blobs {
  private readonly unpacked = new Map<number, Promise<ArrayBuffer>>();

  constructor(private readonly textOf: (blob: number) => string) {}

  static ofPage(root: Document): Blobs {
    return new Blobs((blob) => {
      const element = root.getElementById(`ashlar-blob-${blob}`);
      if (element === null) throw new Error(`this page lacks its blob ${blob}: it was cut off, so write it again`);
      const text = (element.textContent ?? '').trim();
      element.remove(); // its text is not needed again
      return text;
    });
  }

  get(blob: number): Promise<ArrayBuffer> {
    let buffer = this.unpacked.get(blob);
    if (buffer === undefined) {
      buffer = unpack(this.textOf(blob));
      this.unpacked.set(blob, buffer);
    }
    return buffer;
  }

  // The columns of a run whose names pass, in full.
  async columns(run: Run, wants: (name: string) => boolean): Promise<Map<string, Numbers>> {
    const out = new Map<string, Numbers>();
    for (const [name, column] of Object.entries(run.columns))
      if (wants(name)) out.set(name, decodeColumn(column, await this.get(column.blob)));
    return out;
  }
}
