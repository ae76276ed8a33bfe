// Answers as files, and the report page in a frame of its own.
import { h, replace } from '../view/dom';

function urlOf(text: string, type: string): string {
  return URL.createObjectURL(new Blob([text], { type }));
}

export function saveText(name: string, text: string): void {
  const link = h('a', { href: urlOf(text, 'text/plain;charset=utf-8'), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

// The frame has no access to this page, and the same policy as it: nothing is asked of a network.
export function showReport(panel: HTMLElement, html: string): void {
  const url = urlOf(html, 'text/html;charset=utf-8');
  replace(panel,
    h('div', { class: 'toolbar' },
      h('a', { href: url, target: '_blank', rel: 'noopener' }, 'Open in a tab of its own'),
      h('a', { href: url, download: 'report.html' }, 'Save as a file')),
    h('iframe', { class: 'report', src: url, title: 'The report page', sandbox: 'allow-scripts allow-popups' }));
}
