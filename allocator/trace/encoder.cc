#include "allocator/trace/encoder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "allocator/trace/codec_format.h"

namespace ashlar::trace::codec {
namespace {

constexpr std::size_t kLeastChunkBytes = 1024;
constexpr std::size_t kMostGrowth = 16;                             // of a chunk, times its bytes
constexpr std::size_t kMostDefinitionBytes = std::size_t{1} << 20;  // handed over early from here on

char FirstByte(RecordKind kind) { return static_cast<char>(kOther | static_cast<unsigned>(kind) << 4); }

void AppendVarint(std::uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

}  // namespace

Encoder::Encoder(std::size_t chunk_bytes, Output output, BeforeSeal before_seal)
    : output_(std::move(output)),
      before_seal_(std::move(before_seal)),
      chunk_bytes_(std::max(chunk_bytes, kLeastChunkBytes)),
      buffer_(chunk_bytes_) {
  last_begin_ = buffer_.data() + buffer_.size() - kMostRecordBytes;
  early_end_ = last_begin_ - buffer_.size() / 4;
  BeginChunk();
}

void Encoder::BeginChunk() {
  context_ = Context{};
  at_ = buffer_.data();
  if (device_ != 0) {
    Put(RecordKind::kDevice);
    PutVarint(static_cast<std::uint64_t>(device_));
  }
  if (is_host_) {
    Put(RecordKind::kSetting);
    PutVarint(static_cast<std::uint64_t>(SettingOf::kHost));
    PutVarint(1);
  }
  begin_ = at_;
}

void Encoder::SealBefore(Action action) {
  if (action == Action::kFreeRequested) {
    Seal();
  } else if (at_ > last_begin_) {
    MakeRoom();
  }
}

void Encoder::SealAfter(Action action) {
  if (action == Action::kAlloc || action == Action::kOom) Seal();
}

// A request is under way, perhaps: the chunk grows until it is done.
void Encoder::MakeRoom() {
  if (buffer_.size() >= kMostGrowth * chunk_bytes_) return Seal();
  const std::ptrdiff_t at = at_ - buffer_.data();
  const std::ptrdiff_t begin = begin_ - buffer_.data();
  const std::ptrdiff_t early_end = early_end_ - buffer_.data();
  buffer_.resize(2 * buffer_.size());
  at_ = buffer_.data() + at;
  begin_ = buffer_.data() + begin;
  early_end_ = buffer_.data() + early_end;
  last_begin_ = buffer_.data() + buffer_.size() - kMostRecordBytes;
}

void Encoder::Begin(RecordKind kind) {
  if (at_ > last_begin_) MakeRoom();
  Put(kind);
}

void Encoder::SetContext(const Event& event, std::int64_t time_us, StackId stack) {
  PutTime(time_us);
  PutStream(event.stream);
  PutPool(event.pool);
  PutStack(stack);
  if (event.label != context_.label) {
    Put(RecordKind::kSetting);
    PutVarint(static_cast<std::uint64_t>(SettingOf::kLabelOf));
    PutVarint(PlusOne(event.label));
    context_.label = event.label;
  }
}

// The parts' device stands before the first of them.
void Encoder::AddPart(std::uint64_t cache, absl::string_view records, std::uint64_t event_count) {
  if (parts_.empty()) parts_.append(buffer_.data(), static_cast<std::size_t>(begin_ - buffer_.data()));
  parts_ += FirstByte(RecordKind::kSetting);
  AppendVarint(static_cast<std::uint64_t>(SettingOf::kThreadCache), parts_);
  AppendVarint(cache, parts_);
  parts_.append(records.data(), records.size());
  event_count_ += event_count;
}

void Encoder::PutTurn(std::uint64_t turn) {
  Begin(RecordKind::kSetting);
  PutVarint(static_cast<std::uint64_t>(SettingOf::kTurn));
  PutVarint(turn);
}

void Encoder::SetDevice(int device) {
  if (device == device_) return;
  Begin(RecordKind::kDevice);
  PutVarint(static_cast<std::uint64_t>(device));
  device_ = device;
}

std::uint64_t Encoder::TextId(absl::string_view text) {
  if (definitions_.size() > kMostDefinitionBytes) HandOverDefinitions();
  const auto [it, is_new] = text_ids_.try_emplace(std::string(text), text_ids_.size());
  if (is_new) {
    definitions_ += FirstByte(RecordKind::kText);
    AppendVarint(text.size(), definitions_);
    definitions_.append(text.data(), text.size());
  }
  return it->second;
}

// Of the frame that comes next.
void Encoder::DefineFxNode(const FxNode& fx) {
  const std::uint64_t texts[] = {TextId(fx.op), TextId(fx.name), TextId(fx.target), TextId(fx.original_trace)};
  definitions_ += FirstByte(RecordKind::kSetting);
  AppendVarint(static_cast<std::uint64_t>(SettingOf::kFxNode), definitions_);
  AppendVarint(defined_frames_, definitions_);
  for (const std::uint64_t text : texts) AppendVarint(text, definitions_);
}

void Encoder::DefineLabels(const LabelTable& labels) {
  for (; defined_labels_ < labels.size(); ++defined_labels_) {
    const Label& label = labels.label(static_cast<LabelId>(defined_labels_));
    const std::uint64_t texts[] = {TextId(label.user_metadata), TextId(label.internal_metadata),
                                   TextId(label.compile_context)};
    definitions_ += FirstByte(RecordKind::kSetting);
    AppendVarint(static_cast<std::uint64_t>(SettingOf::kLabel), definitions_);
    for (const std::uint64_t text : texts) AppendVarint(text, definitions_);
  }
}

void Encoder::SetHost(bool is_host) {
  if (is_host == is_host_) return;
  Begin(RecordKind::kSetting);
  PutVarint(static_cast<std::uint64_t>(SettingOf::kHost));
  PutVarint(is_host ? 1 : 0);
  is_host_ = is_host;
}

void Encoder::DefineStacks(const StackTable& stacks) {
  for (; defined_frames_ < stacks.frame_count(); ++defined_frames_) {
    const auto id = static_cast<FrameId>(defined_frames_);
    const Frame& frame = stacks.frame(id);
    const std::uint64_t file = TextId(stacks.RecordedFile(id));
    const std::uint64_t function = TextId(frame.function);
    if (frame.fx != FxNode{}) DefineFxNode(frame.fx);
    definitions_ += FirstByte(RecordKind::kFrame);
    AppendVarint(file, definitions_);
    AppendVarint(function, definitions_);
    AppendVarint(Zigzag(frame.line), definitions_);
  }
  for (; defined_stacks_ < stacks.stack_count(); ++defined_stacks_) {
    const absl::Span<const FrameId> frames = stacks.stack(static_cast<StackId>(defined_stacks_));
    definitions_ += FirstByte(RecordKind::kFrames);
    AppendVarint(frames.size(), definitions_);
    for (const FrameId frame : frames) AppendVarint(frame, definitions_);
  }
}

void Encoder::AddMark(absl::string_view stage, absl::string_view name, std::int64_t time_us) {
  const std::uint64_t stage_id = TextId(stage);
  const std::uint64_t name_id = TextId(name);
  if (at_ > last_begin_) Seal();
  PutTime(time_us);
  Put(RecordKind::kMark);
  PutVarint(stage_id);
  PutVarint(name_id);
}

void Encoder::AddFact(const AnyFact& fact) {
  codec::FactNumbers numbers = codec::NumbersOf(fact);
  if (numbers.text.has_value()) numbers.number = TextId(*numbers.text);
  Begin(RecordKind::kFact);
  PutVarint(numbers.kind);
  PutVarint(numbers.number);
  if (numbers.size_bytes.has_value()) PutVarint(*numbers.size_bytes);
  if (!numbers.pool.has_value()) return;
  PutVarint(numbers.pool->first);
  PutVarint(numbers.pool->second);
}

void Encoder::AddSegments(StateAt when, absl::Span<const SnapshotSegment> segments) {
  for (const SnapshotSegment& segment : segments) {
    SetDevice(segment.device);
    Begin(RecordKind::kSegment);
    PutVarint(static_cast<std::uint64_t>(when));
    PutVarint(segment.address);
    PutVarint(segment.size_bytes);
    PutVarint(Handle(segment.stream));
    PutVarint((segment.is_small_pool ? 1u : 0u) | (segment.is_expandable ? 2u : 0u));
    PutVarint(segment.pool.first);
    PutVarint(segment.pool.second);
    PutVarint(PlusOne(segment.stack));
    for (const SnapshotBlock& block : segment.blocks) {
      Begin(RecordKind::kBlock);
      PutVarint(block.size_bytes);
      PutVarint(static_cast<std::uint64_t>(block.state));
      PutVarint(block.requested_bytes.has_value() ? *block.requested_bytes + 1 : 0);
      PutVarint(PlusOne(block.stack));
    }
  }
}

void Encoder::AddReservations(absl::Span<const ReservedRange> reservations) {
  for (const ReservedRange& range : reservations) {
    Begin(RecordKind::kReserved);
    PutVarint(range.address);
    PutVarint(range.size_bytes);
    PutVarint(!range.lane.has_value() ? 0 : range.lane->is_small_pool ? 2 : 1);
    if (!range.lane.has_value()) continue;
    PutVarint(Handle(range.lane->stream));
    PutVarint(range.lane->pool.first);
    PutVarint(range.lane->pool.second);
  }
}

// A kSetting record that begins with texts.
void Encoder::BeginSetting(SettingOf whose, std::initializer_list<absl::string_view> texts) {
  absl::InlinedVector<std::uint64_t, 8> ids;
  for (const absl::string_view text : texts) ids.push_back(TextId(text));
  Begin(RecordKind::kSetting);
  PutVarint(static_cast<std::uint64_t>(whose));
  for (const std::uint64_t id : ids) PutVarint(id);
}

void Encoder::AddSetting(SettingOf whose, absl::string_view key, absl::string_view value) {
  BeginSetting(whose, {key, value});
}

void Encoder::AddHolders(const Holders& names, bool is_peak) {
  BeginSetting(SettingOf::kNames, {names.when, names.bound});
  PutVarint(is_peak ? 1 : 0);
  PutVarint(static_cast<std::uint64_t>(std::llround(std::max(names.seconds, 0.0) * 1e6)));
  PutVarint(names.objects);
  const auto add_texts = [this](std::uint64_t which, const std::vector<std::string>& texts) {
    for (const std::string& text : texts) {
      BeginSetting(SettingOf::kHolderText, {text});
      PutVarint(which);
    }
  };
  for (const Holder& holder : names.holders) {
    BeginSetting(SettingOf::kHolder,
                 {holder.kind, holder.name, holder.file, holder.function, holder.mode, holder.container});
    PutVarint(Zigzag(holder.line));
    PutVarint(holder.nodes);
    add_texts(0, holder.traits);
    add_texts(1, holder.variables);
  }
  for (const HeldBlock& block : names.blocks) {
    BeginSetting(SettingOf::kHeldBlock, {});
    PutVarint(block.address);
    PutVarint(block.owner);
    for (const std::uint32_t other : block.others) {
      BeginSetting(SettingOf::kFurtherHolder, {});
      PutVarint(other);
    }
  }
}

void Encoder::HandOverDefinitions() {
  if (!definitions_.empty()) output_(ChunkKind::kDefinitions, definitions_);
  definitions_.clear();
}

void Encoder::Seal() {
  if (before_seal_) before_seal_();
  HandOverDefinitions();
  const absl::string_view own(buffer_.data(), static_cast<std::size_t>(at_ - buffer_.data()));
  if (!parts_.empty()) {
    parts_ += FirstByte(RecordKind::kSetting);
    AppendVarint(static_cast<std::uint64_t>(SettingOf::kThreadCache), parts_);
    AppendVarint(0, parts_);
    parts_.append(own.data(), own.size());
    output_(ChunkKind::kRecords, parts_);
    parts_.clear();
  } else if (at_ != begin_) {
    output_(ChunkKind::kRecords, own);
  }
  BeginChunk();
}

void Encoder::End(std::uint64_t event_count) {
  Begin(RecordKind::kEnd);
  PutVarint(event_count);
  Seal();
}

}  // namespace ashlar::trace::codec
