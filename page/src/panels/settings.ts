// The allocator's settings as the file has them.
import type { Input } from '../document/types';
import { h, panel } from '../view/dom';

export function settingsPanel({ settings }: Input): HTMLElement | null {
  if (settings.length === 0) return null;
  return panel('Recorded settings', { id: 'settings' },
    h('table', { class: 'recorded' }, h('caption', { class: 'off-screen' }, 'Recorded settings'),
      h('tbody', {}, ...settings.map(([key, value]) => h('tr', {}, h('th', { scope: 'row' }, key), h('td', {}, value === '' ? 'empty' : value))))));
}
