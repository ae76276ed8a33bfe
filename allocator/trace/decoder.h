// Reads a recording, chunk by chunk. Private to the codec.
//
//   absl::StatusOr<Snapshot> recording = Decoder(bytes, limits).Run();        // all of it
//   Decoder growing({}, {}); growing.ReadWhole(bytes); growing.TakeEvents();  // as far as it is written
//
// Not thread-safe.
#ifndef ASHLAR_ALLOCATOR_TRACE_DECODER_H_
#define ASHLAR_ALLOCATOR_TRACE_DECODER_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/trace/codec.h"
#include "allocator/trace/codec_format.h"
#include "allocator/trace/codec_settings.h"
#include "allocator/trace/dropped_events.h"
#include "allocator/trace/event.h"
#include "allocator/trace/snapshot.h"

namespace ashlar::trace::codec {

// The events of a chunk's thread caches, put into one order as the last part is read (codec_format.h). Private to the
// codec. Not thread-safe.
//
//   ThreadCacheParts parts;
//   parts.Begin();                         // another thread cache's part
//   parts.Add(event, 4);                   // false: its turn lies before the last one's
//   parts.MoveBefore(5, trace);            // all of turns before 5, behind what is in the trace
//   parts.MoveRest(trace);
//
// Where a recording has parts its times never go back: each thread cache reads the clock now and then, so an event's
// time may be older than that of an event which happened before it elsewhere, and becomes that one's.
class ThreadCacheParts {
 public:
  bool IsEmpty() const { return parts_.empty(); }
  void Begin();
  // In the part that was begun last.
  bool Add(const Event& event, std::uint64_t turn);
  void MoveBefore(std::uint64_t turn, std::vector<Event>& trace);
  // The parts are gone afterwards.
  void MoveRest(std::vector<Event>& trace);
  // Of what comes next in the recording, to be asked for all of it; kNoTime stays.
  std::int64_t LaterTime(std::int64_t time_us);

 private:
  struct Entry {
    std::uint64_t turn = 0;
    Event event;
  };
  struct Part {
    std::vector<Entry> entries;
    std::size_t next = 0;

    bool HasNext() const { return next < entries.size(); }
    const Entry& Next() const { return entries[next]; }
  };
  // Where a part stands, in the order in which parts are moved.
  struct Head {
    std::uint64_t turn = 0;
    std::int64_t time_us = 0;
    std::size_t index = 0;  // in parts_
    auto operator<=>(const Head&) const = default;
  };
  Head HeadOf(std::size_t index) const;
  // Finds where each part stands, unless that is known; all parts are there.
  void Order();
  void Move(Part& part, std::vector<Event>& trace);

  std::vector<Part> parts_;
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads_;  // of the parts that have a next event
  bool is_ordered_ = false;                                             // the heads are those of all parts
  bool had_parts_ = false;                                              // the recording, so far
  std::int64_t time_us_ = kNoTime;                                      // the latest so far
};

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
  bool ReadThreadCache(Bytes& in);
  bool ReadTurn(Bytes& in);
  bool ReadLabel(Bytes& in);
  bool ReadFxNode(Bytes& in);
  bool ReadHolders(SettingOf kind, Bytes& in);
  bool ReadNames(Bytes& in);
  bool ReadHolder(Bytes& in);

  std::vector<Event>& Trace();
  std::uint64_t EventCount() const;
  void AddNote(absl::string_view name, std::string message, std::uint64_t count);
  absl::StatusOr<Snapshot> Finish(const std::string& damage);
  void DropOldest(bool is_end);
  absl::Status SetSegments(bool is_damaged);
  absl::Status WorkOutSegments();
  void NoteSleep();
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
  bool is_host_ = false;     // what is read is the host's
  std::uint64_t cache_ = 0;  // whose part is read; 0: the last
  std::uint64_t turn_ = 0;
  ThreadCacheParts parts_;
  FxNode next_fx_;            // of the next frame
  Holders* names_ = nullptr;  // of out_: whose holders and blocks are read
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
