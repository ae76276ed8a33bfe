// Pinned memory of the host: an account of its own, of another allocator.
import type { App } from '../app';
import { bytes, count } from '../view/format';
import { h, panel } from '../view/dom';
import { Curve } from './curve';

export function pinnedHostPanel(app: App, inputIndex: number, draw: (curve: Curve) => void): HTMLElement | null {
  const input = app.doc.inputs[inputIndex];
  const figures = input.explanation.pinned_host;
  const index = input.runs.find((run) => app.doc.runs[run].kind === 'host') ?? null;
  if (figures === null && index === null) return null;
  const holder = h('div');
  const out = panel('Pinned host memory', { id: 'pinned-host' },
    figures === null ? null : h('p', {}, `${bytes(figures.held_bytes)} held, ${bytes(figures.in_use_bytes)} in use at the end`,
      figures.peak_held_bytes === null ? '' : `; at most ${bytes(figures.peak_held_bytes)} held`,
      figures.peak_in_use_bytes === null ? '' : `, ${bytes(figures.peak_in_use_bytes)} in use`,
      `; ${count(figures.blocks)} blocks, ${count(figures.events)} events`), holder);
  if (index !== null)
    void app.loadRun(index).then((data) => {
      const curve = new Curve(app, data, inputIndex, { height: 140, isSmall: true });
      holder.appendChild(curve.element);
      draw(curve);
    });
  return out;
}
