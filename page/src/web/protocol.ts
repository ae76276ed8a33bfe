// What the page and its worker say to each other. The worker has one analyzer, which reads files and then answers.

export interface NamedFile {
  name: string; // with the folders that it was found in
  file: Blob;
}

// As the program's answers are named (commands/web/web_session.h).
export type Answer = 'text' | 'json' | 'markdown' | 'page' | 'diff' | 'diff-json' | 'sweep' | 'sweep-json' | 'traces';

// As the program's flags are named; an empty text: not given.
export type Settings = Partial<Record<'capacity' | 'device-used' | 'device' | 'conf' | 'compat' | 'max-events' | 'confs' | 'pictures', string>>;

export type Order =
  | { kind: 'start'; module: ArrayBuffer; template: string }
  | { kind: 'set'; settings: Settings }
  | { kind: 'read'; name: string; file: Blob }
  | { kind: 'answer'; what: Answer };

// An order is answered by one of `done`, `refused` and `ended`, in the order in which they came.
export type Told =
  | { kind: 'stage'; stage: string }
  | { kind: 'bytes'; name: string; done: number; all: number } // of a file that is being read
  | { kind: 'done'; text: string }
  | { kind: 'refused'; line: string } // the program's own line
  | { kind: 'ended'; reason: 'memory' | 'failure'; line: string; heapBytes: number }; // nothing more can be asked
