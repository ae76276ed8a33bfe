// Which blocks the view marks: those of a cause, of a row of a table, or behind a pin. Null: none, and no block fades.
import type { App, LiveRun } from '../app';
import { groupLabel, groupsOf, partLabel } from '../model/holders';
import { pinLabel } from './pins';

export function marking(app: App, run: LiveRun, phase: (block: number) => string | null): ((block: number) => boolean) | null {
  const { view } = app;
  const input = app.doc.inputs[run.data.run.input];
  const { blocks } = run.memory;
  const cause = view.cause !== null && run.data.run.kind === 'observed' ? input.causes[view.cause] : undefined;
  if (cause !== undefined && cause.blocks.length > 0) {
    const marked = new Set(cause.blocks);
    return (block) => marked.has(block);
  }
  if (cause !== undefined && cause.stacks.length > 0) {
    const marked = new Set(cause.stacks);
    return (block) => marked.has(blocks.stack[block]);
  }
  if (view.stack !== null) {
    const by = view.group ?? groupsOf(run.data, input)[0];
    const label = groupLabel(blocks, run.data, input, by, phase);
    return (block) => label(block) === view.stack || (by === 'line' && partLabel(blocks, input, block) === view.stack);
  }
  if (view.pin !== null) return (block) => pinLabel(app, run, block) === view.pin;
  return null;
}
