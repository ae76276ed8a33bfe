// Zoom, pan and choice of a moment on a curve by wheel, drag, touch and keys. Works in places of the axis.
export interface Window1 {
  from: number;
  to: number;
}

export interface Target {
  whole(): Window1;
  shown(): Window1;
  show(window: Window1): void;
  choose(place: number, how: 'move' | 'jump', clientY?: number): void; // clientY: of a click
  step(moments: number): void;
  mark(left: number, width: number): void; // the part that a drag covers, pixels
  point(event: PointerEvent | null): void; // what lies under the pointer; null: it went, or is at work
}

// Keeps a window inside the whole, and no narrower than two places.
export function clampWindow(window: Window1, whole: Window1): Window1 {
  const all = whole.to - whole.from;
  const width = Math.min(all, Math.max(window.to - window.from, Math.min(2, all)));
  const from = Math.max(whole.from, Math.min(whole.to - width, window.from));
  return { from, to: from + width };
}

export function zoomAt(window: Window1, place: number, factor: number): Window1 {
  return { from: place - (place - window.from) * factor, to: place + (window.to - place) * factor };
}

export function attachInput(over: HTMLElement, target: Target): void {
  const placeAt = (clientX: number): number => {
    const box = over.getBoundingClientRect();
    const { from, to } = target.shown();
    return from + ((clientX - box.left) / box.width) * (to - from);
  };
  const show = (window: Window1): void => target.show(clampWindow(window, target.whole()));
  const isPart = (): boolean => {
    const [shown, whole] = [target.shown(), target.whole()];
    return shown.from > whole.from || shown.to < whole.to;
  };
  const panBy = (share: number): void => {
    const { from, to } = target.shown();
    show({ from: from + share * (to - from), to: to + share * (to - from) });
  };

  // The wheel alone scrolls the page. With Ctrl, which is also how a pinch on a touchpad arrives, or Command it zooms. With Shift or to
  // the side it pans, where a part is shown.
  over.addEventListener('wheel', (event) => {
    const isSideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (event.ctrlKey || event.metaKey)
      show(zoomAt(target.shown(), placeAt(event.clientX), Math.exp(Math.max(-0.5, Math.min(0.5, event.deltaY / 200)))));
    else if (isSideways && isPart()) panBy((event.deltaX || event.deltaY) / 600);
    else return;
    event.preventDefault();
  }, { passive: false });

  const pointers = new Map<number, number>();
  let startX = 0;
  let startWindow: Window1 = target.shown();
  let kind: 'none' | 'select' | 'pan' | 'scrub' | 'pinch' = 'none';
  let pinch = 0;
  over.addEventListener('pointerdown', (event) => {
    target.point(null);
    pointers.set(event.pointerId, event.clientX);
    over.setPointerCapture(event.pointerId);
    startX = event.clientX;
    startWindow = target.shown();
    if (pointers.size === 2) {
      kind = 'pinch';
      const [a, b] = [...pointers.values()];
      pinch = Math.max(10, Math.abs(a - b));
      startX = (a + b) / 2;
    } else if (event.pointerType === 'touch') {
      kind = 'scrub';
    } else {
      kind = event.shiftKey || event.button === 1 ? 'pan' : 'select';
    }
  });
  over.addEventListener('pointermove', (event) => {
    if (!pointers.has(event.pointerId)) {
      if (event.pointerType !== 'touch') target.point(event);
      return;
    }
    pointers.set(event.pointerId, event.clientX);
    const box = over.getBoundingClientRect();
    if (kind === 'select') {
      const [a, b] = [Math.min(startX, event.clientX), Math.max(startX, event.clientX)];
      if (b - a > 4) target.mark(Math.max(0, a - box.left), Math.min(box.width, b - box.left) - Math.max(0, a - box.left));
    } else if (kind === 'pan') {
      const by = ((startX - event.clientX) / box.width) * (startWindow.to - startWindow.from);
      show({ from: startWindow.from + by, to: startWindow.to + by });
    } else if (kind === 'scrub') {
      target.choose(placeAt(event.clientX), 'move');
    } else if (kind === 'pinch' && pointers.size === 2) {
      const [a, b] = [...pointers.values()];
      const middle = startWindow.from + ((startX - box.left) / box.width) * (startWindow.to - startWindow.from);
      const zoomed = zoomAt(startWindow, middle, pinch / Math.max(10, Math.abs(a - b)));
      const by = ((startX - (a + b) / 2) / box.width) * (zoomed.to - zoomed.from);
      show({ from: zoomed.from + by, to: zoomed.to + by });
    }
  });
  const up = (event: PointerEvent): void => {
    if (!pointers.delete(event.pointerId)) return;
    target.mark(0, 0);
    if (event.type === 'pointerup') {
      const moved = Math.abs(event.clientX - startX);
      if (kind === 'select' && moved > 4) {
        const [a, b] = [placeAt(Math.min(startX, event.clientX)), placeAt(Math.max(startX, event.clientX))];
        show({ from: a, to: b });
      } else if (kind !== 'pinch' && moved <= 4) {
        target.choose(placeAt(event.clientX), 'jump', event.clientY);
      }
    }
    if (pointers.size === 0) kind = 'none';
  };
  over.addEventListener('pointerup', up);
  over.addEventListener('pointercancel', up);
  over.addEventListener('pointerleave', () => target.point(null));
  over.addEventListener('dblclick', () => target.show(target.whole()));
}

// Keys of the curve: true where the key was one of them.
export function onCurveKey(event: KeyboardEvent, target: Target, placeOfMoment: () => number): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  const { from, to } = target.shown();
  const show = (window: Window1): void => target.show(clampWindow(window, target.whole()));
  const middle = placeOfMoment() >= from && placeOfMoment() <= to ? placeOfMoment() : (from + to) / 2;
  const width = to - from;
  switch (event.key) {
    case 'ArrowLeft': event.shiftKey ? show({ from: from - width / 8, to: to - width / 8 }) : target.step(-1); return true;
    case 'ArrowRight': event.shiftKey ? show({ from: from + width / 8, to: to + width / 8 }) : target.step(1); return true;
    case 'PageUp': target.step(-100); return true;
    case 'PageDown': target.step(100); return true;
    case 'Home': target.choose(target.whole().from, 'move'); return true;
    case 'End': target.choose(target.whole().to, 'move'); return true;
    case '+': case '=': case 'w': case 'ArrowUp': show(zoomAt({ from, to }, middle, 0.7)); return true;
    case '-': case 's': case 'ArrowDown': show(zoomAt({ from, to }, middle, 1 / 0.7)); return true;
    case 'a': show({ from: from - width / 8, to: to - width / 8 }); return true;
    case 'd': show({ from: from + width / 8, to: to + width / 8 }); return true;
    case '0': case 'Escape': target.show(target.whole()); return true;
    default: return false;
  }
}
