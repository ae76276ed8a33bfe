// Unpacks LZMA as `xz --format=lzma` packs it, with the size in its head. Browsers unpack gzip by themselves, which makes a module
// half as large again; the format is that of the LZMA specification (7-zip.org/sdk.html).
const kHead = 13; // properties, size of the dictionary, size of what was packed
const kOdds = 11; // bits of a probability
const kLimit = 2 ** 24; // below it the range takes one byte more
const kPlaces = 16; // of a position, modulo: 2^pb at most

// Where the probabilities of each decision begin in one array of all.
const kIsMatch = 0;
const kIsRep = kIsMatch + 12 * kPlaces;
const kIsNotFirst = kIsRep + 12;
const kIsNotSecond = kIsNotFirst + 12;
const kIsFourth = kIsNotSecond + 12;
const kIsLong = kIsFourth + 12;
const kSlots = kIsLong + 12 * kPlaces;
const kNear = kSlots + 4 * 64;
const kAlign = kNear + 128;
const kLengths = kAlign + 16;
const kLengthsSize = 2 + 2 * kPlaces * 8 + 256;
const kLiterals = kLengths + 2 * kLengthsSize;

// Reads decisions, each by its probability, which learns from it.
class Decisions {
  private readonly odds: Uint16Array;
  private range = 0xffffffff;
  private code = 0;
  private at = kHead + 1;

  constructor(private readonly bytes: Uint8Array, count: number) {
    this.odds = new Uint16Array(count).fill(1 << (kOdds - 1));
    for (let i = 0; i < 4; ++i) this.code = this.code * 256 + this.next();
  }

  bit(i: number): number {
    const odds = this.odds[i];
    const bound = (this.range >>> kOdds) * odds;
    const isSet = this.code >= bound;
    if (isSet) {
      this.range -= bound;
      this.code -= bound;
      this.odds[i] = odds - (odds >>> 5);
    } else {
      this.range = bound;
      this.odds[i] = odds + ((2048 - odds) >>> 5);
    }
    if (this.range < kLimit) this.refill();
    return isSet ? 1 : 0;
  }

  // The high bit first.
  tree(from: number, depth: number): number {
    let node = 1;
    for (let i = 0; i < depth; ++i) node = 2 * node + this.bit(from + node);
    return node - (1 << depth);
  }

  // The low bit first.
  reversed(from: number, depth: number): number {
    let node = 1;
    let value = 0;
    for (let i = 0; i < depth; ++i) {
      const bit = this.bit(from + node);
      node = 2 * node + bit;
      value |= bit << i;
    }
    return value;
  }

  // Bits of which each value is as likely.
  plain(count: number): number {
    let value = 0;
    for (let i = 0; i < count; ++i) {
      this.range = (this.range - (this.range % 2)) / 2;
      const isSet = this.code >= this.range;
      if (isSet) this.code -= this.range;
      value = 2 * value + (isSet ? 1 : 0);
      if (this.range < kLimit) this.refill();
    }
    return value;
  }

  private refill(): void {
    this.range *= 256;
    this.code = this.code * 256 + this.next();
  }

  private next(): number {
    if (this.at >= this.bytes.length) throw new Error('what was packed is cut short: take the file anew');
    return this.bytes[this.at++];
  }
}

class Unpacker {
  private readonly out: Uint8Array<ArrayBuffer>;
  private readonly literalBits: number; // of the byte before
  private readonly literalPlace: number; // of the position, a mask
  private readonly place: number; // a mask
  private readonly decisions: Decisions;
  private readonly back = [0, 0, 0, 0]; // the last distances, less one
  private done = 0;
  private state = 0; // what the last steps were

  constructor(bytes: Uint8Array) {
    const head = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    if (bytes.length < kHead + 5 || bytes[0] >= 9 * 5 * 5 || head.getUint32(9, true) !== 0 || bytes[kHead] !== 0)
      throw new Error('this was not packed by LZMA with a size below 4 GiB');
    this.literalBits = bytes[0] % 9;
    this.literalPlace = (1 << (Math.floor(bytes[0] / 9) % 5)) - 1;
    this.place = (1 << Math.floor(bytes[0] / 45)) - 1;
    this.out = new Uint8Array(head.getUint32(5, true));
    this.decisions = new Decisions(bytes, kLiterals + (0x300 << this.literalBits) * (this.literalPlace + 1));
  }

  run(): Uint8Array<ArrayBuffer> {
    while (this.done < this.out.length) {
      const place = this.done & this.place;
      if (this.decisions.bit(kIsMatch + this.state * kPlaces + place) === 0) this.literal();
      else if (this.decisions.bit(kIsRep + this.state) === 0) this.match(place);
      else this.again(place);
    }
    return this.out;
  }

  private literal(): void {
    const { out, done } = this;
    const before = done === 0 ? 0 : out[done - 1];
    const from = kLiterals + 0x300 * (((done & this.literalPlace) << this.literalBits) + (before >> (8 - this.literalBits)));
    let node = 1;
    if (this.state >= 7) // after a copy: beside the byte that would have come next of it
      for (let copied = out[done - this.back[0] - 1], isSame = true; isSame && node < 256; copied <<= 1) {
        const likely = (copied >> 7) & 1;
        const bit = this.decisions.bit(from + ((1 + likely) << 8) + node);
        node = 2 * node + bit;
        isSame = bit === likely;
      }
    while (node < 256) node = 2 * node + this.decisions.bit(from + node);
    out[this.done++] = node;
    this.state = this.state < 4 ? 0 : this.state < 10 ? this.state - 3 : this.state - 6;
  }

  private match(place: number): void {
    const { back } = this;
    const length = this.length(kLengths, place);
    back.copyWithin(1, 0, 3);
    back[0] = this.distance(length);
    this.state = this.state < 7 ? 7 : 10;
    this.copy(length + 2);
  }

  // One of the last four distances once more.
  private again(place: number): void {
    const { back, decisions, state } = this;
    if (decisions.bit(kIsNotFirst + state) === 0) {
      if (decisions.bit(kIsLong + state * kPlaces + place) === 0) {
        this.state = state < 7 ? 9 : 11;
        this.copy(1);
        return;
      }
    } else {
      const which = decisions.bit(kIsNotSecond + state) === 0 ? 1 : 2 + decisions.bit(kIsFourth + state);
      const distance = back[which];
      back.copyWithin(1, 0, which);
      back[0] = distance;
    }
    const length = this.length(kLengths + kLengthsSize, place);
    this.state = state < 7 ? 8 : 11;
    this.copy(length + 2);
  }

  private length(from: number, place: number): number {
    const { decisions } = this;
    if (decisions.bit(from) === 0) return decisions.tree(from + 2 + place * 8, 3);
    if (decisions.bit(from + 1) === 0) return 8 + decisions.tree(from + 2 + (kPlaces + place) * 8, 3);
    return 16 + decisions.tree(from + 2 + 2 * kPlaces * 8, 8);
  }

  private distance(length: number): number {
    const { decisions } = this;
    const slot = decisions.tree(kSlots + Math.min(length, 3) * 64, 6);
    if (slot < 4) return slot;
    const bits = (slot >> 1) - 1;
    const high = (2 + (slot & 1)) * 2 ** bits;
    if (slot < 14) return high + decisions.reversed(kNear + high - slot, bits);
    return high + decisions.plain(bits - 4) * 16 + decisions.reversed(kAlign, 4);
  }

  private copy(length: number): void {
    const { out } = this;
    const from = this.done - this.back[0] - 1;
    if (from < 0 || this.done + length > out.length) throw new Error('what was packed is damaged: take the file anew');
    for (let i = 0; i < length; ++i) out[this.done + i] = out[from + i];
    this.done += length;
  }
}

export const unpackLzma = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => new Unpacker(bytes).run();
