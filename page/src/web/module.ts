// The analyzer as the module of WebAssembly has it (commands/web/web_module.cc), and files as it takes them.

export interface WebModule {
  HEAPU8: Uint8Array;
  noMemory?: boolean; // its memory has ended, and with it the module
  onStage?: (stage: string) => void;
  _malloc(size: number): number;
  _free(at: number): void;
  _ashlar_web_reserve(size: number): number;
  _ashlar_web_set(key: number, value: number): number;
  _ashlar_web_read(name: number, bytes: number, size: number): number;
  _ashlar_web_answer(what: number): number;
  _ashlar_web_said(): number;
  _ashlar_web_said_size(): number;
}

export type LoadModule = (options: {
  wasmBinary: ArrayBuffer | Uint8Array; onStage?: (stage: string) => void; printErr?: (line: string) => void; print?: (line: string) => void;
}) => Promise<WebModule>;

// A size has 32 bits in the module, and what a file becomes must lie beside it.
export const kMostFileBytes = 2 ** 31 - 2 ** 16;

// What was asked cannot be answered: one line, which says how to mend it.
export class Refusal extends Error {}
// There is no room for a file.
export class NoMemory extends Error {}

const sizeText = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(2)} GiB`;

export class Analyzer {
  constructor(readonly module: WebModule) {}

  get heapBytes(): number {
    return this.module.HEAPU8.length;
  }

  set(key: string, value: string): void {
    this.withText(key, (at) => this.withText(value, (of) => this.check(this.module._ashlar_web_set(at, of))));
  }

  // Room in the module for a file of this size, which `read` takes.
  reserve(name: string, size: number): number {
    if (size >= kMostFileBytes)
      throw new Refusal(`${name}: is ${sizeText(size)}, and a browser's analyzer takes files below 2 GiB: run ashlar explain on it`);
    const at = this.module._ashlar_web_reserve(size) >>> 0;
    if (at === 0) throw new NoMemory(`${name}: there is no room for its ${sizeText(size)}`);
    return at;
  }

  read(name: string, at: number, size: number): void {
    this.withText(name, (of) => this.check(this.module._ashlar_web_read(of, at, size)));
  }

  answer(what: string): string {
    this.withText(what, (of) => this.check(this.module._ashlar_web_answer(of)));
    return this.said();
  }

  private said(): string {
    const at = this.module._ashlar_web_said() >>> 0;
    return new TextDecoder().decode(this.module.HEAPU8.subarray(at, at + (this.module._ashlar_web_said_size() >>> 0)));
  }

  private check(status: number): void {
    if (status !== 0) throw new Refusal(this.said());
  }

  private withText(text: string, use: (at: number) => void): void {
    const bytes = new TextEncoder().encode(text.replaceAll('\0', '\ufffd'));
    const at = this.module._malloc(bytes.length + 1) >>> 0;
    if (at === 0) throw new NoMemory('there is no room for a text');
    this.module.HEAPU8.set(bytes, at);
    this.module.HEAPU8[at + bytes.length] = 0;
    try {
      use(at);
    } finally {
      this.module._free(at);
    }
  }
}

// Piece by piece into the module, so that the file is never whole anywhere else.
export async function readFile(analyzer: Analyzer, name: string, file: Blob, tell: (done: number) => void): Promise<void> {
  const at = analyzer.reserve(name, file.size);
  let done = 0;
  for (const reader = file.stream().getReader(); ;) {
    const { value, done: isEnd } = await reader.read();
    if (isEnd) break;
    if (done + value.length > file.size) throw new Refusal(`${name}: grew while it was read: give it again when nothing writes to it`);
    analyzer.module.HEAPU8.set(value, at + done);
    done += value.length;
    tell(done);
  }
  if (done < file.size) throw new Refusal(`${name}: was cut short while it was read: give it again when nothing writes to it`);
  analyzer.read(name, at, done);
}
