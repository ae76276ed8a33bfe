// A table that sorts by its heads, finds by text, copies as tab-separated text, and shows so many rows.
import { copyButton, h, replace, type Child } from '../view/dom';

export interface ColumnOf<Row> {
  name: string;
  text: (row: Row) => string;
  value?: (row: Row) => number; // sorts by it, and stands to the right
  cell?: (row: Row) => Child;
}

const kMostRows = 150; // unless told otherwise

export class Table<Row> {
  readonly element: HTMLElement;
  private rows: Row[] = [];
  private sortBy: number | null = null;
  private isDown = true;
  private readonly body = h('tbody');
  private readonly said = h('p', { class: 'faint', role: 'status' });
  private readonly heads: HTMLTableCellElement[];
  private readonly find: HTMLInputElement | null;

  constructor(caption: string, private readonly columns: ColumnOf<Row>[],
    private readonly options: { find?: (text: string) => void; most?: number; first?: number; onRow?: (row: Row) => void; isChosen?: (row: Row) => boolean } = {}) {
    this.heads = columns.map((column, i) =>
      h('th', { scope: 'col', class: column.value === undefined ? null : 'number' },
        h('button', { type: 'button', class: 'sort', onclick: () => this.sort(i) }, column.name)));
    this.find = options.find === undefined ? null
      : h('input', { type: 'search', placeholder: 'Search', 'aria-label': `Search: ${caption}` });
    this.find?.addEventListener('input', () => {
      options.find?.(this.find!.value);
      this.draw();
    });
    this.element = h('div', { class: 'table' },
      h('div', { class: 'row' }, this.find, copyButton(() => this.asText(), `the table: ${caption}`)),
      h('div', { class: 'table-scroll', tabindex: 0, role: 'region', 'aria-label': `Table: ${caption}` },
        h('table', { class: 'stacks-up' }, h('caption', { class: 'off-screen' }, caption), h('thead', {}, h('tr', {}, ...this.heads)), this.body)),
      this.said);
  }

  set(rows: Row[], search?: string): void {
    this.rows = rows;
    if (this.find !== null && search !== undefined && document.activeElement !== this.find) this.find.value = search;
    this.draw();
  }

  private sort(column: number): void {
    if (this.sortBy === column) this.isDown = !this.isDown;
    else {
      this.sortBy = column;
      this.isDown = this.columns[column].value !== undefined;
    }
    this.draw();
  }

  private chosen(): Row[] {
    const wanted = (this.find?.value ?? '').toLowerCase();
    let rows = this.rows;
    if (wanted !== '') rows = rows.filter((row) => this.columns.some((column) => column.text(row).toLowerCase().includes(wanted)));
    if (this.sortBy !== null) {
      const { value, text } = this.columns[this.sortBy];
      const sign = this.isDown ? -1 : 1;
      rows = [...rows].sort((a, b) => sign * (value === undefined ? text(a).localeCompare(text(b), 'en') : value(a) - value(b)));
    }
    return rows;
  }

  private asText(): string {
    const line = (cells: string[]): string => cells.join('\t');
    return [line(this.columns.map((column) => column.name)),
      ...this.chosen().map((row) => line(this.columns.map((column) => String(column.value?.(row) ?? column.text(row)))))].join('\n');
  }

  private draw(): void {
    this.heads.forEach((head, i) => {
      if (this.sortBy === i) head.setAttribute('aria-sort', this.isDown ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    });
    const rows = this.chosen();
    const most = this.options.most ?? kMostRows;
    replace(this.body, ...rows.slice(0, most).map((row) => this.rowOf(row)));
    const left = rows.length - most;
    this.said.textContent = rows.length === 0 ? 'nothing matches' : left > 0 ? `${left} rows more: search, or copy the table` : '';
  }

  private rowOf(row: Row): HTMLTableRowElement {
    const { onRow, isChosen } = this.options;
    return h('tr', { class: isChosen?.(row) === true ? 'chosen' : null }, ...this.columns.map((column, i) => {
      const content = column.cell?.(row) ?? column.text(row);
      const isAction = onRow !== undefined && i === this.columns.length - 1;
      const place = i === (this.options.first ?? this.columns.length - 1) ? 'first' : '';
      return h('td', { class: `${column.value === undefined ? '' : 'number'} ${place}`.trim() || null, 'data-label': place === '' ? column.name : null },
        isAction ? h('button', {
          type: 'button', class: 'link', 'aria-pressed': isChosen === undefined ? null : String(isChosen(row)), onclick: () => onRow(row) }, content)
          : content);
    }));
  }
}
