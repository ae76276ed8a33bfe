// Reads a recording, chunk by chunk. Private to the codec.
//
//   absl::StatusOr<Snapshot> recording = Decoder(bytes, limits).Run();        // all of it
//   Decoder growing({}, {}); growing.ReadWhole(bytes); growing.TakeEvents();  // as far as it is written
//
// Not thread-safe.
#ifndef ASHLAR_ALLOCATOR_TRACE_DECODER_H_
#define ASHLAR_ALLOCATOR_TRACE_DECODER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/trace/codec.h"
#include "allocator/trace/codec_format.h"
#include "allocator/trace/codec_settings.h"
#include "allocator/trace/desk_parts.h"
#include "allocator/trace/dropped_events.h"
#include "allocator/trace/record_bytes.h"
#include "allocator/trace/snapshot.h"

namespace ashlar::trace::codec {

class Decoder {
 public:
  // `keeps_state`: the state that dropped events lead to is worked out, should the recording end without its own.
  Decoder(absl::string_view bytes, const DecodeLimits& limits, bool keeps_state = false)
      : bytes_(bytes), limits_(limits), dropped_(limits.max_events, keeps_state) {}

  absl::StatusOr<Snapshot> Run();
  // What was read is no answer: it needs the state that dropped events lead to.
  bool lacks_state() const { return lacks_state_; }

  // --- of a recording that grows: the bytes of the next turn stand behind those of the last ---
  absl::StatusOr<std::size_t> ReadWhole(absl::string_view bytes);
  std::vector<EventList> TakeEvents();
  bool is_ended() const { return is_ended_; }
  const std::vector<SnapshotSegment>& start() const { return start_; }
  const RecordedHead& head() const { return head_; }

 private:
  absl::Status ReadFileHeader();
  bool IsNextWhole() const;
  std::string ReadChunk();
  void GiveBack(bool all);

  // Records: decoder_records.cc.
  std::string ReadRecords(absl::string_view payload);
  void BeginPart();
  void ReadEvent(unsigned first, std::uint64_t offset, Bytes& in);
  void TakeEvent(Bytes& in);
  bool ReadOther(RecordKind kind, Bytes& in);
  bool ReadReservation(Bytes& in);
  StackId ReadStack(Bytes& in);
  absl::string_view ReadText(Bytes& in);
  bool ReadFrame(Bytes& in);
  bool ReadFrames(Bytes& in);
  bool ReadMark(Bytes& in);
  bool ReadFact(Bytes& in);
  bool ReadSegment(Bytes& in);
  bool ReadBlock(Bytes& in);
  bool ReadSetting(Bytes& in);
  bool ReadExtra(SettingOf kind, Bytes& in);
  bool ReadDesk(Bytes& in);
  bool ReadTurn(Bytes& in);
  bool ReadLabel(Bytes& in);
  bool ReadFxNode(Bytes& in);

  std::vector<Event>& Trace();
  std::uint64_t EventCount() const;
  void AddNote(absl::string_view name, std::string message, std::uint64_t count);
  absl::StatusOr<Snapshot> Finish(const std::string& damage);
  void DropOldest(bool is_end);
  absl::Status SetSegments(bool is_damaged);
  absl::Status WorkOutSegments();
  void FillStacks();

  absl::string_view bytes_;
  DecodeLimits limits_;
  std::size_t at_ = 0;
  std::size_t given_back_ = 0;  // bytes
  bool has_header_ = false;
  std::uint64_t taken_events_ = 0;
  std::uint64_t version_ = kVersion;
  std::uint64_t next_chunk_ = 0;
  bool is_ended_ = false;
  std::uint64_t last_time_us_ = 0;
  Event event_;  // what the next event's record changes
  std::uint64_t device_ = 0;
  bool is_host_ = false;    // what is read is the host's
  std::uint64_t desk_ = 0;  // whose part is read; 0: the last
  std::uint64_t turn_ = 0;
  DeskParts parts_;
  FxNode next_fx_;  // of the next frame
  std::vector<std::string> texts_;
  std::vector<SnapshotSegment> start_;
  std::vector<SnapshotSegment> end_;
  std::vector<SnapshotSegment>* open_segments_ = nullptr;
  RecordedHead head_;
  std::size_t facts_device_ = 0;  // whose events the facts stand between
  DroppedEvents dropped_;
  bool lacks_state_ = false;
  Snapshot out_;
};

}  // namespace ashlar::trace::codec

#endif  // ASHLAR_ALLOCATOR_TRACE_DECODER_H_
