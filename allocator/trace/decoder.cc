// Long because: one class, a short function for each kind of record.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "allocator/trace/codec.h"
#include "allocator/trace/codec_facts.h"
#include "allocator/trace/codec_format.h"
#include "allocator/trace/codec_settings.h"
#include "allocator/trace/desk_parts.h"
#include "allocator/trace/record_bytes.h"
#include "allocator/trace/recording_follower.h"
#include "allocator/trace/state_after.h"

namespace ashlar::trace {
namespace codec {

// Not in a namespace without a name: what RecordingFollower keeps must have one.
class Decoder {
 public:
  explicit Decoder(absl::string_view bytes) : bytes_(bytes) {}

  // --- of a recording that grows: the bytes of the next turn stand behind those of the last ---
  absl::StatusOr<std::size_t> ReadWhole(absl::string_view bytes) {
    bytes_ = bytes;
    at_ = 0;
    if (!has_header_) {
      if (bytes.size() < sizeof(FileHeader) && (bytes.empty() || kMagic.substr(0, bytes.size()) == bytes.substr(0, 8)))
        return at_;
      if (absl::Status status = ReadFileHeader(); !status.ok()) return status;
    }
    while (!is_ended_ && IsNextWhole()) {
      if (const std::string damage = ReadChunk(); !damage.empty()) {
        return absl::DataLossError(absl::StrCat("the recording is damaged: ", damage));
      }
    }
    return at_;
  }
  std::vector<EventList> TakeEvents() {
    for (const EventList& events : out_.device_traces) taken_events_ += events.size();
    out_.annotations.clear();
    head_.facts.clear();
    return std::exchange(out_.device_traces, {});
  }
  bool is_ended() const { return is_ended_; }
  const std::vector<SnapshotSegment>& start() const { return start_; }
  const RecordedHead& head() const { return head_; }

  absl::StatusOr<Snapshot> Run() {
    if (absl::Status status = ReadFileHeader(); !status.ok()) return status;
    std::string damage;
    while (damage.empty() && at_ < bytes_.size() && !is_ended_) damage = ReadChunk();
    if (damage.empty() && !is_ended_) damage = absl::StrCat("it ends at byte ", at_, " without its end");
    if (damage.empty() && at_ < bytes_.size()) {
      AddNote("trailing_bytes", "bytes behind the end of the recording, which are not read", bytes_.size() - at_);
    }
    return Finish(damage);
  }

 private:
  absl::Status ReadFileHeader() {
    FileHeader header{};
    if (!IsRecording(bytes_))
      return absl::InvalidArgumentError("this is no recording: it does not begin with ASHLARTR");
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
  bool IsNextWhole() const {
    ChunkHeader header{};
    if (bytes_.size() - at_ < sizeof(header)) return false;
    std::memcpy(&header, bytes_.data() + at_, sizeof(header));
    return header.magic != kChunkMagic || header.payload_bytes <= bytes_.size() - at_ - sizeof(header);
  }

  // Empty, or what is wrong.
  std::string ReadChunk() {
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

  std::string ReadRecords(absl::string_view payload) {
    Bytes in(bytes_, static_cast<std::size_t>(payload.data() - bytes_.data()), payload.size());
    BeginPart();
    device_ = 0;
    is_host_ = false;
    desk_ = 0;
    while (!in.IsEmpty()) {
      const std::uint64_t offset = in.offset();
      const unsigned first = in.Byte();
      if ((first & kOther) != kOther) {
        ReadEvent(first, offset, in);
      } else if (!ReadOther(static_cast<RecordKind>(first >> 4), in)) {
        return absl::StrCat("has a record at byte ", offset, " that cannot be");
      }
      if (!in.ok()) return absl::StrCat("has a record at byte ", offset, " that cannot be");
    }
    if (desk_ != 0) return "ends within the part of a desk";
    if (!parts_.IsEmpty()) parts_.MoveRest(Trace());
    return "";
  }

  void BeginPart() {
    last_time_us_ = 0;
    event_ = {};
    turn_ = 0;
  }

  void ReadEvent(unsigned first, std::uint64_t offset, Bytes& in) {
    const unsigned lengths = in.Byte();
    const unsigned place_bytes = lengths & 0xf;
    const unsigned size_bytes = lengths >> 4;
    const unsigned code = first & kOther;
    const bool is_freed = code == kFreed && version_ >= 5;
    if ((code > static_cast<unsigned>(Action::kUnknown) && !is_freed) || place_bytes > 8 || size_bytes > 8) {
      return in.Fail();
    }
    const std::uint64_t move = std::rotl(in.Word(place_bytes), kPlaceShift);
    event_.action = is_freed ? Action::kFreeRequested : static_cast<Action>(code);
    event_.address += (first & kMovesDown) != 0 ? 0 - move : move;
    event_.size_bytes ^= in.Word(size_bytes);
    const std::uint64_t spare = in.Word(kSpareBytes[first >> kSpareShift]);
    event_.block_size_bytes = (first & kHasBlock) != 0 ? RoundUpToBlock(event_.size_bytes) + spare : 0;
    event_.file_byte = static_cast<std::uint32_t>(std::min<std::uint64_t>(offset, kNoByte));
    if (!in.ok()) return;
    TakeEvent(in);
    if (!is_freed) return;
    event_.action = Action::kFreeCompleted;
    TakeEvent(in);
  }

  void TakeEvent(Bytes& in) {
    if (desk_ != 0) {
      if (!parts_.Add(event_, turn_)) in.Fail();
      return;
    }
    Trace().push_back(event_);
    Trace().back().time_us = parts_.LaterTime(event_.time_us);
  }

  bool ReadOther(RecordKind kind, Bytes& in) {
    switch (kind) {
      case RecordKind::kTime:
        last_time_us_ += static_cast<std::uint64_t>(Unzigzag(in.Varint()));
        event_.time_us = static_cast<std::int64_t>(last_time_us_);
        return true;
      case RecordKind::kNoTime:
        event_.time_us = kNoTime;
        return true;
      case RecordKind::kStream:
        event_.stream = Stream{in.Varint()};
        return true;
      case RecordKind::kPool:
        event_.pool.reset();
        if (in.Below(2) == 1) event_.pool = ReadEventPool(in);
        return true;
      case RecordKind::kStack:
        event_.stack = ReadStack(in);
        return true;
      case RecordKind::kDevice:
        device_ = in.Below(kMostDevices);
        return true;
      case RecordKind::kText:
        texts_.emplace_back(in.Text(in.Varint()));
        return true;
      case RecordKind::kFrame:
        return ReadFrame(in);
      case RecordKind::kFrames:
        return ReadFrames(in);
      case RecordKind::kMark:
        return ReadMark(in);
      case RecordKind::kFact:
        return ReadFact(in);
      case RecordKind::kSegment:
        return ReadSegment(in);
      case RecordKind::kBlock:
        return ReadBlock(in);
      case RecordKind::kSetting:
        return ReadSetting(in);
      case RecordKind::kEnd:
        is_ended_ = in.Varint() == EventCount() && in.IsEmpty();
        return is_ended_;
      case RecordKind::kReserved:
        return ReadReservation(in);
    }
    return false;
  }

  bool ReadReservation(Bytes& in) {
    ReservedRange range;
    range.address = in.Varint();
    range.size_bytes = in.Varint();
    const std::uint64_t lane = version_ < 2 ? 0 : in.Below(3);
    if (lane != 0) {
      ReservedRange::Lane owner;
      owner.is_small_pool = lane == 2;
      owner.stream = Stream{in.Varint()};
      owner.pool = ReadPool(in);
      range.lane = owner;
    }
    if (in.ok()) head_.reservations.push_back(range);
    return in.ok();
  }

  PoolId ReadPool(Bytes& in) {
    const std::uint64_t first = in.Varint();
    return {first, in.Varint()};
  }

  EventPool ReadEventPool(Bytes& in) {
    const PoolId pool = ReadPool(in);
    if (in.ok() && !EventPool::CanHold(pool)) in.Fail();
    return pool;
  }

  StackId ReadStack(Bytes& in) {
    const std::uint64_t plus_one = in.Below(out_.stacks.stack_count() + 1);
    return plus_one == 0 ? kNoStack : static_cast<StackId>(plus_one - 1);
  }

  absl::string_view ReadText(Bytes& in) {
    const std::uint64_t id = in.Below(texts_.size());
    return in.ok() ? absl::string_view(texts_[id]) : absl::string_view();
  }

  // Definitions are numbered as the table numbers them: equal ones would shift the numbers.
  bool ReadFrame(Bytes& in) {
    const absl::string_view file = ReadText(in);
    const absl::string_view function = ReadText(in);
    const std::int64_t line = Unzigzag(in.Varint());
    const FxNode fx = std::exchange(next_fx_, FxNode{});
    const std::size_t next = out_.stacks.frame_count();
    return in.ok() && out_.stacks.InternFrame(file, line, function, fx) == next;
  }

  bool ReadFrames(Bytes& in) {
    std::vector<FrameId> frames;
    for (std::uint64_t count = in.Varint(); count > 0 && in.ok(); --count) {
      frames.push_back(static_cast<FrameId>(in.Below(out_.stacks.frame_count())));
    }
    const std::size_t next = out_.stacks.stack_count();
    return in.ok() && out_.stacks.InternStack(frames) == next;
  }

  bool ReadMark(Bytes& in) {
    Annotation mark;
    mark.stage = std::string(ReadText(in));
    mark.name = std::string(ReadText(in));
    mark.device = static_cast<int>(device_);
    mark.time_us = parts_.LaterTime(event_.time_us);
    if (in.ok()) out_.annotations.push_back(std::move(mark));
    return in.ok();
  }

  bool ReadFact(Bytes& in) {
    codec::FactNumbers numbers;
    numbers.kind = in.Below(version_ < 2 ? codec::kFactKindsOfVersion1 : codec::kFactKinds);
    numbers.number = in.Varint();
    if (!in.ok()) return false;
    if (codec::NamesPool(numbers.kind)) numbers.pool = ReadPool(in);
    if (in.ok()) head_.facts.push_back({codec::FactOf(numbers), Trace().size()});
    return in.ok();
  }

  bool ReadSegment(Bytes& in) {
    const auto when = static_cast<StateAt>(in.Below(2));
    SnapshotSegment segment;
    segment.device = static_cast<int>(device_);
    segment.address = in.Varint();
    segment.size_bytes = in.Varint();
    segment.stream = Stream{in.Varint()};
    const std::uint64_t flags = in.Below(4);
    segment.is_small_pool = (flags & 1) != 0;
    segment.is_expandable = (flags & 2) != 0;
    segment.pool = ReadPool(in);
    segment.stack = ReadStack(in);
    open_segments_ = is_host_ ? &out_.host.segments : when == StateAt::kStart ? &start_ : &end_;
    if (in.ok()) open_segments_->push_back(std::move(segment));
    return in.ok();
  }

  bool ReadBlock(Bytes& in) {
    if (open_segments_ == nullptr) return false;
    SnapshotSegment& segment = open_segments_->back();
    const SnapshotBlock* last = segment.blocks.empty() ? nullptr : &segment.blocks.back();
    SnapshotBlock block;
    block.address = last == nullptr ? segment.address : last->address + last->size_bytes;
    block.size_bytes = in.Varint();
    block.state = static_cast<BlockState>(in.Below(3));
    const std::uint64_t requested = in.Varint();
    if (requested > 0) block.requested_bytes = requested - 1;
    block.stack = ReadStack(in);
    const std::uint64_t room = segment.size_bytes - (block.address - segment.address);
    if (!in.ok() || block.size_bytes == 0 || block.size_bytes > room) return false;
    segment.blocks.push_back(block);
    return true;
  }

  bool ReadSetting(Bytes& in) {
    const auto whose = static_cast<SettingOf>(in.Below(version_ < 4 ? 2 : version_ < 5 ? 6 : 8));
    if (whose > SettingOf::kRecording) return ReadExtra(whose, in);
    const absl::string_view key = ReadText(in);
    const absl::string_view value = ReadText(in);
    if (!in.ok()) return false;
    if (whose == SettingOf::kRecording && key == kReservationsAtStart) {
      head_.start_reservations = head_.reservations.size();
    }
    if (whose == SettingOf::kAllocator) {
      head_.allocator_values[std::string(key)] = std::string(value);
    } else {
      head_.recording_values[std::string(key)] = std::string(value);
    }
    return true;
  }

  bool ReadExtra(SettingOf kind, Bytes& in) {
    if (kind == SettingOf::kLabel) return ReadLabel(in);
    if (kind == SettingOf::kFxNode) return ReadFxNode(in);
    if (kind == SettingOf::kDesk) return ReadDesk(in);
    if (kind == SettingOf::kTurn) return ReadTurn(in);
    if (kind == SettingOf::kHost) {
      is_host_ = in.Below(2) == 1;
    } else {
      const std::uint64_t plus_one = in.Below(out_.labels.size() + 1);
      event_.label = plus_one == 0 ? kNoLabel : static_cast<LabelId>(plus_one - 1);
    }
    return in.ok();
  }

  // Each desk has one part, and the last is of all of them.
  bool ReadDesk(Bytes& in) {
    const std::uint64_t desk = in.Varint();
    const bool is_last = desk == 0 && desk_ != 0;
    if (!in.ok() || !(is_last || desk > desk_) || (desk_ == 0 && !parts_.IsEmpty())) return false;
    desk_ = desk;
    BeginPart();
    if (desk != 0) parts_.Begin();
    return true;
  }

  bool ReadTurn(Bytes& in) {
    const std::uint64_t turn = in.Varint();
    if (!in.ok() || turn < turn_) return false;
    turn_ = turn;
    if (desk_ == 0 && !parts_.IsEmpty()) parts_.MoveBefore(turn, Trace());
    return true;
  }

  bool ReadLabel(Bytes& in) {
    Label label;
    label.user_metadata = std::string(ReadText(in));
    label.internal_metadata = std::string(ReadText(in));
    label.compile_context = std::string(ReadText(in));
    const std::size_t next = out_.labels.size();
    return in.ok() && out_.labels.Intern(label) == next;
  }

  // It stands before its frame, so that the table interns both as one.
  bool ReadFxNode(Bytes& in) {
    const bool is_next = in.Varint() == out_.stacks.frame_count();
    next_fx_.op = std::string(ReadText(in));
    next_fx_.name = std::string(ReadText(in));
    next_fx_.target = std::string(ReadText(in));
    next_fx_.original_trace = std::string(ReadText(in));
    return in.ok() && is_next;
  }

  std::vector<Event>& Trace() {
    if (is_host_) return out_.host.events.Mutable();
    if (out_.device_traces.size() <= device_) out_.device_traces.resize(device_ + 1);
    return out_.device_traces[device_].Mutable();
  }

  std::uint64_t EventCount() const {
    std::uint64_t count = taken_events_ + out_.host.events.size();
    for (const EventList& events : out_.device_traces) count += events.size();
    return count;
  }

  void AddNote(absl::string_view name, std::string message, std::uint64_t count) {
    out_.notes.push_back({std::string(name), std::move(message), count});
  }

  absl::StatusOr<Snapshot> Finish(const std::string& damage) {
    head_.start = start_;
    if (next_chunk_ == 0) return absl::DataLossError(absl::StrCat("nothing of the recording is whole: ", damage));
    std::vector<SnapshotSegment> by_address = start_;
    if (absl::Status status = CheckSegments(by_address); !status.ok()) return status;
    if (absl::Status status = CheckSegments(out_.host.segments); !status.ok()) return status;
    if (absl::Status status = head_.Apply(out_); !status.ok()) return status;
    if (out_.recording.has_value()) out_.recording->is_complete &= damage.empty();
    if (!damage.empty()) {
      const std::uint64_t rest = bytes_.size() - at_;
      AddNote(rest == 0 ? "unfinished" : "damaged",
              absl::StrCat("the recording is not whole: ", damage, "; the ", next_chunk_, " chunks before it are shown",
                           rest == 0 ? "" : absl::StrCat(", ", rest, " bytes are not")),
              1);
    }
    if (absl::Status status = SetSegments(!damage.empty()); !status.ok()) return status;
    FillStacks();
    return std::move(out_);
  }

  // Of a recording that is not whole the end state is missing, or, written first by a ring, the events that led to it.
  absl::Status SetSegments(bool is_damaged) {
    if (head_.HasSegmentsAt(StateAt::kEnd) && (!is_damaged || !head_.HasSegmentsAt(StateAt::kStart))) {
      out_.segments = std::move(end_);
      if (is_damaged && EventCount() > 0) {
        AddNote("events_dropped", "events that are not shown, as the last ones before the final segments are missing",
                EventCount());
        for (EventList& events : out_.device_traces) events.clear();
        out_.host.events.clear();
        if (out_.recording.has_value()) out_.recording->facts.clear();
      }
      return CheckSegments(out_.segments);
    }
    if (absl::Status status = CheckSegments(start_); !status.ok()) return status;
    return StateAfter(start_, out_.device_traces, out_.segments);
  }

  // The allocator itself keeps no stacks: a block's is that of the event that made it.
  void FillStacks() {
    if (!out_.recording.has_value() || out_.stacks.stack_count() == 0) return;
    FillBlockStacks(out_.device_traces, out_.segments);
  }

  absl::string_view bytes_;
  std::size_t at_ = 0;
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
  Snapshot out_;
};

}  // namespace codec

bool IsRecording(absl::string_view bytes) { return bytes.substr(0, codec::kMagic.size()) == codec::kMagic; }

absl::StatusOr<Snapshot> Decode(absl::string_view bytes) { return codec::Decoder(bytes).Run(); }

struct RecordingFollower::Impl {
  codec::Decoder decoder{absl::string_view()};
  absl::Status status;
};

RecordingFollower::RecordingFollower() : impl_(std::make_unique<Impl>()) {}
RecordingFollower::~RecordingFollower() = default;

absl::StatusOr<std::size_t> RecordingFollower::Take(absl::string_view bytes) {
  if (!impl_->status.ok()) return impl_->status;
  absl::StatusOr<std::size_t> taken = impl_->decoder.ReadWhole(bytes);
  impl_->status = taken.status();
  return taken;
}

std::vector<EventList> RecordingFollower::TakeEvents() { return impl_->decoder.TakeEvents(); }

bool RecordingFollower::has_ended() const { return impl_->decoder.is_ended(); }

bool RecordingFollower::begins_with_state() const {
  return impl_->decoder.head().HasSegmentsAt(codec::StateAt::kStart);
}

std::vector<SnapshotSegment> RecordingFollower::start() const {
  std::vector<SnapshotSegment> start = impl_->decoder.start();
  const absl::Status status = CheckSegments(start);
  return status.ok() ? start : std::vector<SnapshotSegment>();
}

std::optional<std::uint64_t> RecordingFollower::device_total_bytes() const {
  const std::map<std::string, std::string>& values = impl_->decoder.head().recording_values;
  const auto total = values.find("device_total_bytes");
  std::uint64_t bytes = 0;
  if (total == values.end() || !absl::SimpleAtoi(total->second, &bytes) || bytes == 0) return std::nullopt;
  return bytes;
}

}  // namespace ashlar::trace
