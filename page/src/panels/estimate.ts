// What a model's run takes: its parts phase by phase, and whether the card is enough.
import type { Estimate, Phase } from '../document/answers/estimate';
import { bytes, count } from '../view/format';
import { h, panel } from '../view/dom';
import { stackedAreas } from './stacked_areas';

const kParts: [string, string][] = [
  ['weights_bytes', 'weights'], ['optimizer_bytes', 'optimizer'], ['gradients_bytes', 'gradients'],
  ['saved_activations_bytes', 'saved activations'], ['temporaries_bytes', 'temporaries'], ['batch_bytes', 'batch'],
  ['libraries_bytes', 'libraries'], ['rounding_and_cache_bytes', 'rounding and cache'], ['driver_bytes', 'driver'],
  ['context_bytes', 'CUDA context']];

const placeOf = (phase: Phase): string => `${phase.step > 0 ? `${phase.step}: ` : ''}${phase.phase}`;

export function estimatePanel(estimate: Estimate): HTMLElement {
  const side = estimate.ascending ?? estimate.descending;
  const title = `Estimate of ${estimate.model.architecture ?? estimate.model.family}`;
  if (side === null)
    return panel(title, { id: 'estimate' }, ...estimate.notes.map((note) => h('p', {}, note.message)));
  const { name, capacity_bytes: capacity } = estimate.device;
  const areas = kParts
    .map(([key, part]) => ({ name: part, values: side.phases.map((phase) => Number((phase as Record<string, unknown>)[key] ?? 0)) }))
    .filter((area) => area.values.some((value) => value > 0));
  const parts = kParts.flatMap(([key, part]) => ((side.parts as Record<string, number>)[key] ?? 0) > 0
    ? [h('tr', {}, h('th', { scope: 'row' }, part), h('td', { class: 'number' }, bytes((side.parts as Record<string, number>)[key])))] : []);
  return panel(title, { id: 'estimate' },
    h('p', {}, h('strong', {}, `${bytes(side.device_bytes)} of the device`), ` for ${count(estimate.model.parameters)} parameters`,
      name === null ? '' : `, on ${name}`, capacity === null ? '' : `: ${side.fits ? 'fits' : 'does not fit'} in ${bytes(capacity)}`),
    estimate.interval === null ? null
      : h('p', { class: 'faint' }, `from ${bytes(estimate.interval.least_bytes)} to ${bytes(estimate.interval.most_bytes)}: ${estimate.interval.reason}`),
    side.phases.length === 0 ? null
      : stackedAreas('Parts by phase', side.phases.map(placeOf), areas, capacity === null ? null : { name: 'capacity', bytes: capacity }),
    h('details', { open: true }, h('summary', {}, 'Parts at the peak'),
      h('table', { class: 'figures' }, h('caption', { class: 'off-screen' }, 'Parts at the peak'), h('tbody', {}, ...parts))));
}
