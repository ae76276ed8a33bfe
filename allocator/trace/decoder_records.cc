// The records of a chunk, a short function for each kind.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/trace/codec_format.h"
#include "allocator/trace/decoder.h"

namespace ashlar::trace::codec {
namespace {

PoolId ReadPool(Bytes& in) {
  const std::uint64_t first = in.Varint();
  return {first, in.Varint()};
}

EventPool ReadEventPool(Bytes& in) {
  const PoolId pool = ReadPool(in);
  if (in.ok() && !EventPool::CanHold(pool)) in.Fail();
  return pool;
}

}  // namespace

std::string Decoder::ReadRecords(absl::string_view payload) {
  Bytes in(bytes_, static_cast<std::size_t>(payload.data() - bytes_.data()), payload.size());
  BeginPart();
  device_ = 0;
  is_host_ = false;
  cache_ = 0;
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
  if (cache_ != 0) return "ends within the part of a cache";
  if (!parts_.IsEmpty()) parts_.MoveRest(Trace());
  return "";
}

void Decoder::BeginPart() {
  last_time_us_ = 0;
  event_ = {};
  turn_ = 0;
}

void Decoder::ReadEvent(unsigned first, std::uint64_t offset, Bytes& in) {
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

void Decoder::TakeEvent(Bytes& in) {
  if (cache_ != 0) {
    if (!parts_.Add(event_, turn_)) in.Fail();
    return;
  }
  Trace().push_back(event_);
  Trace().back().time_us = parts_.LaterTime(event_.time_us);
}

bool Decoder::ReadOther(RecordKind kind, Bytes& in) {
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

bool Decoder::ReadReservation(Bytes& in) {
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

StackId Decoder::ReadStack(Bytes& in) {
  const std::uint64_t plus_one = in.Below(out_.stacks.stack_count() + 1);
  return plus_one == 0 ? kNoStack : static_cast<StackId>(plus_one - 1);
}

absl::string_view Decoder::ReadText(Bytes& in) {
  const std::uint64_t id = in.Below(texts_.size());
  return in.ok() ? absl::string_view(texts_[id]) : absl::string_view();
}

// Definitions are numbered as the table numbers them: equal ones would shift the numbers.
bool Decoder::ReadFrame(Bytes& in) {
  const absl::string_view file = ReadText(in);
  const absl::string_view function = ReadText(in);
  const std::int64_t line = Unzigzag(in.Varint());
  const FxNode fx = std::exchange(next_fx_, FxNode{});
  const std::size_t next = out_.stacks.frame_count();
  return in.ok() && out_.stacks.InternFrame(file, line, function, fx) == next;
}

bool Decoder::ReadFrames(Bytes& in) {
  std::vector<FrameId> frames;
  for (std::uint64_t count = in.Varint(); count > 0 && in.ok(); --count) {
    frames.push_back(static_cast<FrameId>(in.Below(out_.stacks.frame_count())));
  }
  const std::size_t next = out_.stacks.stack_count();
  return in.ok() && out_.stacks.InternStack(frames) == next;
}

bool Decoder::ReadMark(Bytes& in) {
  Annotation mark;
  mark.stage = std::string(ReadText(in));
  mark.name = std::string(ReadText(in));
  mark.device = static_cast<int>(device_);
  mark.time_us = parts_.LaterTime(event_.time_us);
  if (in.ok()) out_.annotations.push_back(std::move(mark));
  return in.ok();
}

bool Decoder::ReadFact(Bytes& in) {
  codec::FactNumbers numbers;
  numbers.kind = in.Below(version_ < 2 ? codec::kFactKindsOfVersion1 : codec::kFactKinds);
  if (!in.ok()) return false;
  if (codec::NamesText(numbers.kind)) {
    numbers.text = ReadText(in);
  } else {
    numbers.number = in.Varint();
  }
  if (!in.ok()) return false;
  if (codec::NamesSize(numbers.kind)) numbers.size_bytes = in.Varint();
  if (codec::NamesPool(numbers.kind)) numbers.pool = ReadPool(in);
  if (in.ok()) head_.facts.push_back({codec::FactOf(numbers), Trace().size()});
  facts_device_ = static_cast<std::size_t>(device_);
  return in.ok();
}

bool Decoder::ReadSegment(Bytes& in) {
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

bool Decoder::ReadBlock(Bytes& in) {
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

bool Decoder::ReadSetting(Bytes& in) {
  const auto whose = static_cast<SettingOf>(in.Below(SettingKinds(version_)));
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

bool Decoder::ReadExtra(SettingOf kind, Bytes& in) {
  if (kind == SettingOf::kLabel) return ReadLabel(in);
  if (kind == SettingOf::kFxNode) return ReadFxNode(in);
  if (kind == SettingOf::kThreadCache) return ReadThreadCache(in);
  if (kind == SettingOf::kTurn) return ReadTurn(in);
  if (kind >= SettingOf::kNames) return ReadHolders(kind, in);
  if (kind == SettingOf::kHost) {
    is_host_ = in.Below(2) == 1;
  } else {
    const std::uint64_t plus_one = in.Below(out_.labels.size() + 1);
    event_.label = plus_one == 0 ? kNoLabel : static_cast<LabelId>(plus_one - 1);
  }
  return in.ok();
}

// Each thread cache has one part, and the last is of all of them.
bool Decoder::ReadThreadCache(Bytes& in) {
  const std::uint64_t cache = in.Varint();
  const bool is_last = cache == 0 && cache_ != 0;
  if (!in.ok() || !(is_last || cache > cache_) || (cache_ == 0 && !parts_.IsEmpty())) return false;
  cache_ = cache;
  BeginPart();
  if (cache != 0) parts_.Begin();
  return true;
}

bool Decoder::ReadTurn(Bytes& in) {
  const std::uint64_t turn = in.Varint();
  if (!in.ok() || turn < turn_) return false;
  turn_ = turn;
  if (cache_ == 0 && !parts_.IsEmpty()) parts_.MoveBefore(turn, Trace());
  return true;
}

bool Decoder::ReadLabel(Bytes& in) {
  Label label;
  label.user_metadata = std::string(ReadText(in));
  label.internal_metadata = std::string(ReadText(in));
  label.compile_context = std::string(ReadText(in));
  const std::size_t next = out_.labels.size();
  return in.ok() && out_.labels.Intern(label) == next;
}

// What they begin comes first, and a holder before its blocks.
bool Decoder::ReadHolders(SettingOf kind, Bytes& in) {
  if (kind == SettingOf::kNames) return ReadNames(in);
  if (names_ == nullptr) return false;
  if (kind == SettingOf::kHolder) return ReadHolder(in);
  if (kind == SettingOf::kHolderText) {
    const absl::string_view text = ReadText(in);
    const bool is_variable = in.Below(2) == 1;
    if (!in.ok() || names_->holders.empty()) return false;
    Holder& holder = names_->holders.back();
    (is_variable ? holder.variables : holder.traits).emplace_back(text);
    return true;
  }
  const std::uint64_t address = kind == SettingOf::kHeldBlock ? in.Varint() : 0;
  const auto holder = static_cast<std::uint32_t>(in.Below(names_->holders.size()));
  if (!in.ok()) return false;
  if (kind == SettingOf::kHeldBlock) {
    names_->blocks.push_back({address, holder, {}});
    return true;
  }
  if (names_->blocks.empty()) return false;
  names_->blocks.back().others.push_back(holder);
  return true;
}

bool Decoder::ReadNames(Bytes& in) {
  Holders names;
  names.when = std::string(ReadText(in));
  names.bound = std::string(ReadText(in));
  std::optional<Holders>& place = in.Below(2) == 1 ? out_.peak_holders : out_.holders;
  names.seconds = static_cast<double>(in.Varint()) / 1e6;
  names.objects = in.Varint();
  if (!in.ok() || place.has_value()) return false;
  names_ = &place.emplace(std::move(names));
  return true;
}

bool Decoder::ReadHolder(Bytes& in) {
  Holder holder;
  for (std::string* const text :
       {&holder.kind, &holder.name, &holder.file, &holder.function, &holder.mode, &holder.container}) {
    *text = std::string(ReadText(in));
  }
  holder.line = Unzigzag(in.Varint());
  holder.nodes = in.Varint();
  if (in.ok()) names_->holders.push_back(std::move(holder));
  return in.ok();
}

// It stands before its frame, so that the table interns both as one.
bool Decoder::ReadFxNode(Bytes& in) {
  const bool is_next = in.Varint() == out_.stacks.frame_count();
  next_fx_.op = std::string(ReadText(in));
  next_fx_.name = std::string(ReadText(in));
  next_fx_.target = std::string(ReadText(in));
  next_fx_.original_trace = std::string(ReadText(in));
  return in.ok() && is_next;
}

}  // namespace ashlar::trace::codec
