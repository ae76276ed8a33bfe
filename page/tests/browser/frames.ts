// The work of the main thread a frame, out of Chromium's own trace: all tasks of the page's main thread from the
// commit of one frame to that of the next, in CPU time of the thread.
import type { CDPSession, Page } from 'playwright-core';

interface TraceEvent {
  name: string;
  cat: string;
  ph: string;
  pid: number;
  tid: number;
  ts: number; // microseconds
  dur?: number;
  tdur?: number; // of the thread's CPU
  args?: { name?: string };
}

export interface Frames {
  frames: number;
  medianMs: number;
  p95Ms: number;
  mostMs: number;
  wallMostMs: number;
}

export async function trace(page: Page, work: () => Promise<void>): Promise<Frames> {
  const session: CDPSession = await page.context().newCDPSession(page);
  const events: TraceEvent[] = [];
  session.on('Tracing.dataCollected', ({ value }) => events.push(...(value as unknown as TraceEvent[])));
  const done = new Promise<void>((resolve) => session.once('Tracing.tracingComplete', () => resolve()));
  await session.send('Tracing.start', {
    transferMode: 'ReportEvents',
    traceConfig: { includedCategories: ['toplevel', 'devtools.timeline', 'disabled-by-default-devtools.timeline', '__metadata'] } });
  await work();
  await session.send('Tracing.end');
  await done;
  await session.detach();
  if (process.env.ASHLAR_PAGE_TRACE !== undefined) {
    const { writeFileSync } = await import('node:fs');
    writeFileSync(process.env.ASHLAR_PAGE_TRACE, JSON.stringify({ traceEvents: events }));
  }
  return framesOf(events);
}

export function framesOf(events: TraceEvent[]): Frames {
  // The page's main thread: the one that hands most frames to the compositor.
  const commits = new Map<string, number[]>();
  for (const event of events)
    if (event.name === 'Commit' && event.ph === 'X') {
      const key = `${event.pid} ${event.tid}`;
      const list = commits.get(key);
      if (list === undefined) commits.set(key, [event.ts]);
      else list.push(event.ts);
    }
  const [key, ends] = [...commits].sort((a, b) => b[1].length - a[1].length)[0] ?? ['', []];
  if (ends.length < 2) throw new Error('the trace holds no frames');
  ends.sort((a, b) => a - b);
  const cpu = new Float64Array(ends.length);
  const wall = new Float64Array(ends.length);
  for (const event of events) {
    if (event.name !== 'RunTask' || event.ph !== 'X' || `${event.pid} ${event.tid}` !== key) continue;
    const frame = ends.findIndex((ts) => ts >= event.ts); // the frame that the task works for, or commits
    if (frame < 0) continue;
    cpu[frame] += (event.tdur ?? event.dur ?? 0) / 1000;
    wall[frame] += (event.dur ?? 0) / 1000;
  }
  const full = cpu.slice(1).sort(); // the first has what lay before it
  const at = (share: number): number => full[Math.min(full.length - 1, Math.floor(share * full.length))];
  return {
    frames: full.length, medianMs: round(at(0.5)), p95Ms: round(at(0.95)), mostMs: round(full[full.length - 1]), wallMostMs: round(Math.max(...wall)) };
}

const round = (value: number): number => Math.round(value * 100) / 100;
