// Which files of those given are taken, under which names and in which order.
import { File as NodeFile } from 'node:buffer';
import { describe, expect, it } from 'vitest';
import { ofDrop, ofInput } from '../../src/web/given_files';

const fileOf = (name: string, path = ''): File => Object.assign(new NodeFile(['x'], name), { webkitRelativePath: path }) as unknown as File;
const names = (files: { name: string }[]): string[] => files.map(({ name }) => name);

describe('chosen', () => {
  it('files stay in their order, also hidden ones', () => {
    expect(names(ofInput([fileOf('b.pickle'), fileOf('a.pickle'), fileOf('.c')]))).toEqual(['b.pickle', 'a.pickle', '.c']);
  });
  it('those of a folder are in the order of their numbers, without what is hidden', () => {
    const files = [fileOf('rank10', 'run/rank10'), fileOf('rank9', 'run/rank9'), fileOf('.DS_Store', 'run/.DS_Store'), fileOf('x', 'run/.git/x')];
    expect(names(ofInput(files))).toEqual(['run/rank9', 'run/rank10']);
  });
});

// A folder as a browser gives it: some entries at a time, an empty list at the end.
function folderOf(name: string, content: object[], path = `/${name}`): object {
  return { isFile: false, isDirectory: true, name, fullPath: path, createReader() {
    const left = [...content];
    return { readEntries: (take: (some: object[]) => void) => take(left.splice(0, 2)) };
  } };
}
const entryOf = (path: string): object => ({
  isFile: true, isDirectory: false, name: path.split('/').pop(), fullPath: path, file: (take: (file: File) => void) => take(fileOf(path)) });
const transferOf = (entries: object[], text = ''): DataTransfer =>
  ({ items: entries.map((entry) => ({ kind: 'file', webkitGetAsEntry: () => entry })), files: [], getData: () => text }) as unknown as DataTransfer;

describe('dropped', () => {
  it('a folder is taken with all below it', async () => {
    const inner = folderOf('node1', [entryOf('/run/node1/rank2'), entryOf('/run/node1/rank11'), entryOf('/run/node1/.x')], '/run/node1');
    const files = await ofDrop(transferOf([folderOf('run', [inner, entryOf('/run/log'), folderOf('.git', [entryOf('/run/.git/y')], '/run/.git')])]));
    expect(names(files)).toEqual(['run/log', 'run/node1/rank2', 'run/node1/rank11']);
  });
  it('a text is taken as a file', async () => {
    const [file] = await ofDrop(transferOf([], 'CUDA out of memory'));
    expect(file.name).toBe('pasted text');
    expect(await file.file.text()).toBe('CUDA out of memory');
    expect(await ofDrop(transferOf([], ' \n'))).toEqual([]);
  });
});
