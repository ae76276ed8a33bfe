// The bytes of a recording, shared by encoder.h and decoder.cc. Private to the codec; docs/library/recorder.md has the
// tables.
//
//   file    | magic "ASHLARTR" | version | header checksum | chunk | chunk | ... | chunk with the record kEnd |
//   chunk   | magic | payload bytes | number | checksum | payload: records, never cut between two chunks |
//
// All integers are little-endian. A chunk's number is its position in the file, from 0, and is part of its checksum.
// What is relative in a record (addresses, times, sizes) is relative to the record before it in the same chunk; a chunk
// begins with address 0, size 0, time 0, stream 0, no stack, no pool and device 0. So a chunk can be read without the
// ones before it, but for texts, frames and stacks, which are numbered over the whole file in the order of their
// definition.
//
// A chunk may have parts: one for each thread cache (core/thread_caches.h) that served events on its own, and the last
// for what happened while all thread caches stood still. What thread caches do at the same time does not depend on one
// another; between two turns they stood still. So the order of events is that of turns; of one turn the last part's
// come first; and then those of the thread caches, each thread cache's in its order, by time:
//
//   thread cache 1     | turn 4: a b c        | turn 5: d     |
//   thread cache 2     | turn 4: p q                          |      s a b p c q t d
//   last part  | s        turn 5: t                   |
//
// A record begins with one byte. Its low four bits below kOther: an event with that action, whose size and place follow
// in as few bytes as they need (EventBytes). kOther: the high four bits are the RecordKind.
#ifndef ASHLAR_ALLOCATOR_TRACE_CODEC_FORMAT_H_
#define ASHLAR_ALLOCATOR_TRACE_CODEC_FORMAT_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <variant>

#include "absl/strings/string_view.h"
#include "allocator/base/fingerprint.h"
#include "allocator/base/units.h"
#include "allocator/trace/event.h"
#include "allocator/trace/fact.h"

namespace ashlar::trace::codec {

static_assert(std::endian::native == std::endian::little, "the codec writes integers as they lie in memory");

inline constexpr absl::string_view kMagic = "ASHLARTR";
// 2: facts may name a pool, reservations their lane. 3: free blocks have ages (snapshot.h). 4: labels, fx nodes, memory
// of the host (SettingOf). 5: the parts of thread caches (SettingOf), kFreed. 6: who held the blocks (SettingOf). Older
// ones are read too.
inline constexpr std::uint32_t kVersion = 6;
inline constexpr std::uint32_t kOldestVersion = 1;
inline constexpr std::uint32_t kChunkMagic = 0x4b4e4843;  // "CHNK"

struct FileHeader {
  char magic[8];
  std::uint64_t version;
  std::uint64_t checksum;  // of the two before
};
static_assert(sizeof(FileHeader) == 24);

struct ChunkHeader {
  std::uint32_t magic;
  std::uint32_t payload_bytes;
  std::uint64_t number;
  std::uint64_t checksum;  // of the three before and the payload
};
static_assert(sizeof(ChunkHeader) == 24);

inline constexpr unsigned kOther = 0xf;

// Fields in their order; v = LEB128, z = zigzag LEB128, ids are numbers of definitions.
enum class RecordKind : std::uint8_t {
  kTime,     // z microseconds since the last time
  kNoTime,   // the following events have none
  kStream,   // v handle
  kPool,     // v 0: the following events name none; v 1: v first, v second
  kStack,    // v id + 1; 0: none
  kDevice,   // v number
  kText,     // v length, bytes: defines the next text
  kFrame,    // v text of the file, v text of the function, z line: defines the next frame
  kFrames,   // v count, v frames innermost first: defines the next stack
  kMark,     // v text of the stage, v text of the name: an annotation at the last time
  kFact,     // v kind, v number or text; where the kind names a pool also v first, v second, where a range also v size
  kSegment,  // v StateAt, v address, v size, v stream, v flags (1 small, 2 expandable), v pool first, v second, v stack
             // + 1
  kBlock,    // v size, v state, v requested (snapshot.h of a free one) + 1 or 0, v stack + 1: the last segment's next
  kSetting,  // v SettingOf, then as that says
  kEnd,      // v events in all: nothing follows
  kReserved,  // v address, v size, from version 2 on v lane (0: not known, 1: large, 2: small) and, of a known one,
              // v stream, v pool first, v second: a reservation around expandable segments
};

// When a recorded state was: before the first event or after the last.
enum class StateAt : std::uint8_t { kStart, kEnd };

// What a kSetting record is. The first two have v text of the key, v text of the value.
enum class SettingOf : std::uint8_t {
  kAllocator,  // with PyTorch's names
  kRecording,  // the recording's own
  // From version 4 on:
  kLabel,    // v texts of user metadata, internal metadata, compile context: defines the next label
  kLabelOf,  // v label + 1, 0: none: of the following events, until the chunk ends
  kFxNode,   // v frame, v texts of op, name, target, original trace: of the frame defined next
  kHost,     // v 1: what follows is the host's memory, until the chunk ends; 0: it is the device's again
  // From version 5 on:
  kThreadCache,  // v thread cache: its part of the chunk begins, ascending, what is relative begins anew; 0: the last
                 // part, of all
  kTurn,         // v turn: of what follows in this part. 0 as a part begins
  // From version 6 on, who held the live blocks (holders.h):
  kNames,         // v texts of when, bound; v 1: at a peak, 0: at the end; v microseconds, v objects: begins them
  kHolder,        // v texts of kind, name, file, function, mode, container; z line, v nodes: defines the next holder
  kHolderText,    // v text, v 0: a trait, 1: a variable: of the last holder
  kHeldBlock,     // v address, v owner: the next block
  kFurtherHolder  // v holder: of the last block
};

constexpr std::uint64_t SettingKinds(std::uint64_t version) {
  return version < 4 ? 2 : version < 5 ? 6 : version < 6 ? 8 : 13;
}

// An event's code besides the Actions: kFreeRequested and, at once, kFreeCompleted. From version 5 on.
inline constexpr unsigned kFreed = 11;

// An event's record: the byte of the action, with the sign of the move and how the block size is given, a byte with the
// lengths of place and size, then place, size and spare, each in that many bytes.
//   place   |address - the last event's address|, rotated right by 9 bits: blocks lie at multiples of 512
//   size    size_bytes ^ the last event's size_bytes
//   spare   block size - size rounded up to 512; only with kHasBlock
inline constexpr unsigned kMovesDown = 0x10;
inline constexpr unsigned kHasBlock = 0x20;
inline constexpr int kSpareShift = 6;
inline constexpr std::array<std::uint8_t, 4> kSpareBytes = {0, 2, 4, 8};
inline constexpr int kPlaceShift = 9;

constexpr std::uint64_t RoundUpToBlock(std::uint64_t bytes) { return (bytes + 511) & ~std::uint64_t{511}; }
constexpr unsigned BytesOf(std::uint64_t value) {
  return (static_cast<unsigned>(64 - std::countl_zero(value)) + 7) / 8;
}
constexpr std::uint64_t Zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
constexpr std::int64_t Unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

// 64 bits over whole words, the last one filled with zeros. Each step is a bijection of the state and of the word, so
// that any change within one aligned word is always noticed; other changes are missed once in 2^64.
inline std::uint64_t Checksum(const std::array<std::uint64_t, 2>& head, absl::string_view bytes) {
  std::array<Fingerprint, 4> lanes;  // four chains at once: one alone waits for its multiplications
  lanes[0].Add(head[0]);
  lanes[1].Add(head[1]);
  std::size_t at = 0;
  std::array<std::uint64_t, 4> words;
  for (; at + sizeof(words) <= bytes.size(); at += sizeof(words)) {
    std::memcpy(words.data(), bytes.data() + at, sizeof(words));
    for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i].Add(words[i]);
  }
  words = {};
  if (at < bytes.size()) std::memcpy(words.data(), bytes.data() + at, bytes.size() - at);
  Fingerprint all;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    lanes[i].Add(words[i]);
    all.Add(lanes[i].value());
  }
  return all.value();
}

inline FileHeader MakeFileHeader() {
  FileHeader header{};
  std::memcpy(header.magic, kMagic.data(), sizeof(header.magic));
  header.version = kVersion;
  header.checksum = Checksum({0, 0}, {reinterpret_cast<const char*>(&header), 16});
  return header;
}

inline ChunkHeader MakeChunkHeader(std::uint64_t number, absl::string_view payload) {
  ChunkHeader header{kChunkMagic, static_cast<std::uint32_t>(payload.size()), number, 0};
  header.checksum = Checksum({std::uint64_t{header.magic} << 32 | header.payload_bytes, number}, payload);
  return header;
}

// The headers of a recording's file and of its chunks, numbered in the order they are asked for.
class ChunkBytes {
 public:
  static std::string FileHeader() { return AsText(MakeFileHeader()); }
  // Of the next chunk.
  std::string HeaderOf(absl::string_view payload) { return AsText(MakeChunkHeader(next_++, payload)); }

 private:
  template <typename Header>
  static std::string AsText(const Header& header) {
    return {reinterpret_cast<const char*>(&header), sizeof(header)};
  }

  std::uint64_t next_ = 0;
};

// Puts records one after another into memory that has room for them: what an Encoder's chunk and a thread cache's
// journal share. Private to the codec and to allocator/core/journal.h. Not thread-safe.
//
//   class Journal : private RecordWriter { ... at_ = buffer; PutEvent(kOfAlloc, address, size, block_size); ... };
class RecordWriter {
 protected:
  // What an event's record does not say itself. As a chunk, or a part of one, begins.
  struct Context {
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
    Stream stream{};
    std::int64_t time_us = kNoTime;
    std::int64_t last_time_us = 0;  // that differences are from
    StackId stack = kNoStack;
    LabelId label = kNoLabel;
    EventPool pool;
  };

  // A segment's: 9 fields of 10 bytes. An event's with all its context before it is smaller.
  static constexpr std::size_t kMostRecordBytes = 112;

  // `code`: an Action, or kFreed.
  void PutEvent(unsigned code, std::uint64_t address, std::uint64_t requested_bytes, std::uint64_t block_size_bytes) {
    const std::uint64_t move = address - context_.address;
    const bool is_down = static_cast<std::int64_t>(move) < 0;
    const std::uint64_t place = std::rotr(is_down ? 0 - move : move, kPlaceShift);
    const std::uint64_t size = requested_bytes ^ context_.size_bytes;
    const bool has_block = block_size_bytes != 0;
    const std::uint64_t spare = has_block ? block_size_bytes - RoundUpToBlock(requested_bytes) : 0;
    const unsigned spare_code = spare == 0 ? 0 : spare >> 16 == 0 ? 1 : spare >> 32 == 0 ? 2 : 3;
    const unsigned place_bytes = BytesOf(place);
    const unsigned size_bytes = BytesOf(size);
    at_[0] =
        static_cast<char>(code | (is_down ? kMovesDown : 0) | (has_block ? kHasBlock : 0) | spare_code << kSpareShift);
    at_[1] = static_cast<char>(place_bytes | size_bytes << 4);
    at_ += 2;
    // Whole words, of which only the first bytes stay.
    std::memcpy(at_, &place, sizeof(place));
    at_ += place_bytes;
    std::memcpy(at_, &size, sizeof(size));
    at_ += size_bytes;
    std::memcpy(at_, &spare, sizeof(spare));
    at_ += kSpareBytes[spare_code];
    context_.address = address;
    context_.size_bytes = requested_bytes;
  }

  void Put(RecordKind kind) { *at_++ = static_cast<char>(kOther | static_cast<unsigned>(kind) << 4); }
  void PutVarint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) *at_++ = static_cast<char>(value | 0x80);
    *at_++ = static_cast<char>(value);
  }
  // An id that may be none.
  static std::uint64_t PlusOne(StackId stack) { return stack == kNoStack ? 0 : std::uint64_t{stack} + 1; }

  void PutTime(std::int64_t time_us) {
    if (time_us == context_.time_us) return;
    context_.time_us = time_us;
    if (time_us == kNoTime) return Put(RecordKind::kNoTime);
    Put(RecordKind::kTime);
    PutVarint(Zigzag(static_cast<std::int64_t>(static_cast<std::uint64_t>(time_us) -
                                               static_cast<std::uint64_t>(context_.last_time_us))));
    context_.last_time_us = time_us;
  }
  void PutStream(Stream stream) {
    if (stream == context_.stream) return;
    Put(RecordKind::kStream);
    PutVarint(Handle(stream));
    context_.stream = stream;
  }
  void PutPool(const EventPool& pool) {
    if (pool == context_.pool) return;
    Put(RecordKind::kPool);
    PutVarint(pool.has_value() ? 1 : 0);
    if (pool.has_value()) {
      const PoolId id = *pool;
      PutVarint(id.first);
      PutVarint(id.second);
    }
    context_.pool = pool;
  }
  void PutStack(StackId stack) {
    if (stack == context_.stack) return;
    Put(RecordKind::kStack);
    PutVarint(PlusOne(stack));
    context_.stack = stack;
  }

  char* at_ = nullptr;  // where the next record goes
  Context context_;
};

// The bytes that a decoder reads records from. Private to the codec.

// The bytes of one chunk; a read past their end fails and stays failed.
class Bytes {
 public:
  Bytes(absl::string_view all, std::size_t begin, std::size_t size) : begin_(all.data()), at_(all.data() + begin) {
    end_ = at_ + size;
  }
  bool IsEmpty() const { return at_ == end_; }
  bool ok() const { return ok_; }
  void Fail() { ok_ = false; }
  std::uint64_t offset() const { return static_cast<std::uint64_t>(at_ - begin_); }

  unsigned Byte() { return Has(1) ? static_cast<unsigned char>(*at_++) : 0; }
  // The next `size` <= 8 bytes as one integer.
  std::uint64_t Word(unsigned size) {
    std::uint64_t value = 0;
    if (!Has(size)) return 0;
    std::memcpy(&value, at_, size);
    at_ += size;
    return value;
  }
  std::uint64_t Varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const unsigned byte = Byte();
      value |= std::uint64_t{byte & 0x7f} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    ok_ = false;
    return 0;
  }
  absl::string_view Text(std::uint64_t size) {
    if (!Has(size)) return {};
    const absl::string_view text(at_, size);
    at_ += size;
    return text;
  }
  // A varint below `limit`.
  std::uint64_t Below(std::uint64_t limit) {
    const std::uint64_t value = Varint();
    if (value >= limit) ok_ = false;
    return ok_ ? value : 0;
  }

 private:
  bool Has(std::uint64_t size) {
    if (size <= static_cast<std::uint64_t>(end_ - at_)) return ok_;
    ok_ = false;
    at_ = end_;
    return false;
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  bool ok_ = true;
};

// Facts as recordings have them: the number of the kind, one number more, and a pool or a size where the kind has one.

inline constexpr std::uint64_t kFactKinds = std::variant_size_v<AnyFact>;
inline constexpr std::uint64_t kFactKindsOfVersion1 = 3;  // up to LimitSet

struct FactNumbers {
  std::uint64_t kind = 0;
  std::uint64_t number = 0;
  std::optional<PoolId> pool = {};
  std::optional<std::uint64_t> size_bytes = {};  // of the range whose address the number is
  std::optional<absl::string_view> text = {};    // of the fact or the decoder, which own it
};

FactNumbers NumbersOf(const AnyFact& fact);

// Whether facts of the kind name a pool; `kind` is below kFactKinds, here and in FactOf.
bool NamesPool(std::uint64_t kind);

// Whether facts of the kind have a size.
bool NamesSize(std::uint64_t kind);

// Whether facts of the kind have a text in place of their number.
bool NamesText(std::uint64_t kind);

// Any numbers make a fact: bits that no kind knows are left out.
AnyFact FactOf(const FactNumbers& numbers);

}  // namespace ashlar::trace::codec

#endif  // ASHLAR_ALLOCATOR_TRACE_CODEC_FORMAT_H_
