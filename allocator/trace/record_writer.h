// Puts records one after another into memory that has room for them: what an Encoder's chunk and a desk's journal
// share. Private to the codec and to allocator/core/journal.h. Not thread-safe.
//
//   class Journal : private RecordWriter { ... at_ = buffer; PutEvent(kOfAlloc, address, size, block_size); ... };
#ifndef ASHLAR_ALLOCATOR_TRACE_RECORD_WRITER_H_
#define ASHLAR_ALLOCATOR_TRACE_RECORD_WRITER_H_

#include <bit>
#include <cstdint>
#include <cstring>

#include "allocator/base/units.h"
#include "allocator/trace/codec_format.h"
#include "allocator/trace/event.h"

namespace ashlar::trace::codec {

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

}  // namespace ashlar::trace::codec

#endif  // ASHLAR_ALLOCATOR_TRACE_RECORD_WRITER_H_
