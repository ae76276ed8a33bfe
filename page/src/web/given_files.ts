// Files that a reader gave: chosen, dropped with their folders, or pasted.
import type { NamedFile } from './protocol';

const kMostFiles = 4096;

// What a folder has beside its recordings: hidden files, as those of file managers.
const isHidden = (name: string): boolean => name.split('/').some((part) => part.startsWith('.') || part === '__MACOSX');

// Numbers in the names by their value: rank2 before rank10.
export const byName = (a: NamedFile, b: NamedFile): number => a.name.localeCompare(b.name, 'en', { numeric: true });

// Of a folder all that is not hidden, in the order of names; files that were chosen stay in their order.
export function ofInput(files: Iterable<File>): NamedFile[] {
  const all = [...files].map((file) => ({ name: file.webkitRelativePath || file.name, file }));
  const isFolder = all.some(({ file }) => file.webkitRelativePath !== '');
  return isFolder ? all.filter(({ name }) => !isHidden(name)).sort(byName).slice(0, kMostFiles) : all;
}

export const ofText = (text: string): NamedFile[] => [{ name: 'pasted text', file: new Blob([text]) }];

const entriesOf = (folder: FileSystemDirectoryReader): Promise<FileSystemEntry[]> =>
  new Promise((resolve, reject) => folder.readEntries(resolve, reject));
const fileOf = (entry: FileSystemFileEntry): Promise<File> => new Promise((resolve, reject) => entry.file(resolve, reject));

async function addEntry(entry: FileSystemEntry, out: NamedFile[]): Promise<void> {
  const name = entry.fullPath.replace(/^\//, '');
  if (out.length >= kMostFiles) return;
  if (entry.isFile) {
    out.push({ name, file: await fileOf(entry as FileSystemFileEntry) });
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  for (let some = await entriesOf(reader); some.length > 0; some = await entriesOf(reader))
    for (const one of some) if (!isHidden(one.name)) await addEntry(one, out);
}

// The transfer's items are gone after the event: they are taken before anything is waited for.
export async function ofDrop(transfer: DataTransfer): Promise<NamedFile[]> {
  const entries = [...transfer.items].map((item) => (item.kind === 'file' ? item.webkitGetAsEntry() : null));
  const files = [...transfer.files];
  const text = transfer.getData('text/plain');
  if (entries.some((entry) => entry?.isDirectory)) {
    const out: NamedFile[] = [];
    for (const entry of entries) if (entry !== null) await addEntry(entry, out);
    return out.sort(byName);
  }
  if (files.length > 0) return ofInput(files);
  return text.trim() === '' ? [] : ofText(text);
}
