// Writes the records of a recording into chunks (codec_format.h). A chunk of events is handed over when it is full or
// when Seal() asks for it; definitions that its records refer to (texts, frames, stacks) are handed over just before,
// as a chunk of their own, so that a ring may drop old events and keep every definition.
//
//   Encoder encoder(64 * kKiB, [&](ChunkKind, absl::string_view payload) { file.Write(payload); });
//   encoder.Add(event, block_size_bytes, time_us, stack);      // 2 to 6 bytes; allocates nothing
//   encoder.Seal();
//
// Not thread-safe. `output` is called on the thread that fills the chunk.
#ifndef ASHLAR_ALLOCATOR_TRACE_ENCODER_H_
#define ASHLAR_ALLOCATOR_TRACE_ENCODER_H_

#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "allocator/trace/codec_format.h"
#include "allocator/trace/event.h"
#include "allocator/trace/fact.h"
#include "allocator/trace/snapshot.h"
#include "allocator/trace/stack_table.h"

namespace ashlar::trace::codec {

enum class ChunkKind : std::uint8_t { kRecords, kDefinitions };

class Encoder {
 public:
  using Output = std::function<void(ChunkKind kind, absl::string_view payload)>;

  // A chunk of records has at most `chunk_bytes` (1 KiB or more) of payload. If one can, it ends before a free that is
  // requested: there no request is under way.
  Encoder(std::size_t chunk_bytes, Output output);
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  // `event` but for its time, stack and block size, which stand beside it. The stack is one that was defined.
  void Add(const Event& event, std::uint64_t block_size_bytes, std::int64_t time_us, StackId stack) {
    if (at_ > early_end_) [[unlikely]]
      SealBefore(event.action);
    if (event.stream != context_.stream || time_us != context_.time_us || stack != context_.stack ||
        event.pool != context_.pool || event.label != context_.label) [[unlikely]] {
      SetContext(event, time_us, stack);
    }
    PutEvent(event, block_size_bytes);
    ++event_count_;
  }

  void SetDevice(int device);
  // An annotation; `time_us` may be kNoTime.
  void AddMark(absl::string_view stage, absl::string_view name, std::int64_t time_us);
  void AddFact(const AnyFact& fact);
  void AddSegments(StateAt when, absl::Span<const SnapshotSegment> segments);
  void AddReservations(absl::Span<const ReservedRange> reservations);
  // Those that were not defined before; a table only grows.
  void DefineLabels(const LabelTable& labels);
  // Whether what follows is memory of the host.
  void SetHost(bool is_host);
  void AddSetting(SettingOf whose, absl::string_view key, absl::string_view value);
  // Those that were not defined before; a table only grows.
  void DefineStacks(const StackTable& stacks);

  // Hands over what there is.
  void Seal();
  // The last record, and Seal(). `event_count`: of the whole recording.
  void End(std::uint64_t event_count);

  std::uint64_t event_count() const { return event_count_; }

 private:
  // What an event's record does not say itself. As a chunk begins.
  struct Context {
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
    Stream stream{};
    std::int64_t time_us = kNoTime;
    std::int64_t last_time_us = 0;  // that differences are from
    StackId stack = kNoStack;
    LabelId label = kNoLabel;
    std::optional<PoolId> pool;
  };

  // A segment's: 9 fields of 10 bytes. An event's with all its context before it is smaller.
  static constexpr std::size_t kMostRecordBytes = 112;

  void PutEvent(const Event& event, std::uint64_t block_size_bytes) {
    const std::uint64_t move = event.address - context_.address;
    const bool is_down = static_cast<std::int64_t>(move) < 0;
    const std::uint64_t place = std::rotr(is_down ? 0 - move : move, kPlaceShift);
    const std::uint64_t size = event.size_bytes ^ context_.size_bytes;
    const bool has_block = block_size_bytes != 0;
    const std::uint64_t spare = has_block ? block_size_bytes - RoundUpToBlock(event.size_bytes) : 0;
    const unsigned spare_code = spare == 0 ? 0 : spare >> 16 == 0 ? 1 : spare >> 32 == 0 ? 2 : 3;
    const unsigned place_bytes = BytesOf(place);
    const unsigned size_bytes = BytesOf(size);
    at_[0] = static_cast<char>(static_cast<unsigned>(event.action) | (is_down ? kMovesDown : 0) |
                               (has_block ? kHasBlock : 0) | spare_code << kSpareShift);
    at_[1] = static_cast<char>(place_bytes | size_bytes << 4);
    at_ += 2;
    // Whole words, of which only the first bytes stay.
    std::memcpy(at_, &place, sizeof(place));
    at_ += place_bytes;
    std::memcpy(at_, &size, sizeof(size));
    at_ += size_bytes;
    std::memcpy(at_, &spare, sizeof(spare));
    at_ += kSpareBytes[spare_code];
    context_.address = event.address;
    context_.size_bytes = event.size_bytes;
  }

  // These three, like PutVarint, expect that there is room.
  void SetContext(const Event& event, std::int64_t time_us, StackId stack);
  void SetTime(std::int64_t time_us);
  void Put(RecordKind kind) { *at_++ = static_cast<char>(kOther | static_cast<unsigned>(kind) << 4); }
  void PutVarint(std::uint64_t value);
  // A record for which room is made first.
  void Begin(RecordKind kind);
  void BeginChunk();
  void SealBefore(Action action);
  std::uint64_t TextId(absl::string_view text);
  void DefineFxNode(const FxNode& fx);
  void HandOverDefinitions();

  Output output_;
  std::vector<char> buffer_;
  char* begin_ = nullptr;  // where the first record of the chunk goes, behind the one that names the device
  char* at_ = nullptr;
  char* last_begin_ = nullptr;  // a record that begins here or before has room
  char* early_end_ = nullptr;   // behind this the chunk ends as soon as it can end well
  Context context_;
  int device_ = 0;
  bool is_host_ = false;
  std::uint64_t event_count_ = 0;
  std::string definitions_;
  absl::flat_hash_map<std::string, std::uint64_t> text_ids_;
  std::size_t defined_labels_ = 0;
  std::size_t defined_frames_ = 0;
  std::size_t defined_stacks_ = 0;
};

}  // namespace ashlar::trace::codec

#endif  // ASHLAR_ALLOCATOR_TRACE_ENCODER_H_
