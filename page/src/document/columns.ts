// Decodes a column: value i is base + scale * raw[i], the raw ones summed up first where they are differences.
import type { Column, ColumnType } from './types';

export type Numbers = Float64Array | Int32Array | Uint32Array | Int16Array | Uint16Array | Int8Array | Uint8Array;

const arrays = {
  u8: Uint8Array, i8: Int8Array, u16: Uint16Array, i16: Int16Array, u32: Uint32Array, i32: Int32Array, f64: Float64Array };

function rawOf(type: ColumnType, buffer: ArrayBuffer, offset: number, count: number): Numbers {
  return new arrays[type](buffer, offset, count);
}

export function decodeColumn(column: Column, buffer: ArrayBuffer): Numbers {
  const { type, count, base, scale, delta } = column;
  const raw = rawOf(type, buffer, column.offset, count);
  if (!delta && base === 0 && scale === 1) return raw;
  if (!delta) {
    const out = new Float64Array(count);
    for (let i = 0; i < count; ++i) out[i] = base + scale * raw[i];
    return out;
  }
  const out = new Float64Array(count);
  for (let i = 0, sum = 0; i < count; ++i) out[i] = base + scale * (sum += raw[i]);
  return out;
}

export const asFloats = (numbers: Numbers): Float64Array =>
  numbers instanceof Float64Array ? numbers : Float64Array.from(numbers);

export const asInts = (numbers: Numbers): Int32Array => (numbers instanceof Int32Array ? numbers : Int32Array.from(numbers));
