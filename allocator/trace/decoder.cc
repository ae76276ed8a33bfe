#include "allocator/trace/decoder.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/trace/state_after.h"

namespace ashlar::trace::codec {

bool ThreadCacheParts::Add(const Event& event, std::uint64_t turn) {
  std::vector<Entry>& entries = parts_.back().entries;
  if (!entries.empty() && turn < entries.back().turn) return false;
  entries.push_back({turn, event});
  return true;
}

std::int64_t ThreadCacheParts::LaterTime(std::int64_t time_us) {
  if (time_us == kNoTime) return time_us;
  if (time_us > time_us_) time_us_ = time_us;
  return had_parts_ ? time_us_ : time_us;
}

void ThreadCacheParts::Begin() {
  parts_.emplace_back();
  heads_ = {};
  is_ordered_ = false;
  had_parts_ = true;
}

ThreadCacheParts::Head ThreadCacheParts::HeadOf(std::size_t index) const {
  const Entry& next = parts_[index].Next();
  return {next.turn, next.event.time_us, index};
}

void ThreadCacheParts::Order() {
  if (is_ordered_) return;
  is_ordered_ = true;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].HasNext()) heads_.push(HeadOf(i));
  }
}

void ThreadCacheParts::Move(Part& part, std::vector<Event>& trace) {
  Event& event = part.entries[part.next++].event;
  event.time_us = LaterTime(event.time_us);
  trace.push_back(event);
}

// One part after another, each until another's event comes first: times are coarse, so that this is seldom.
void ThreadCacheParts::MoveBefore(std::uint64_t turn, std::vector<Event>& trace) {
  Order();
  while (!heads_.empty() && heads_.top().turn < turn) {
    const std::size_t index = heads_.top().index;
    Part& part = parts_[index];
    heads_.pop();
    do {
      Move(part, trace);
    } while (part.HasNext() && part.Next().turn < turn && (heads_.empty() || heads_.top() > HeadOf(index)));
    if (part.HasNext()) heads_.push(HeadOf(index));
  }
}

void ThreadCacheParts::MoveRest(std::vector<Event>& trace) {
  MoveBefore(std::numeric_limits<std::uint64_t>::max(), trace);
  parts_.clear();
  heads_ = {};
}

}  // namespace ashlar::trace::codec

namespace ashlar::trace {

namespace codec {
namespace {

constexpr std::size_t kGivenBackAtOnce = 4 * kMiB;

}  // namespace

absl::StatusOr<Snapshot> Decoder::Run() {
  if (absl::Status status = ReadFileHeader(); !status.ok()) return status;
  std::string damage;
  while (damage.empty() && at_ < bytes_.size() && !is_ended_) {
    damage = ReadChunk();
    DropOldest(/*is_end=*/false);
    GiveBack(/*all=*/false);
  }
  if (damage.empty() && !is_ended_) damage = absl::StrCat("it ends at byte ", at_, " without its end");
  if (damage.empty() && at_ < bytes_.size()) {
    AddNote("trailing_bytes", "bytes behind the end of the recording, which are not read", bytes_.size() - at_);
  }
  GiveBack(/*all=*/true);
  return Finish(damage);
}

absl::StatusOr<std::size_t> Decoder::ReadWhole(absl::string_view bytes) {
  bytes_ = bytes;
  at_ = 0;
  if (!has_header_) {
    const bool may_begin_so = bytes.empty() || kMagic.substr(0, bytes.size()) == bytes.substr(0, kMagic.size());
    if (bytes.size() < sizeof(FileHeader) && may_begin_so) return at_;
    if (absl::Status status = ReadFileHeader(); !status.ok()) return status;
  }
  while (!is_ended_ && IsNextWhole()) {
    if (const std::string damage = ReadChunk(); !damage.empty()) {
      return absl::DataLossError(absl::StrCat("the recording is damaged: ", damage));
    }
  }
  return at_;
}

std::vector<EventList> Decoder::TakeEvents() {
  for (const EventList& events : out_.device_traces) taken_events_ += events.size();
  out_.annotations.clear();
  head_.facts.clear();
  return std::exchange(out_.device_traces, {});
}

absl::Status Decoder::ReadFileHeader() {
  FileHeader header{};
  if (!IsRecording(bytes_)) return absl::InvalidArgumentError("this is no recording: it does not begin with ASHLARTR");
  if (bytes_.size() < sizeof(header)) {
    return absl::DataLossError(absl::StrCat("the recording ends at byte ", bytes_.size(), ", within its header"));
  }
  std::memcpy(&header, bytes_.data(), sizeof(header));
  if (header.checksum != Checksum({0, 0}, bytes_.substr(0, 16))) {
    return absl::DataLossError("the recording's header (byte 0) does not have its checksum");
  }
  if (header.version < kOldestVersion || header.version > kVersion) {
    return absl::InvalidArgumentError(absl::StrCat("a recording of version ", header.version,
                                                   "; this program reads versions ", kOldestVersion, " to ", kVersion,
                                                   ": use a newer one"));
  }
  has_header_ = true;
  version_ = header.version;
  at_ = sizeof(header);
  return absl::OkStatus();
}

// Whether the bytes hold a chunk up to its end, as far as its header tells.
bool Decoder::IsNextWhole() const {
  ChunkHeader header{};
  if (bytes_.size() - at_ < sizeof(header)) return false;
  std::memcpy(&header, bytes_.data() + at_, sizeof(header));
  return header.magic != kChunkMagic || header.payload_bytes <= bytes_.size() - at_ - sizeof(header);
}

// Empty, or what is wrong.
std::string Decoder::ReadChunk() {
  const std::string name = absl::StrCat("chunk ", next_chunk_, " (byte ", at_, ") ");
  ChunkHeader header{};
  if (bytes_.size() - at_ < sizeof(header)) return name + "is cut off within its header";
  std::memcpy(&header, bytes_.data() + at_, sizeof(header));
  if (header.magic != kChunkMagic) return name + "does not begin as a chunk does";
  if (header.payload_bytes > bytes_.size() - at_ - sizeof(header)) {
    return absl::StrCat(name, "is cut off, or its size is damaged: it says ", header.payload_bytes, " bytes");
  }
  const absl::string_view payload = bytes_.substr(at_ + sizeof(header), header.payload_bytes);
  const ChunkHeader right = MakeChunkHeader(header.number, payload);
  if (right.checksum != header.checksum) return name + "does not have its checksum";
  if (header.number != next_chunk_) return absl::StrCat(name, "has the number ", header.number);
  if (std::string wrong = ReadRecords(payload); !wrong.empty()) return name + wrong;
  ++next_chunk_;
  at_ += sizeof(header) + payload.size();
  return "";
}

void Decoder::GiveBack(bool all) {
  const std::size_t count = at_ - given_back_;
  if (limits_.is_read == nullptr || (count < kGivenBackAtOnce && !all)) return;
  limits_.is_read(bytes_.substr(given_back_, count));
  given_back_ = at_;
}

std::vector<Event>& Decoder::Trace() {
  if (is_host_) return out_.host.events.Mutable();
  if (out_.device_traces.size() <= device_) out_.device_traces.resize(device_ + 1);
  return out_.device_traces[device_].Mutable();
}

std::uint64_t Decoder::EventCount() const {
  std::uint64_t count = taken_events_ + dropped_.count() + out_.host.events.size();
  for (const EventList& events : out_.device_traces) count += events.size();
  return count;
}

void Decoder::AddNote(absl::string_view name, std::string message, std::uint64_t count) {
  out_.notes.push_back({std::string(name), std::move(message), count});
}

void Decoder::DropOldest(bool is_end) {
  const bool begins_with_state = head_.HasSegmentsAt(StateAt::kStart);
  if (dropped_.count() == 0) dropped_.SetLargePages(head_.LargePagesAtStart());
  for (std::size_t device = 0; device < out_.device_traces.size(); ++device) {
    std::vector<Fact> none;
    dropped_.Drop(device, is_end, begins_with_state ? &start_ : nullptr, out_.device_traces[device],
                  device == facts_device_ ? head_.facts : none);
  }
}

absl::StatusOr<Snapshot> Decoder::Finish(const std::string& damage) {
  DropOldest(/*is_end=*/true);
  head_.start = start_;
  if (next_chunk_ == 0) return absl::DataLossError(absl::StrCat("nothing of the recording is whole: ", damage));
  std::vector<SnapshotSegment> by_address = start_;
  if (absl::Status status = CheckSegments(by_address); !status.ok()) return status;
  if (absl::Status status = CheckSegments(out_.host.segments); !status.ok()) return status;
  if (absl::Status status = head_.Apply(out_); !status.ok()) return status;
  if (out_.recording.has_value()) out_.recording->is_complete &= damage.empty();
  if (!damage.empty()) {  // of some blocks they would say nothing
    out_.holders.reset();
    out_.peak_holders.reset();
  }
  if (!damage.empty()) {
    const std::uint64_t rest = bytes_.size() - at_;
    AddNote(rest == 0 ? "unfinished" : "damaged",
            absl::StrCat("the recording is not whole: ", damage, "; the ", next_chunk_, " chunks before it are shown",
                         rest == 0 ? "" : absl::StrCat(", ", rest, " bytes are not")),
            1);
  }
  if (absl::Status status = SetSegments(!damage.empty()); !status.ok()) return status;
  if (out_.recording.has_value()) dropped_.Describe(*out_.recording);
  dropped_.Describe(out_);
  NoteSleep();
  FillStacks();
  return std::move(out_);
}

// Of a recording that is not whole the end state is missing, or, written first by a ring, the events that led to it.
absl::Status Decoder::SetSegments(bool is_damaged) {
  if (!head_.HasSegmentsAt(StateAt::kEnd) || (is_damaged && head_.HasSegmentsAt(StateAt::kStart))) {
    return WorkOutSegments();
  }
  out_.segments = std::move(end_);
  if (is_damaged && EventCount() > 0) {
    AddNote("events_dropped", "events that are not shown, as the last ones before the final segments are missing",
            EventCount());
    for (EventList& events : out_.device_traces) events.clear();
    out_.host.events.clear();
    if (out_.recording.has_value()) out_.recording->facts.clear();
    dropped_ = DroppedEvents();
  }
  return CheckSegments(out_.segments);
}

absl::Status Decoder::WorkOutSegments() {
  if (absl::Status status = CheckSegments(start_); !status.ok()) return status;
  if (dropped_.count() == 0) return StateAfter(start_, out_.device_traces, out_.segments);
  lacks_state_ = !dropped_.keeps_state();
  return lacks_state_ ? absl::OkStatus() : dropped_.StateAfter(start_, out_.device_traces, out_.segments);
}

// Events tell of addresses, which stay where a pool sleeps.
void Decoder::NoteSleep() {
  if (!out_.recording.has_value()) return;
  const auto& facts = out_.recording->facts;
  const auto sleeps =
      std::count_if(facts.begin(), facts.end(), [](const Fact& fact) { return IsAny<fact::PoolSlept>(fact.what); });
  if (sleeps == 0) return;
  AddNote(
      "pools_slept",
      "times a pool slept, so that its pages were the device's: what is reserved, where it is worked out of events, "
      "counts them still",
      static_cast<std::uint64_t>(sleeps));
}

// The allocator itself keeps no stacks: a block's is that of the event that made it.
void Decoder::FillStacks() {
  if (!out_.recording.has_value() || out_.stacks.stack_count() == 0) return;
  FillBlockStacks(out_.device_traces, out_.segments);
  dropped_.FillBlockStacks(out_.segments);
}

}  // namespace codec

bool IsRecording(absl::string_view bytes) { return bytes.substr(0, codec::kMagic.size()) == codec::kMagic; }

absl::StatusOr<Snapshot> Decode(absl::string_view bytes, const DecodeLimits& limits) {
  {
    codec::Decoder decoder(bytes, limits);
    absl::StatusOr<Snapshot> out = decoder.Run();
    if (!decoder.lacks_state()) return out;
  }
  return codec::Decoder(bytes, limits, /*keeps_state=*/true).Run();
}

}  // namespace ashlar::trace
