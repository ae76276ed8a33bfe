// The files that were given, explained: a worker that reads them, and is asked. Where the memory of the tab ends, a new
// worker takes the last events of them, and fewer again until they fit.
import type { Answer, NamedFile, Order, Settings, Told } from './protocol';

export interface Parts {
  worker: string; // its script
  module: ArrayBuffer;
  template: string; // of the report page
}

export interface Left {
  name: string;
  line: string; // why it was not taken
}

export interface Opened {
  text: string;
  read: string[]; // names
  left: Left[];
  traces: number; // of them: snapshots and traces, which messages are not
  events: number | null; // how many were held of each device, where not all fitted
}

export type Progress = (stage: string, share: number | null) => void;

// Of the memory that a tab has, the last try leaves most.
const kTries: (number | null)[] = [null, 8e6, 3e6, 1e6, 200e3];
// Of inputs below this a page is made along with the answer.
const kPageAtOnce = 48 * 2 ** 20;

export class Refused extends Error {}
export class OutOfMemory extends Error {}
export class Cancelled extends Error {}

// One worker, and the answers that it owes.
class Link {
  private readonly worker: Worker;
  private readonly owed: { resolve(text: string): void; reject(error: Error): void }[] = [];
  private ended: Error | null = null;

  constructor(script: string, private readonly progress: Progress) {
    const url = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }));
    this.worker = new Worker(url);
    URL.revokeObjectURL(url);
    this.worker.onmessage = (event: MessageEvent<Told>) => this.hear(event.data);
    this.worker.onerror = (event) => this.end(new Error(event.message || 'the browser did not start the analyzer'));
  }

  ask(order: Order): Promise<string> {
    if (this.ended !== null) return Promise.reject(this.ended);
    return new Promise((resolve, reject) => {
      this.owed.push({ resolve, reject });
      this.worker.postMessage(order);
    });
  }

  end(error: Error): void {
    this.ended ??= error;
    this.worker.terminate();
    for (const one of this.owed.splice(0)) one.reject(this.ended);
  }

  private hear(told: Told): void {
    if (told.kind === 'stage') this.progress(told.stage, null);
    else if (told.kind === 'bytes') this.progress(`reading ${told.name}`, told.done / told.all);
    else if (told.kind === 'done') this.owed.shift()?.resolve(told.text);
    else if (told.kind === 'refused') this.owed.shift()?.reject(new Refused(told.line));
    else if (told.reason === 'memory') this.end(new OutOfMemory('the memory of this tab has ended: ashlar explain and ashlar report have more'));
    else this.end(new Error(`the analyzer ended, which is a fault of ours: ${told.line}`));
  }
}

export class Run {
  private link: Link | null = null;
  private isCancelled = false;

  constructor(private readonly parts: Parts, private readonly progress: Progress) {}

  // Errors: Refused, where no file can be used or a setting is wrong; OutOfMemory; Cancelled.
  async open(files: NamedFile[], settings: Settings): Promise<Opened> {
    for (const events of kTries) {
      try {
        return await this.openWith(files, settings, events);
      } catch (error) {
        if (!(error instanceof OutOfMemory) || this.isCancelled) throw error;
      }
    }
    throw new OutOfMemory('too large for a browser, even with few of its events: run ashlar explain on it');
  }

  // What follows of the files that were opened.
  async ask(what: Answer, settings: Settings = {}): Promise<string> {
    if (this.link === null) throw new Error('nothing was opened');
    await this.link.ask({ kind: 'set', settings });
    return this.link.ask({ kind: 'answer', what });
  }

  cancel(): void {
    this.isCancelled = true;
    this.link?.end(new Cancelled('cancelled: give the files again'));
  }

  private async openWith(files: NamedFile[], settings: Settings, events: number | null): Promise<Opened> {
    if (this.isCancelled) throw new Cancelled('cancelled');
    const link = new Link(this.parts.worker, this.progress);
    this.link = link;
    this.progress(events === null ? 'starting' : `starting again with the last ${events.toLocaleString('en')} events`, null);
    await link.ask({ kind: 'start', module: this.parts.module, template: this.parts.template });
    const isSmall = files.reduce((sum, { file }) => sum + file.size, 0) < kPageAtOnce;
    await link.ask({ kind: 'set', settings: { ...settings, ...(events === null ? {} : { 'max-events': String(events) }), pictures: isSmall ? '1' : '' } });
    const opened: Opened = { text: '', read: [], left: [], traces: 0, events };
    for (const { name, file } of files) {
      try {
        await link.ask({ kind: 'read', name, file });
        opened.read.push(name);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        opened.left.push({ name, line: error.message });
      }
    }
    if (opened.read.length === 0) throw new Refused(opened.left.map(({ line }) => line).join('\n'));
    opened.traces = Number(await link.ask({ kind: 'answer', what: 'traces' }));
    opened.text = await link.ask({ kind: 'answer', what: 'text' });
    return opened;
  }
}
