// Drives Firefox by its own protocol, Marionette: JSON over a socket, each message behind its length.
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const kFirefox = process.env.ASHLAR_FIREFOX ?? '/usr/bin/firefox-esr';
export const hasFirefox = (): boolean => existsSync(kFirefox);
const kElement = 'element-6066-11e4-a52e-4f735466cecf'; // the key of an element's id in WebDriver

const freePort = (): Promise<number> => new Promise((resolve) => {
  const server = createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address() as AddressInfo;
    server.close(() => resolve(port));
  });
});

async function connected(port: number): Promise<Socket> {
  for (let tries = 0; tries < 300; ++tries) {
    const socket = await new Promise<Socket | null>((resolve) => {
      const one = connect(port, '127.0.0.1', () => resolve(one)).on('error', () => resolve(null));
    });
    if (socket !== null) return socket;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('Firefox did not open its port for Marionette');
}

export class Firefox {
  private received = Buffer.alloc(0);
  private serial = 0;
  private readonly owed = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();

  private constructor(private readonly process: ChildProcess, private readonly socket: Socket, private readonly profile: string) {
    socket.on('data', (part) => {
      this.received = Buffer.concat([this.received, part]);
      for (let message = this.take(); message !== null; message = this.take()) this.hear(message);
    });
  }

  static async launch(): Promise<Firefox> {
    const profile = mkdtempSync(join(tmpdir(), 'ashlar_firefox_'));
    const port = await freePort();
    writeFileSync(join(profile, 'user.js'), `user_pref('marionette.port', ${port});\nuser_pref('app.update.enabled', false);\nuser_pref('datareporting.policy.dataSubmissionEnabled', false);\n`);
    const process = spawn(kFirefox, ['--headless', '--marionette', '--no-remote', '--profile', profile], { stdio: 'ignore' });
    const firefox = new Firefox(process, await connected(port), profile);
    await firefox.ask('WebDriver:NewSession', {});
    await firefox.ask('WebDriver:SetTimeouts', { script: 600000, pageLoad: 60000, implicit: 60000 });
    return firefox;
  }

  goto(url: string): Promise<unknown> {
    return this.ask('WebDriver:Navigate', { url });
  }

  async give(selector: string, file: string): Promise<void> {
    await this.ask('WebDriver:ElementSendKeys', { id: await this.find(selector), text: file });
  }

  async click(selector: string): Promise<void> {
    await this.ask('WebDriver:ElementClick', { id: await this.find(selector) });
  }

  // The text of the first element that there is, or will be within a minute.
  async textOf(selector: string): Promise<string> {
    await this.find(selector);
    return this.run(`return document.querySelector(${JSON.stringify(selector)}).textContent`);
  }

  async run<T>(script: string): Promise<T> {
    return ((await this.ask('WebDriver:ExecuteScript', { script, args: [] })) as { value: T }).value;
  }

  async end(): Promise<void> {
    const isOver = new Promise((resolve) => this.process.once('exit', resolve));
    void this.ask('Marionette:Quit', { flags: ['eForceQuit'] }).catch(() => undefined);
    await Promise.race([isOver, new Promise((resolve) => setTimeout(resolve, 10000))]);
    this.process.kill('SIGKILL');
    this.socket.destroy();
    rmSync(this.profile, { recursive: true, force: true });
  }

  private async find(selector: string): Promise<string> {
    const { value } = (await this.ask('WebDriver:FindElement', { using: 'css selector', value: selector })) as { value: Record<string, string> };
    return value[kElement];
  }

  private ask(command: string, parameters: object): Promise<unknown> {
    const id = ++this.serial;
    const text = JSON.stringify([0, id, command, parameters]);
    this.socket.write(`${Buffer.byteLength(text)}:${text}`);
    return new Promise((resolve, reject) => this.owed.set(id, { resolve, reject }));
  }

  private take(): unknown[] | null {
    const colon = this.received.indexOf(':');
    if (colon < 0) return null;
    const end = colon + 1 + Number(this.received.subarray(0, colon).toString());
    if (this.received.length < end) return null;
    const message = JSON.parse(this.received.subarray(colon + 1, end).toString()) as unknown;
    this.received = this.received.subarray(end);
    return Array.isArray(message) ? message : []; // the first one is a greeting
  }

  private hear([, id, error, result]: unknown[]): void {
    const one = this.owed.get(id as number);
    this.owed.delete(id as number);
    if (error === null) one?.resolve(result);
    else one?.reject(new Error((error as { message: string } | undefined)?.message ?? 'Firefox refused'));
  }
}
