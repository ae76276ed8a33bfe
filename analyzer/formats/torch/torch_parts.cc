// allocator_settings: the settings the recording allocator ran under, every key printed.

#include "analyzer/formats/torch/torch_parts.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "analyzer/formats/torch/torch_record.h"
#include "analyzer/formats/torch/torch_stream.h"
#include "analyzer/formats/utf8.h"

namespace ashlar::formats {
namespace {

using pickle::Kind;
using pickle::Value;

// -1, and the largest number of either width, mean no limit.
std::optional<std::uint64_t> SplitLimit(const Value& value) {
  const bool is_limit = value.kind() == Kind::kInt && static_cast<std::int64_t>(value.payload()) >= 0 &&
                        value.payload() != static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return is_limit ? std::optional(value.payload()) : std::nullopt;
}

double Number(const Value& value) {
  if (value.kind() == Kind::kFloat) return value.AsDouble();
  return value.kind() == Kind::kInt ? static_cast<double>(static_cast<std::int64_t>(value.payload())) : 0;
}

void ReadSetting(const std::string& key, const Value& value, trace::RecordedSettings* settings) {
  if (key == "max_split_size") settings->max_split_size_bytes = SplitLimit(value);
  if (key == "garbage_collection_threshold") settings->garbage_collection_threshold = Number(value);
  if (key == "expandable_segments") settings->expandable_segments = value.kind() == Kind::kBool && value.payload() != 0;
  if (absl::StartsWith(key, "PYTORCH_") && absl::EndsWith(key, "ALLOC_CONF") && !settings->values[key].empty()) {
    settings->conf = settings->values[key];
  }
}

}  // namespace

absl::Status ReadSettings(const Value& value, TorchContext* context) {
  if (value.kind() != Kind::kDict) return Within("allocator_settings", ExpectKind(value, Kind::kDict));
  if (absl::Status status = context->Visit(value); !status.ok()) return Within("allocator_settings", status);
  trace::RecordedSettings& settings = context->snapshot.settings.emplace();
  pickle::ItemCursor items = context->document.Items(value);
  while (const Value* key = items.Next()) {
    const Value* setting = items.Next();
    const std::string name = PrintValue(context->document, *key);
    const std::string text = PrintValue(context->document, *setting);
    settings.values[name] = text;
    ReadSetting(name, *setting, &settings);
    context->seen.has_cache_limits |= name == "max_cached_size";
  }
  context->snapshot.traits.has_settings = true;
  return absl::OkStatus();
}

// segments: the final state, cut into blocks.

namespace {

using trace::BlockState;
using trace::SnapshotBlock;
using trace::SnapshotSegment;

constexpr TorchRecordKind kSegment = {
    "segments", FieldSet({Field::kDevice, Field::kAddress, Field::kTotalSize, Field::kAllocatedSize, Field::kActiveSize,
                          Field::kRequestedSize, Field::kStream, Field::kSegmentType, Field::kSegmentPoolId,
                          Field::kIsExpandable, Field::kFrames, Field::kBlocks})};
constexpr TorchRecordKind kBlock = {"blocks", FieldSet({Field::kAddress, Field::kSize, Field::kRequestedSize,
                                                        Field::kState, Field::kFrames, Field::kHistory})};
constexpr TorchRecordKind kHistory = {"block histories", FieldSet({Field::kAddr, Field::kRealSize, Field::kFrames})};

std::string Hex(std::uint64_t address) { return absl::StrFormat("0x%x", address); }

absl::Status ReadState(const Record& record, BlockState* state) {
  absl::string_view name;
  if (absl::Status status = record.GetText(Field::kState, &name); !status.ok()) return status;
  if (name == "active_allocated") {
    *state = BlockState::kLive;
  } else if (name == "active_pending_free" || name == "active_awaiting_free") {
    *state = BlockState::kPending;
  } else if (name == "inactive") {
    *state = BlockState::kFree;
  } else {
    return absl::InvalidArgumentError(absl::StrCat("'state' is ", Quoted(name),
                                                   "; known are active_allocated, "
                                                   "active_pending_free and inactive (byte ",
                                                   record.offset(), ")"));
  }
  return absl::OkStatus();
}

// The newest of the block's earlier allocations comes first. Its size is what was asked, if it is about this block
// as it is now and not about one that was merged into it.
absl::Status ReadHistory(const Record& block_record, TorchContext* context, SnapshotBlock* block) {
  const Value* history = nullptr;
  absl::Status status = block_record.GetContainer(Field::kHistory, Kind::kList, &history);
  if (!status.ok()) return status;
  context->seen.has_history = true;
  const Value* newest = context->document.Items(*history).Next();
  if (newest == nullptr) return absl::OkStatus();
  if (newest->kind() != Kind::kDict) return Within("history[0]", ExpectKind(*newest, Kind::kDict));
  const Record record(context->document, *newest, kHistory, &context->names, &context->notes);
  if (const Value* frames = record.Find(Field::kFrames); frames != nullptr) {
    status = context->stacks.Read(*frames, &block->stack);
    if (!status.ok()) return Within("history[0]", status);
  }
  std::uint64_t address = 0, real_size = 0;
  const bool is_about_block = record.GetSize(Field::kAddr, &address).ok() && address == block->address &&
                              record.GetSize(Field::kRealSize, &real_size).ok();
  if (is_about_block && !block->requested_bytes && block->state != BlockState::kFree) {
    block->requested_bytes = real_size;
  }
  return absl::OkStatus();
}

absl::Status ReadBlockExtras(const Record& record, TorchContext* context, SnapshotBlock* block) {
  if (record.Has(Field::kRequestedSize)) {
    absl::Status status = record.GetSize(Field::kRequestedSize, &block->requested_bytes.emplace());
    if (!status.ok()) return status;
  }
  if (record.Has(Field::kHistory)) {
    if (absl::Status status = ReadHistory(record, context, block); !status.ok()) return status;
  }
  if (const Value* frames = record.Find(Field::kFrames); frames != nullptr) {
    context->seen.has_frames = true;
    if (absl::Status status = context->stacks.Read(*frames, &block->stack); !status.ok()) return status;
  }
  context->snapshot.traits.has_requested_bytes |= block->requested_bytes.has_value();
  context->snapshot.traits.has_stacks |= block->stack != trace::kNoStack;
  return absl::OkStatus();
}

// `address` is where the block must start: the segment's address plus the sizes before. `end` is the segment's.
absl::Status CheckPlace(const Record& record, std::uint64_t end, TorchContext* context, SnapshotBlock* block) {
  if (block->size_bytes == 0 || block->size_bytes > end - block->address) {
    return absl::InvalidArgumentError(absl::StrCat("'size' is ", block->size_bytes, ", but ", end - block->address,
                                                   " bytes of the segment are left: the blocks must tile it (byte ",
                                                   record.offset(), ")"));
  }
  if (!record.Has(Field::kAddress)) return absl::OkStatus();
  context->seen.has_addresses = true;
  std::uint64_t address = 0;
  absl::Status status = record.GetSize(Field::kAddress, &address);
  if (!status.ok() || address == block->address) return status;
  return absl::InvalidArgumentError(absl::StrCat("'address' is ", Hex(address), ", but the block before ends at ",
                                                 Hex(block->address), ": the blocks must tile the segment (byte ",
                                                 record.offset(), ")"));
}

absl::Status ReadBlock(const Value& value, std::uint64_t end, TorchContext* context, SnapshotBlock* block) {
  if (value.kind() != Kind::kDict) return ExpectKind(value, Kind::kDict);
  const Record record(context->document, value, kBlock, &context->names, &context->notes);
  absl::Status status = record.GetSize(Field::kSize, &block->size_bytes);
  if (status.ok()) status = CheckPlace(record, end, context, block);
  if (status.ok()) status = ReadState(record, &block->state);
  if (status.ok()) status = ReadBlockExtras(record, context, block);
  return status;
}

absl::Status ReadBlocks(const Record& record, TorchContext* context, SnapshotSegment* segment) {
  const Value* blocks = nullptr;
  absl::Status status = record.GetContainer(Field::kBlocks, Kind::kList, &blocks);
  if (status.ok()) status = context->Visit(*blocks);
  if (!status.ok()) return status;
  segment->blocks.reserve(context->document.Size(*blocks));
  const std::uint64_t end = segment->address + segment->size_bytes;
  std::uint64_t at = segment->address;
  pickle::ItemCursor items = context->document.Items(*blocks);
  while (const Value* value = items.Next()) {
    SnapshotBlock& block = segment->blocks.emplace_back();
    block.address = at;
    status = ReadBlock(*value, end, context, &block);
    if (!status.ok()) return Within(absl::StrCat("blocks[", segment->blocks.size() - 1, "]"), status);
    at += block.size_bytes;
  }
  if (at == end) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the blocks end ", end - at, " bytes before the segment does (byte ",
                                                 record.offset(), "): they must tile it"));
}

absl::Status ReadPlace(const Record& record, SnapshotSegment* segment) {
  std::uint64_t device = 0;
  // PyTorch gives the host's memory the device -1.
  std::int64_t host = 0;
  const bool is_host = record.GetSigned(Field::kDevice, &host).ok() && host == -1;
  absl::Status status =
      record.Has(Field::kDevice) && !is_host ? record.GetSize(Field::kDevice, &device) : absl::OkStatus();
  if (status.ok() && device > kMaxDevice) status = record.Wrong(Field::kDevice, "a device number");
  segment->device = static_cast<int>(device);
  if (status.ok()) status = record.GetSize(Field::kAddress, &segment->address);
  if (status.ok()) status = record.GetSize(Field::kTotalSize, &segment->size_bytes);
  if (!status.ok()) return status;
  if (segment->size_bytes > 0 && segment->address + segment->size_bytes <= std::uint64_t{1} << 63) return status;
  return absl::InvalidArgumentError(absl::StrCat("'total_size' is ", segment->size_bytes, " at address ",
                                                 Hex(segment->address), ": no such range (byte ", record.offset(),
                                                 ")"));
}

absl::Status ReadSegmentKind(const Record& record, TorchContext* context, SnapshotSegment* segment) {
  absl::Status status;
  absl::string_view type;
  if (record.Has(Field::kSegmentType)) status = record.GetText(Field::kSegmentType, &type);
  segment->is_small_pool = type == "small";
  if (status.ok() && type != "small" && type != "large") {
    context->notes.Add("unknown_segment_type",
                       absl::StrCat("segments have the type ", Quoted(type), "; they are taken as large"));
  }
  if (status.ok() && record.Has(Field::kStream)) {
    std::uint64_t stream = 0;
    context->seen.has_streams = true;
    status = record.GetHandle(Field::kStream, &stream);
    segment->stream = Stream{stream};
  }
  if (status.ok() && record.Has(Field::kSegmentPoolId)) status = record.GetPool(Field::kSegmentPoolId, &segment->pool);
  if (status.ok() && record.Has(Field::kIsExpandable)) {
    status = record.GetBool(Field::kIsExpandable, &segment->is_expandable);
  }
  if (const Value* frames = record.Find(Field::kFrames); status.ok() && frames != nullptr) {
    status = context->stacks.Read(*frames, &segment->stack);
    context->snapshot.traits.has_stacks |= segment->stack != trace::kNoStack;
  }
  return status;
}

// A sum the file states beside the blocks must be what the blocks add up to.
absl::Status CheckSum(const Record& record, Field field, std::uint64_t of_blocks, TorchContext* context) {
  if (!record.Has(field)) return absl::OkStatus();
  std::uint64_t stated = 0;
  absl::Status status = record.GetSize(field, &stated);
  if (status.ok() && stated != of_blocks) {
    context->notes.Add("segment_sum_differs", absl::StrCat("segments state another ", FieldName(field),
                                                           " than their blocks add up to; the blocks are believed"));
  }
  return status;
}

absl::Status CheckSums(const Record& record, TorchContext* context, const SnapshotSegment& segment) {
  std::uint64_t allocated = 0, active = 0, requested = 0;
  for (const SnapshotBlock& block : segment.blocks) {
    if (block.state == BlockState::kFree) continue;
    active += block.size_bytes;
    requested += block.requested_bytes.value_or(0);
    if (block.state == BlockState::kLive) allocated += block.size_bytes;
  }
  absl::Status status = CheckSum(record, Field::kAllocatedSize, allocated, context);
  if (status.ok()) status = CheckSum(record, Field::kActiveSize, active, context);
  if (status.ok()) status = CheckSum(record, Field::kRequestedSize, requested, context);
  return status;
}

absl::Status ReadSegment(const Value& value, TorchContext* context, SnapshotSegment* segment) {
  if (value.kind() != Kind::kDict) return ExpectKind(value, Kind::kDict);
  const Record record(context->document, value, kSegment, &context->names, &context->notes);
  absl::Status status = ReadPlace(record, segment);
  if (status.ok()) status = ReadSegmentKind(record, context, segment);
  if (status.ok()) status = ReadBlocks(record, context, segment);
  if (status.ok()) status = CheckSums(record, context, *segment);
  return status;
}

absl::Status ReadSegmentList(const Value& segments, TorchContext* context, std::vector<SnapshotSegment>& out) {
  if (segments.kind() != Kind::kList) return ExpectKind(segments, Kind::kList);
  if (absl::Status status = context->Visit(segments); !status.ok()) return status;
  out.reserve(context->document.Size(segments));
  pickle::ItemCursor items = context->document.Items(segments);
  while (const Value* segment = items.Next()) {
    absl::Status status = ReadSegment(*segment, context, &out.emplace_back());
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat("[", out.size() - 1, "]: ", status.message()));
    }
  }
  return absl::OkStatus();
}

// Reorders `segments` by `order`.
void Permute(const std::vector<std::uint32_t>& order, std::vector<SnapshotSegment>* segments) {
  std::vector<SnapshotSegment> sorted;
  sorted.reserve(order.size());
  for (std::uint32_t index : order) sorted.push_back(std::move((*segments)[index]));
  *segments = std::move(sorted);
}

// Segments in order of device and address must not overlap.
absl::Status SortByAddress(absl::string_view name, std::vector<SnapshotSegment>& segments) {
  std::vector<std::uint32_t> order(segments.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(segments[a].device, segments[a].address) < std::pair(segments[b].device, segments[b].address);
  });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const SnapshotSegment& before = segments[order[i - 1]];
    const SnapshotSegment& after = segments[order[i]];
    if (before.device != after.device || before.address + before.size_bytes <= after.address) continue;
    return absl::InvalidArgumentError(absl::StrCat("[", order[i], "]: starts at ", Hex(after.address), ", inside ",
                                                   name, "[", order[i - 1], "], which ends at ",
                                                   Hex(before.address + before.size_bytes)));
  }
  Permute(order, &segments);
  return absl::OkStatus();
}

// "segments[3]: ..." or "segments: ...".
absl::Status AfterName(absl::string_view name, const absl::Status& status) {
  if (status.ok()) return status;
  const absl::string_view join = absl::StartsWith(status.message(), "[") ? "" : ": ";
  return absl::Status(status.code(), absl::StrCat(name, join, status.message()));
}

}  // namespace

absl::Status ReadSegments(const Value& segments, TorchContext* context) {
  return AfterName("segments", ReadSegmentList(segments, context, context->snapshot.segments));
}

void ReadHostSegments(const Value& segments, TorchContext* context) {
  std::vector<SnapshotSegment>& out = context->snapshot.host.segments;
  context->snapshot.traits.has_host = true;
  absl::Status status = ReadSegmentList(segments, context, out);
  for (SnapshotSegment& segment : out) segment.device = 0;
  if (status.ok()) status = SortByAddress("host_segments", out);
  if (status.ok()) return;
  out.clear();
  context->notes.Add("host_segments",
                     absl::StrCat(AfterName("host_segments", status).message(), "; pinned host memory is not shown"));
}

absl::Status SortSegments(TorchContext* context) {
  return AfterName("segments", SortByAddress("segments", context->snapshot.segments));
}

// device_traces: one list of entries per device, and external_annotations.

namespace {

using trace::Action;
using trace::Event;

constexpr TorchRecordKind kEntry = {
    "trace entries",
    FieldSet({Field::kAction, Field::kAddr, Field::kDeviceFree, Field::kSize, Field::kStream, Field::kTimeUs,
              Field::kFrames, Field::kCompileContext, Field::kUserMetadata, Field::kInternalMetadata, Field::kPoolId})};
constexpr TorchRecordKind kAnnotation = {"external_annotations",
                                         FieldSet({Field::kStage, Field::kName, Field::kDevice, Field::kTimeUs})};

// Must the entry say where and how much? Markers need not.
bool HasPlace(Action action) {
  return action != Action::kOom && action != Action::kSnapshot && action != Action::kAnnotate &&
         action != Action::kUnknown;
}

absl::Status ReadAction(const Record& record, TorchContext* context, Event* event) {
  absl::string_view name;
  if (absl::Status status = record.GetText(Field::kAction, &name); !status.ok()) return status;
  event->action = trace::ParseAction(name).value_or(Action::kUnknown);
  if (event->action == Action::kUnknown) {
    context->notes.Add("unknown_action", absl::StrCat("trace entries have the action ", Quoted(name),
                                                      ", which this version does not know; they are kept as unknown"));
  }
  return absl::OkStatus();
}

// oom entries have the device's free bytes in device_free; before that key existed, in addr.
absl::Status ReadAddress(const Record& record, Event* event) {
  const bool is_free_bytes = event->action == Action::kOom && record.Has(Field::kDeviceFree);
  const Field field = is_free_bytes ? Field::kDeviceFree : Field::kAddr;
  if (!record.Has(field) && !HasPlace(event->action)) return absl::OkStatus();
  return record.GetSize(field, &event->address);
}

absl::Status ReadSizeAndStream(const Record& record, TorchContext* context, Event* event) {
  if (record.Has(Field::kSize) || HasPlace(event->action) || event->action == Action::kOom) {
    if (absl::Status status = record.GetSize(Field::kSize, &event->size_bytes); !status.ok()) return status;
  }
  if (!record.Has(Field::kStream)) {
    if (HasPlace(event->action)) {
      context->notes.Add("missing_stream", "trace entries do not name their stream; it is taken as 0");
    }
    return absl::OkStatus();
  }
  std::uint64_t stream = 0;
  absl::Status status = record.GetHandle(Field::kStream, &stream);
  event->stream = Stream{stream};
  return status;
}

// The text of a label; what is no text is printed.
std::string LabelText(const Record& record, Field field, TorchContext* context) {
  const Value* value = record.Find(field);
  if (value == nullptr || value->kind() == Kind::kNone) return "";
  if (value->kind() == Kind::kString) return ToUtf8(context->document.Text(*value));
  return PrintValue(context->document, *value);
}

// What tells a label's text from another while the document has it: its number, +1.
std::uint64_t NumberOf(const Value* text) {
  if (text == nullptr) return 0;
  return text->kind() == Kind::kString ? text->payload() + 1 : TorchContext::kNoNumber;
}

void ReadLabel(const Record& record, TorchContext* context, Event* event) {
  context->seen.has_compile_context |= record.Has(Field::kCompileContext);
  context->snapshot.traits.has_labels |= record.Has(Field::kUserMetadata);
  const TorchContext::LabelTexts texts = {NumberOf(record.Find(Field::kUserMetadata)),
                                          NumberOf(record.Find(Field::kInternalMetadata)),
                                          NumberOf(record.Find(Field::kCompileContext))};
  if (texts == context->last_label_texts) {
    event->label = context->last_label;
    return;
  }
  event->label = InternLabel({.user_metadata = LabelText(record, Field::kUserMetadata, context),
                              .internal_metadata = LabelText(record, Field::kInternalMetadata, context),
                              .compile_context = LabelText(record, Field::kCompileContext, context)},
                             context);
  const bool has_numbers = std::find(texts.begin(), texts.end(), TorchContext::kNoNumber) == texts.end();
  context->last_label_texts = has_numbers ? texts : TorchContext::kNoTexts;
  context->last_label = event->label;
}

absl::Status ReadExtras(const Record& record, TorchContext* context, Event* event) {
  if (record.Has(Field::kTimeUs)) {
    if (absl::Status status = record.GetSigned(Field::kTimeUs, &event->time_us); !status.ok()) return status;
    context->snapshot.traits.has_time = true;
  }
  if (const Value* frames = record.Find(Field::kFrames); frames != nullptr) {
    if (absl::Status status = context->stacks.Read(*frames, &event->stack); !status.ok()) return status;
    context->snapshot.traits.has_stacks |= event->stack != trace::kNoStack;
  }
  if (const Value* pool = record.Find(Field::kPoolId); pool != nullptr && pool->kind() != Kind::kNone) {
    PoolId id;
    if (absl::Status status = record.GetPool(Field::kPoolId, &id); !status.ok()) return status;
    if (!trace::EventPool::CanHold(id)) return record.Wrong(Field::kPoolId, "one of fewer pools");
    event->pool = id;
    context->snapshot.traits.has_pool_ids = true;
  }
  if (record.Has(Field::kCompileContext) || record.Has(Field::kUserMetadata) || record.Has(Field::kInternalMetadata)) {
    ReadLabel(record, context, event);
  }
  return absl::OkStatus();
}

absl::Status ReadTrace(const Value& trace, TorchContext* context, std::vector<Event>* events) {
  if (trace.kind() != Kind::kList) return ExpectKind(trace, Kind::kList);
  if (absl::Status status = context->Visit(trace); !status.ok()) return status;
  events->reserve(context->document.Size(trace));
  pickle::ItemCursor items = context->document.Items(trace);
  while (const Value* entry = items.Next()) {
    absl::Status status = ReadEntry(*entry, context, &events->emplace_back());
    if (!status.ok()) {
      status = absl::Status(status.code(), absl::StrCat("[", events->size() - 1, "]: ", status.message()));
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status ReadAnnotation(const Value& value, TorchContext* context, trace::Annotation* annotation) {
  if (value.kind() != Kind::kDict) return ExpectKind(value, Kind::kDict);
  const Record record(context->document, value, kAnnotation, &context->names, &context->notes);
  absl::string_view stage, name;
  std::uint64_t device = 0;
  absl::Status status = record.GetText(Field::kStage, &stage);
  if (status.ok()) status = record.GetText(Field::kName, &name);
  if (status.ok()) status = record.GetSize(Field::kDevice, &device);
  if (status.ok()) status = record.GetSigned(Field::kTimeUs, &annotation->time_us);
  if (status.ok() && device > kMaxDevice) status = record.Wrong(Field::kDevice, "a device number");
  annotation->stage = ToUtf8(stage);
  annotation->name = ToUtf8(name);
  annotation->device = static_cast<int>(device);
  return status;
}

}  // namespace

trace::LabelId InternLabel(trace::Label label, TorchContext* context) {
  if (label.compile_context == "N/A") label.compile_context.clear();  // what PyTorch writes where nothing is compiled
  return context->snapshot.labels.Intern(label);
}

absl::Status ReadEntry(const Value& entry, TorchContext* context, Event* event) {
  if (entry.kind() != Kind::kDict) return ExpectKind(entry, Kind::kDict);
  const Record record(context->document, entry, kEntry, &context->names, &context->notes);
  event->file_byte = static_cast<std::uint32_t>(std::min<std::uint64_t>(entry.offset(), trace::kNoByte));
  absl::Status status = ReadAction(record, context, event);
  if (status.ok()) status = ReadAddress(record, event);
  if (status.ok()) status = ReadSizeAndStream(record, context, event);
  if (status.ok()) status = ReadExtras(record, context, event);
  return status;
}

absl::Status ReadDeviceTraces(const Value& traces, TorchContext* context) {
  if (traces.kind() != Kind::kList) return Within("device_traces", ExpectKind(traces, Kind::kList));
  if (absl::Status status = context->Visit(traces); !status.ok()) return Within("device_traces", status);
  context->seen.has_traces = true;
  pickle::ItemCursor items = context->document.Items(traces);
  std::vector<trace::EventList>& out = context->snapshot.device_traces;
  while (const Value* trace = items.Next()) {
    if (context->stream != nullptr && trace->kind() == Kind::kList && context->document.IsStreamedList(*trace)) {
      out.push_back(context->stream->TakeNext(*trace, out.size()));
      continue;
    }
    absl::Status status = ReadTrace(*trace, context, &out.emplace_back().Mutable());
    if (status.ok()) continue;
    const absl::string_view join = absl::string_view(status.message()).substr(0, 1) == "[" ? "" : ": ";
    return absl::Status(status.code(), absl::StrCat("device_traces[", out.size() - 1, "]", join, status.message()));
  }
  return absl::OkStatus();
}

void ReadHostTraces(const Value& traces, TorchContext* context) {
  std::vector<Event>& events = context->snapshot.host.events.Mutable();
  absl::Status status;
  // One list of entries, or, should a release write it as device_traces, one for each device.
  const bool is_nested = traces.kind() == Kind::kList && context->document.Size(traces) > 0 &&
                         context->document.Items(traces).Next()->kind() == Kind::kList;
  if (!is_nested) status = ReadTrace(traces, context, &events);
  if (is_nested) {
    pickle::ItemCursor items = context->document.Items(traces);
    while (const Value* trace = items.Next()) status.Update(ReadTrace(*trace, context, &events));
  }
  if (status.ok()) return;
  events.clear();
  context->notes.Add("host_traces", absl::StrCat("host_traces", status.message().substr(0, 1) == "[" ? "" : ": ",
                                                 status.message(), "; the history of pinned host memory is not shown"));
}

absl::Status ReadAnnotations(const Value& annotations, TorchContext* context) {
  if (annotations.kind() != Kind::kList) return Within("external_annotations", ExpectKind(annotations, Kind::kList));
  if (absl::Status status = context->Visit(annotations); !status.ok()) return Within("external_annotations", status);
  context->seen.has_annotations = true;
  pickle::ItemCursor items = context->document.Items(annotations);
  std::vector<trace::Annotation>& out = context->snapshot.annotations;
  while (const Value* annotation = items.Next()) {
    absl::Status status = ReadAnnotation(*annotation, context, &out.emplace_back());
    if (!status.ok()) return Within(absl::StrCat("external_annotations[", out.size() - 1, "]"), status);
  }
  return absl::OkStatus();
}

}  // namespace ashlar::formats
