// Figures as the program's texts have them.
const kUnits: [string, number][] = [['TiB', 2 ** 40], ['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]];

export function bytes(value: number): string {
  if (value < 0) return `-${bytes(-value)}`;
  for (const [name, unit] of kUnits) if (value >= unit) return `${(value / unit).toFixed(2)} ${name}`;
  return `${value} B`;
}

export const bytesOrUnknown = (value: number | null): string => (value === null ? 'not in this trace' : bytes(value));

export const signedBytes = (value: number): string => (value > 0 ? `+${bytes(value)}` : bytes(value));

export const count = (value: number): string => String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ',');

export const plural = (value: number, one: string, many = `${one}s`): string => `${count(value)} ${value === 1 ? one : many}`;

export const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;

export const address = (value: number): string => `0x${value.toString(16)}`;

export function duration(us: number): string {
  if (us < 1000) return `${us.toFixed(0)} µs`;
  if (us < 1e6) return `${(us / 1e3).toFixed(2)} ms`;
  if (us < 60e6) return `${(us / 1e6).toFixed(3)} s`;
  return `${Math.floor(us / 60e6)} min ${((us % 60e6) / 1e6).toFixed(1)} s`;
}

// Ticks of an axis of bytes: 1, 2 or 4 of a power of two apart.
export function byteTicks(most: number, wanted: number): number[] {
  let step = 1;
  while (most / step > wanted) step *= 2;
  const ticks = [];
  for (let at = 0; at <= most; at += step) ticks.push(at);
  return ticks;
}

export function shortBytes(value: number): string {
  for (const [name, unit] of kUnits)
    if (value >= unit) return `${String(Math.round((value / unit) * 100) / 100)} ${name}`;
  return `${value} B`;
}
