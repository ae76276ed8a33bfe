// Makes elements. Text goes in as text only.
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: never) => void)>;
export type Child = Node | string | null | undefined | false;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name.slice(2), value as EventListener);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  append(element, children);
  return element;
}

export function append(parent: Node, children: Child[]): void {
  for (const child of children)
    if (child !== null && child !== undefined && child !== false)
      parent.appendChild(typeof child === 'string' ? document.createTextNode(child) : child);
}

export function replace(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

// Text and attributes that follow the moment are written where they changed, and the text in place: a frame that writes nothing
// costs no style and no layout.
export function write(element: Element, text: string): void {
  const node = element.firstChild;
  if (node instanceof Text && element.childNodes.length === 1) {
    if (node.data !== text) node.data = text;
  } else {
    element.textContent = text;
  }
}

export function setAttribute(element: Element, name: string, value: string): void {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

let serial = 0;
export const newId = (stem: string): string => `${stem}-${++serial}`;

// A panel: a section with a heading, and what stands in it.
export function panel(title: string, attributes: Attributes, ...children: Child[]): HTMLElement {
  const id = newId('heading');
  return h('section', { ...attributes, class: `panel ${String(attributes.class ?? '')}`, 'aria-labelledby': id },
    h('h2', { id }, title), ...children);
}

// Scrolls the page so that what a click was about is in sight, where little of it is.
export function reveal(element: HTMLElement): void {
  const { top, bottom, height } = element.getBoundingClientRect();
  const seen = Math.min(bottom, innerHeight) - Math.max(top, 0);
  if (seen < 0.6 * Math.min(height, innerHeight)) element.scrollIntoView({ block: height < innerHeight ? 'nearest' : 'start' });
}

// A bar that shows a share of a whole; the figure beside it says it in text.
export function bar(share: number, kind = ''): HTMLElement {
  const fill = h('span', { class: `bar-fill ${kind}` });
  fill.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return h('span', { class: 'bar', 'aria-hidden': 'true' }, fill);
}

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h('textarea', { class: 'off-screen' });
    area.value = text;
    document.body.appendChild(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}

// A button that copies a text, and says so.
export function copyButton(textOf: () => string, what: string): HTMLButtonElement {
  const button = h('button', { type: 'button', class: 'quiet', 'aria-label': `Copy ${what}` }, 'Copy');
  const said = h('span', { class: 'off-screen', role: 'status' });
  button.appendChild(said);
  button.addEventListener('click', () => {
    void copyText(textOf()).then((done) => {
      button.firstChild!.textContent = done ? 'Copied' : 'Select and copy';
      said.textContent = done ? 'Copied' : 'Copying is not allowed here';
      setTimeout(() => { button.firstChild!.textContent = 'Copy'; said.textContent = ''; }, 2000);
    });
  });
  return button;
}
