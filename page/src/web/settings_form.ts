// What the answer is asked for: the flags of `ashlar explain` that change it.
import { h } from '../view/dom';
import type { Settings } from './protocol';

const kFields: { key: keyof Settings; label: string; hint: string }[] = [
  { key: 'capacity', label: "The GPU's memory", hint: '16GiB' },
  { key: 'device-used', label: 'In use by all processes, as nvidia-smi shows it', hint: '14.2GiB' },
  { key: 'device', label: 'Which GPU of a snapshot', hint: '0' },
  { key: 'conf', label: 'PYTORCH_CUDA_ALLOC_CONF of a request trace', hint: 'expandable_segments:True' },
  { key: 'compat', label: 'Rules of which PyTorch', hint: 'torch-2.10' },
];

export class SettingsForm {
  readonly element: HTMLFormElement;
  private readonly inputs = new Map<keyof Settings, HTMLInputElement>();

  constructor(onAsk: () => void) {
    const labels = kFields.map(({ key, label, hint }) => {
      const input = h('input', { type: 'text', placeholder: hint, autocomplete: 'off', spellcheck: 'false', name: key });
      this.inputs.set(key, input);
      return h('label', {}, label, input);
    });
    this.element = h('form', { onsubmit: (event: Event) => { event.preventDefault(); onAsk(); } },
      h('div', { class: 'settings-form' }, ...labels),
      h('button', { type: 'submit' }, 'Explain again'));
  }

  get settings(): Settings {
    return Object.fromEntries([...this.inputs].map(([key, input]) => [key, input.value.trim()]));
  }
}
