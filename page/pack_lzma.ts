// Packs bytes as src/web/lzma.ts unpacks them.
import { execFileSync } from 'node:child_process';

// xz leaves the size in the head open where it reads a pipe.
export function packLzma(bytes: Uint8Array, properties = 'lc=4,pb=0'): Buffer {
  const out = execFileSync('xz', ['--format=lzma', `--lzma1=preset=9e,${properties}`], { input: bytes, maxBuffer: 2 ** 30 });
  out.writeBigUInt64LE(BigInt(bytes.length), 5);
  return out;
}
