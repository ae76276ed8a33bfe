// The analyzer's page as tools/web packed it, opened in Chromium from a file or from a host, and what the program says.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { kRoot, programPath } from '../browser/pages';

export const kDist = process.env.ASHLAR_WEB_DIST ?? join(kRoot, 'dist');
export const kOneFile = join(kDist, 'ashlar.html');
export const kExample = join(kRoot, 'docs/examples/training_oom.pickle');
export const kMessage = join(kRoot, 'docs/examples/oom_message.txt');

if (!existsSync(kOneFile)) throw new Error(`there is no ${kOneFile}: run tools/web`);

export interface Visit {
  page: Page;
  requests: string[]; // of a network
  problems: string[];
}

export async function visitPage(browser: Browser, options: BrowserContextOptions & { url?: string } = {}): Promise<Visit> {
  const { url = pathToFileURL(kOneFile).href, ...rest } = options;
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...rest });
  const page = await context.newPage();
  const visit: Visit = { page, requests: [], problems: [] };
  page.on('request', (request) => { if (!/^(file|data|blob):/.test(request.url())) visit.requests.push(request.url()); });
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) visit.problems.push(message.text()); });
  page.on('pageerror', (error) => visit.problems.push(error.message));
  await page.goto(url);
  await page.waitForFunction(() => document.documentElement.dataset.ready === 'all');
  return visit;
}

export async function give(page: Page, files: string | string[] | { name: string; mimeType: string; buffer: Buffer }, kind = 'Files'): Promise<void> {
  await page.getByLabel(kind, { exact: true }).setInputFiles(files);
}

export const textOf = async (page: Page, region: string): Promise<string> =>
  (await page.getByRole('region', { name: region, exact: true }).textContent()) ?? '';

export async function answerOf(page: Page, tab: string, region: string): Promise<string> {
  await page.getByRole('tab', { name: tab, exact: true }).click();
  return textOf(page, region);
}

// What the program prints, run in the folder of the files, so that both name them alike; null: it is not built.
export function program(command: string[], folder: string): string | null {
  const path = programPath();
  return path === null ? null : execFileSync(path, command, { cwd: folder, encoding: 'utf8', maxBuffer: 2 ** 30, stdio: ['ignore', 'pipe', 'pipe'] });
}

export function expectSame(ours: string, theirs: string | null): void {
  if (theirs === null) return;
  if (ours !== theirs) throw new Error(`the page and the program differ:\n${ours.slice(0, 300)}\n---\n${theirs.slice(0, 300)}`);
}

export class Scratch {
  readonly folder = mkdtempSync(join(tmpdir(), 'ashlar_page_'));

  end(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

const kTypes: Record<string, string> = { html: 'text/html', wasm: 'application/wasm' };

// A host: gives the files of a folder, and keeps what it is asked for.
export class Host {
  readonly asked: string[] = [];
  private readonly server: Server;

  constructor(folder: string | null) {
    this.server = createServer((request, answer) => {
      this.asked.push(request.url ?? '');
      const file = folder === null ? '' : join(folder, (request.url ?? '').replace(/\/$/, '/index.html'));
      if (!existsSync(file)) {
        answer.writeHead(404, { 'content-type': 'text/html' }).end('<!doctype html><title>none</title>');
        return;
      }
      answer.writeHead(200, { 'content-type': kTypes[file.split('.').pop()!] ?? 'text/plain' }).end(readFileSync(file));
    });
    this.server.on('upgrade', (request, socket) => { this.asked.push(request.url ?? ''); socket.destroy(); });
  }

  start(): Promise<string> {
    return new Promise((resolve) => this.server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(this.server.address() as AddressInfo).port}`)));
  }

  end(): void {
    this.server.closeAllConnections();
    this.server.close();
  }
}
