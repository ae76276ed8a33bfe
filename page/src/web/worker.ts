// The worker: one analyzer, orders one after another. It knows of no network, and ends with its page.
import { Analyzer, NoMemory, readFile, Refusal, type LoadModule } from './module';
import type { Order, Told } from './protocol';

declare const Ashlar: LoadModule; // of the module's own script, which stands before this one

const tell = (told: Told): void => (self as unknown as { postMessage(told: Told): void }).postMessage(told);
const kBytesBetween = 8 * 2 ** 20;

let analyzer: Analyzer | null = null;
let lastLine = ''; // that the module wrote before it ended

async function obey(order: Order): Promise<string> {
  if (order.kind === 'start') {
    analyzer = new Analyzer(await Ashlar({
      wasmBinary: order.module, onStage: (stage) => tell({ kind: 'stage', stage }), printErr: (line) => { lastLine = line; } }));
    analyzer.set('template', order.template);
    return '';
  }
  if (analyzer === null) throw new Error('the analyzer has not been started');
  if (order.kind === 'answer') return analyzer.answer(order.what);
  if (order.kind === 'set') {
    for (const [key, value] of Object.entries(order.settings)) analyzer.set(key, value);
    return '';
  }
  let told = 0;
  await readFile(analyzer, order.name, order.file, (done) => {
    if (done - told < kBytesBetween && done < order.file.size) return;
    told = done;
    tell({ kind: 'bytes', name: order.name, done, all: order.file.size });
  });
  return '';
}

function fail(error: unknown): void {
  const heapBytes = analyzer?.heapBytes ?? 0;
  const line = error instanceof Error ? error.message : String(error);
  if (error instanceof Refusal) tell({ kind: 'refused', line });
  else if (error instanceof NoMemory || analyzer?.module.noMemory) tell({ kind: 'ended', reason: 'memory', line, heapBytes });
  else tell({ kind: 'ended', reason: 'failure', line: lastLine || line, heapBytes });
}

let queue = Promise.resolve();
self.onmessage = (event: MessageEvent<Order>): void => {
  queue = queue.then(() => obey(event.data)).then((text) => tell({ kind: 'done', text }), fail);
};
