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
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "allocator/trace/codec_format.h"
#include "allocator/trace/event.h"
#include "allocator/trace/fact.h"
#include "allocator/trace/holders.h"
#include "allocator/trace/snapshot.h"
#include "allocator/trace/stack_table.h"

namespace ashlar::trace::codec {

enum class ChunkKind : std::uint8_t { kRecords, kDefinitions };

class Encoder : private RecordWriter {
 public:
  using Output = std::function<void(ChunkKind kind, absl::string_view payload)>;
  using BeforeSeal = std::function<void()>;

  // A chunk of records has about `chunk_bytes` (1 KiB or more) of payload, and ends where no request is under way:
  // behind an allocation or its failure, or before a free. One request with very much to tell (16 times that) is cut
  // all the same. `before_seal` is called as a chunk ends, and may add parts to it.
  Encoder(std::size_t chunk_bytes, Output output, BeforeSeal before_seal = {});
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
    PutEvent(static_cast<unsigned>(event.action), event.address, event.size_bytes, block_size_bytes);
    ++event_count_;
    if (at_ > early_end_) [[unlikely]]
      SealAfter(event.action);
  }

  // The records of a thread cache of its own, from 1 on, which join the chunk that ends next: in ascending order of the
  // thread caches.
  void AddPart(std::uint64_t cache, absl::string_view records, std::uint64_t event_count);
  // What thread caches wrote in turns before this one comes before what follows.
  void PutTurn(std::uint64_t turn);

  void SetDevice(int device);
  // An annotation; `time_us` may be kNoTime.
  void AddMark(absl::string_view stage, absl::string_view name, std::int64_t time_us);
  void AddFact(const AnyFact& fact);
  void AddSegments(StateAt when, absl::Span<const SnapshotSegment> segments);
  void AddReservations(absl::Span<const ReservedRange> reservations);
  // Of the snapshot, or of a peak before it.
  void AddHolders(const Holders& holders, bool is_peak);
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
  // Expects that there is room.
  void SetContext(const Event& event, std::int64_t time_us, StackId stack);
  // A record for which room is made first.
  void Begin(RecordKind kind);
  void BeginSetting(SettingOf whose, std::initializer_list<absl::string_view> texts);
  void BeginChunk();
  void SealBefore(Action action);
  void SealAfter(Action action);
  void MakeRoom();
  std::uint64_t TextId(absl::string_view text);
  void DefineFxNode(const FxNode& fx);
  void HandOverDefinitions();

  Output output_;
  BeforeSeal before_seal_;
  std::string parts_;  // of the chunk that ends next
  const std::size_t chunk_bytes_;
  std::vector<char> buffer_;
  char* begin_ = nullptr;       // where the first record of the chunk goes, behind the one that names the device
  char* last_begin_ = nullptr;  // a record that begins here or before has room
  char* early_end_ = nullptr;   // behind this the chunk ends as soon as it can end well
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
