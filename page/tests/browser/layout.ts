// What a machine sees of a page's layout: text that is cut, that leaves its panel or lies over other text, panels with nothing in
// them, and a page wider than its window. One line a fault; none where the page is well.
import type { Page } from 'playwright-core';
import { settle } from './browser';

// Panels that wait until somebody comes near are laid out and filled.
export async function layOutAll(page: Page): Promise<void> {
  await page.evaluate(async () => {
    for (const element of document.querySelectorAll<HTMLElement>('.panel')) {
      if (getComputedStyle(element).contentVisibility === 'auto') element.style.contentVisibility = 'visible';
      element.scrollIntoView();
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    }
    scrollTo(0, 0);
  });
  await settle(page);
}

export function layoutFaults(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    interface Piece { node: Text; box: DOMRect }
    const kSlack = 1.5; // pixels: glyphs reach over their boxes by parts of one
    const faults: string[] = [];
    const name = (element: Element): string =>
      `${element.tagName.toLowerCase()}${element.id ? `#${element.id}` : ''}${[...element.classList].map((one) => `.${one}`).join('')}`;
    const said = (text: string): string => JSON.stringify(text.trim().replace(/\s+/g, ' ').slice(0, 60));
    const scrolls = (style: CSSStyleDeclaration): boolean => /auto|scroll/.test(style.overflowX) || /auto|scroll/.test(style.overflowY);
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth > clientWidth) faults.push(`the page is ${scrollWidth} wide in a window of ${clientWidth}`);

    // Of a text the part that is seen through all boxes around it that clip; null where none of it is.
    const pieces: Piece[] = [];
    const see = (node: Text): void => {
      const parent = node.parentElement!;
      if (parent.closest('.off-screen, .skip, option, script, style, noscript, svg') !== null || !parent.checkVisibility({ visibilityProperty: true })) return;
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const box of range.getClientRects()) {
        if (box.width < 1 || box.height < 1) continue;
        let [left, top, right, bottom] = [box.left, box.top, box.right, box.bottom];
        for (let around: Element | null = parent; around !== null && around !== document.body; around = around.parentElement) {
          const style = getComputedStyle(around);
          if (style.overflowX === 'visible' && style.overflowY === 'visible') continue;
          const outer = around.getBoundingClientRect();
          const isCut = right > outer.right + kSlack || left < outer.left - kSlack;
          if (isCut && !scrolls(style) && style.textOverflow !== 'ellipsis' && right > outer.left && left < outer.right)
            faults.push(`${said(node.data)} is cut by ${name(around)}`);
          [left, top, right, bottom] = [Math.max(left, outer.left), Math.max(top, outer.top), Math.min(right, outer.right), Math.min(bottom, outer.bottom)];
        }
        if (right - left < 1 || bottom - top < 1) continue;
        pieces.push({ node, box: new DOMRect(left, top, right - left, bottom - top) });
        const panel = parent.closest('.panel')?.getBoundingClientRect();
        if (panel !== undefined && parent.closest('.tip') === null && (right > panel.right + kSlack || left < panel.left - kSlack))
          faults.push(`${said(node.data)} leaves its panel`);
      }
    };
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node !== null; node = walk.nextNode()) if ((node as Text).data.trim() !== '') see(node as Text);

    pieces.sort((a, b) => a.box.top - b.box.top);
    for (let i = 0; i < pieces.length; ++i)
      for (let j = i + 1; j < pieces.length && pieces[j].box.top < pieces[i].box.bottom - 3; ++j) {
        const [a, b] = [pieces[i], pieces[j]];
        if (a.node === b.node || Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left) < 3) continue;
        if ([a, b].some(({ node }) => node.parentElement!.closest('.tip, thead') !== null)) continue; // these stand over others
        faults.push(`${said(a.node.data)} and ${said(b.node.data)} lie over each other`);
      }

    for (const table of document.querySelectorAll('.table-scroll'))
      if (table.scrollWidth > table.clientWidth) faults.push(`${said(table.getAttribute('aria-label') ?? '')} is wider than its box`);
    for (const panel of document.querySelectorAll('.panel'))
      if (panel.checkVisibility() && (panel.textContent ?? '').trim() === '' && panel.querySelector('canvas, svg') === null) faults.push(`${name(panel)} is empty`);
    return [...new Set(faults)];
  });
}
