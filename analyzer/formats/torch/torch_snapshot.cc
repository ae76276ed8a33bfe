#include "analyzer/formats/torch/torch_snapshot.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "allocator/trace/backend.h"
#include "analyzer/formats/pickle/pickle.h"
#include "analyzer/formats/pickle/pickle_writer.h"
#include "analyzer/formats/torch/torch_holders.h"
#include "analyzer/formats/torch/torch_parts.h"
#include "analyzer/formats/torch/torch_record.h"
#include "analyzer/formats/torch/torch_stream.h"
#include "analyzer/formats/utf8.h"

namespace ashlar::formats {

absl::Status TorchContext::Visit(const pickle::Value& list) {
  const std::uint64_t count = document.Size(list);
  if (count <= visits_left) {
    visits_left -= count;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("the list made at byte ", list.offset(),
                                                 " is shared by several places; PyTorch writes one for each"));
}

namespace {

using pickle::Kind;
using pickle::Value;

constexpr TorchRecordKind kTop = {
    "the top level",
    FieldSet({Field::kSegments, Field::kDeviceTraces, Field::kAllocatorSettings, Field::kExternalAnnotations,
              Field::kHostSegments, Field::kHostTraces, Field::kAshlarNames, Field::kAshlarPeakNames})};

absl::Status NotASnapshot(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("this pickle is not a PyTorch memory snapshot: ", why));
}

// The first few keys, to help the reader of the message recognise the file.
std::string SomeKeys(const pickle::Document& document, const Value& dict) {
  std::string keys;
  pickle::ItemCursor items = document.Items(dict);
  for (int i = 0; i < 4; ++i) {
    const Value* key = items.Next();
    if (key == nullptr) break;
    items.Next();
    absl::StrAppend(&keys, i == 0 ? "" : ", ",
                    key->kind() == Kind::kString ? Quoted(document.Text(*key)) : pickle::KindName(key->kind()));
  }
  return keys.empty() ? "it is empty" : absl::StrCat("its keys are ", keys);
}

absl::Status ReadParts(const Record& top, TorchContext* context) {
  absl::Status status;
  if (const Value* value = top.Find(Field::kSegments); value != nullptr) status = ReadSegments(*value, context);
  if (const Value* value = top.Find(Field::kDeviceTraces); status.ok() && value != nullptr) {
    status = ReadDeviceTraces(*value, context);
  }
  if (const Value* value = top.Find(Field::kAllocatorSettings); status.ok() && value != nullptr) {
    status = ReadSettings(*value, context);
  }
  if (const Value* value = top.Find(Field::kExternalAnnotations); status.ok() && value != nullptr) {
    status = ReadAnnotations(*value, context);
  }
  if (!status.ok()) return status;
  if (const Value* value = top.Find(Field::kHostSegments); value != nullptr) ReadHostSegments(*value, context);
  if (const Value* value = top.Find(Field::kHostTraces); value != nullptr) ReadHostTraces(*value, context);
  for (const auto& [field, holders] : {std::pair(Field::kAshlarNames, &context->snapshot.holders),
                                       std::pair(Field::kAshlarPeakNames, &context->snapshot.peak_holders)}) {
    if (const Value* value = top.Find(field); value != nullptr) ReadHolders(*value, context, holders);
  }
  return status;
}

absl::Status ReadDict(const Value& root, TorchContext* context) {
  const Record top(context->document, root, kTop, &context->names, &context->notes);
  if (!top.Has(Field::kSegments) && !top.Has(Field::kDeviceTraces)) {
    return NotASnapshot(absl::StrCat("it is a dict without 'segments'; ", SomeKeys(context->document, root)));
  }
  for (Field field : {Field::kSegments, Field::kDeviceTraces}) {
    if (!top.Has(field)) context->notes.Add("missing_part", absl::StrCat("the file has no '", FieldName(field), "'"));
  }
  return ReadParts(top, context);
}

// Up to 1.13: the segments themselves. An empty list is the snapshot of an allocator that was never used.
absl::Status ReadList(const Value& root, TorchContext* context) {
  const Value* first = context->document.Items(root).Next();
  if (first != nullptr && first->kind() != Kind::kDict) {
    return NotASnapshot(absl::StrCat("it is a list of which the first item is ", pickle::KindName(first->kind())));
  }
  bool is_segment = first == nullptr;
  if (first != nullptr) {
    pickle::ItemCursor items = context->document.Items(*first);
    while (const Value* key = items.Next()) {
      items.Next();
      is_segment |= context->names.Of(*key) == Field::kBlocks;
    }
  }
  if (!is_segment) return NotASnapshot("it is a list of dicts that have no 'blocks'");
  context->seen.is_list = true;
  return ReadSegments(root, context);
}

std::string Generation(const TorchContext::Seen& seen, const trace::Traits& traits, bool has_blocks) {
  if (seen.is_list && seen.has_frames) return "segments alone (memory_snapshot, 2.1 on)";
  if (seen.is_list) return seen.has_history || seen.has_streams ? "segment list (1.13)" : "segment list (up to 1.12)";
  if (traits.has_host) return "host memory (2.14, 2.15)";
  if (seen.has_cache_limits) return "cache limits (2.13)";
  if (traits.has_pool_ids) return "pool ids (2.12)";
  if (traits.has_labels) return "user metadata (2.10 on)";
  if (seen.has_compile_context) return "compile context (2.7 on)";
  if (seen.has_annotations) return "annotations (2.5 on)";
  if (traits.has_settings) return "settings (2.3 on)";
  if (seen.has_history || (has_blocks && !seen.has_addresses)) return "history (2.0)";
  return has_blocks ? "frames (2.1, 2.2)" : "unknown (no blocks)";
}

void FillTraits(TorchContext* context) {
  trace::Snapshot& snapshot = context->snapshot;
  const bool has_blocks = !snapshot.segments.empty();
  snapshot.traits.has_block_addresses = context->seen.has_addresses || !has_blocks;
  snapshot.traits.generation = Generation(context->seen, snapshot.traits, has_blocks);
  const trace::Backend backend = trace::BackendOf(snapshot);
  if (backend == trace::Backend::kXpu) snapshot.traits.generation = "XPU";
  if (backend == trace::Backend::kHip) absl::StrAppend(&snapshot.traits.generation, ", ROCm");
  if (context->document.trailing_bytes() > 0) {
    context->notes.Add("trailing_bytes", "bytes follow the end of the pickle; they were not read",
                       context->document.trailing_bytes());
  }
  snapshot.notes = context->notes.Take();
}

absl::Status ReadRoot(TorchContext* context) {
  const Value& root = context->document.root();
  if (root.kind() == Kind::kDict) return ReadDict(root, context);
  if (root.kind() == Kind::kList) return ReadList(root, context);
  return NotASnapshot(absl::StrCat("its top level is ", pickle::KindName(root.kind())));
}

absl::StatusOr<trace::Snapshot> ReadRest(TorchContext* context) {
  absl::Status status = ReadRoot(context);
  if (status.ok()) status = SortSegments(context);
  if (!status.ok()) return status;
  FillTraits(context);
  return std::move(context->snapshot);
}

}  // namespace

absl::StatusOr<trace::Snapshot> ReadTorchSnapshotStreamed(absl::string_view pickle, const ReadLimits& limits,
                                                          std::uint64_t* decoded) {
  pickle::Document document;
  TorchContext context(document);
  TraceStream stream(&context, pickle.size(), limits);
  absl::Status status = pickle::ReadStreamed(pickle, {}, FieldName(Field::kDeviceTraces), stream, document);
  if (decoded != nullptr) *decoded = stream.decoded();
  if (!status.ok()) return status;
  stream.Finish();
  absl::StatusOr<trace::Snapshot> snapshot = ReadRest(&context);
  if (snapshot.ok() && stream.IsWhole() && !document.has_missed_items()) return snapshot;
  return absl::AbortedError("to be read whole");
}

absl::StatusOr<trace::Snapshot> ReadTorchSnapshotWhole(absl::string_view pickle) {
  const absl::StatusOr<pickle::Document> document = pickle::Read(pickle);
  if (!document.ok()) return document.status();
  TorchContext context(*document);
  return ReadRest(&context);
}

absl::StatusOr<trace::Snapshot> ReadTorchSnapshot(absl::string_view pickle, const ReadLimits& limits) {
  absl::StatusOr<trace::Snapshot> streamed = ReadTorchSnapshotStreamed(pickle, limits);
  return absl::IsAborted(streamed.status()) ? ReadTorchSnapshotWhole(pickle) : streamed;
}

namespace {

using pickle::MemoIndex;
using trace::BlockState;
using trace::SnapshotBlock;
using trace::SnapshotSegment;

absl::string_view StateName(BlockState state) {
  switch (state) {
    case BlockState::kLive:
      return "active_allocated";
    case BlockState::kPending:
      return "active_pending_free";
    case BlockState::kFree:
      return "inactive";
  }
  return "inactive";
}

class Writer {
 public:
  Writer(const trace::Snapshot& snapshot, ByteSink& out)
      : snapshot_(snapshot),
        out_(out),
        stacks_(snapshot.stacks.stack_count()),
        frames_(snapshot.stacks.frame_count()) {}

  void Run() {
    out_.BeginDict();
    Segments();
    DeviceTraces();
    if (snapshot_.traits.has_host || !snapshot_.host.IsEmpty()) Host();
    if (snapshot_.settings) Settings(*snapshot_.settings);
    if (snapshot_.settings || !snapshot_.annotations.empty()) Annotations();
    for (const auto& [field, holders] : {std::pair(Field::kAshlarNames, &snapshot_.holders),
                                         std::pair(Field::kAshlarPeakNames, &snapshot_.peak_holders)}) {
      if (!holders->has_value()) continue;
      Key(field);
      WriteHolders(**holders, snapshot_, out_);
    }
    out_.EndDict();
    out_.Finish();
  }

 private:
  void Key(Field field) { out_.Text(FieldName(field)); }
  void Number(Field field, std::uint64_t value) {
    Key(field);
    out_.Unsigned(value);
  }
  void Text(Field field, absl::string_view text) {
    Key(field);
    out_.Text(text);
  }
  // A handle is written with a sign: above 2^63 it would need nine bytes, which the viewer does not read.
  void StreamOf(Stream stream) {
    Key(Field::kStream);
    out_.Signed(static_cast<std::int64_t>(Handle(stream)));
  }
  void Pool(Field field, PoolId pool) {
    Key(field);
    out_.Pair(pool.first, pool.second);
  }

  // --- stacks: each list and each frame once, referred to afterwards ---------------------------------------------
  void Stack(trace::StackId id) {
    Key(Field::kFrames);
    if (id != trace::kNoStack && stacks_[id]) return out_.Refer(*stacks_[id]);
    out_.BeginList();
    for (trace::FrameId frame : snapshot_.stacks.stack(id)) FrameOf(frame);
    out_.EndList();
    if (id != trace::kNoStack) stacks_[id] = out_.Remember();
  }
  void FrameOf(trace::FrameId id) {
    if (frames_[id]) return out_.Refer(*frames_[id]);
    const trace::Frame& frame = snapshot_.stacks.frame(id);
    out_.BeginDict();
    Text(Field::kName, frame.function);
    Text(Field::kFilename, snapshot_.stacks.RecordedFile(id));
    Key(Field::kLine);
    out_.Signed(frame.line);
    if (frame.fx != trace::FxNode{}) FxNodeOf(frame.fx);
    out_.EndDict();
    frames_[id] = out_.Remember();
  }

  void FxNodeOf(const trace::FxNode& fx) {
    Text(Field::kFxNodeOp, fx.op);
    Text(Field::kFxNodeName, fx.name);
    Text(Field::kFxNodeTarget, fx.target);
    if (!fx.original_trace.empty()) Text(Field::kFxOriginalTrace, fx.original_trace);
  }

  // --- segments --------------------------------------------------------------------------------------------------
  void Segments() {
    Key(Field::kSegments);
    out_.BeginList();
    for (const SnapshotSegment& segment : snapshot_.segments) SegmentOf(segment, segment.device);
    out_.EndList();
  }

  // PyTorch's device of the host's memory is -1.
  void Host() {
    Key(Field::kHostSegments);
    out_.BeginList();
    for (const SnapshotSegment& segment : snapshot_.host.segments) SegmentOf(segment, -1);
    out_.EndList();
    Key(Field::kHostTraces);
    out_.BeginList();
    for (const trace::Event& event : snapshot_.host.events) EventOf(event);
    out_.EndList();
  }

  void SegmentOf(const SnapshotSegment& segment, int device) {
    out_.BeginDict();
    Key(Field::kDevice);
    out_.Signed(device);
    Number(Field::kAddress, segment.address);
    Number(Field::kTotalSize, segment.size_bytes);
    Sums(segment);
    StreamOf(segment.stream);
    Text(Field::kSegmentType, segment.is_small_pool ? "small" : "large");
    Pool(Field::kSegmentPoolId, segment.pool);
    Key(Field::kIsExpandable);
    out_.Bool(segment.is_expandable);
    Stack(segment.stack);
    Key(Field::kBlocks);
    out_.BeginList();
    for (const SnapshotBlock& block : segment.blocks) BlockOf(block);
    out_.EndList();
    out_.EndDict();
  }

  void Sums(const SnapshotSegment& segment) {
    std::uint64_t allocated = 0, active = 0, requested = 0;
    for (const SnapshotBlock& block : segment.blocks) {
      if (block.state == BlockState::kFree) continue;
      active += block.size_bytes;
      allocated += block.state == BlockState::kLive ? block.size_bytes : 0;
      requested += block.requested_bytes.value_or(0);
    }
    Number(Field::kAllocatedSize, allocated);
    Number(Field::kActiveSize, active);
    Number(Field::kRequestedSize, requested);
  }

  void BlockOf(const SnapshotBlock& block) {
    out_.BeginDict();
    Number(Field::kAddress, block.address);
    Number(Field::kSize, block.size_bytes);
    // PyTorch's tools look for it in free blocks too, where it means nothing.
    const bool is_free_of_many = block.state == BlockState::kFree && snapshot_.traits.has_requested_bytes;
    if (block.requested_bytes || is_free_of_many) Number(Field::kRequestedSize, block.requested_bytes.value_or(0));
    Text(Field::kState, StateName(block.state));
    Stack(block.stack);
    out_.EndDict();
  }

  // --- traces ----------------------------------------------------------------------------------------------------
  void DeviceTraces() {
    Key(Field::kDeviceTraces);
    out_.BeginList();
    for (const trace::EventList& events : snapshot_.device_traces) {
      out_.BeginList();
      for (const trace::Event& event : events) EventOf(event);
      out_.EndList();
    }
    out_.EndList();
  }

  void EventOf(const trace::Event& event) {
    out_.BeginDict();
    Text(Field::kAction, trace::ActionName(event.action));
    Number(event.action == trace::Action::kOom ? Field::kDeviceFree : Field::kAddr, event.address);
    Number(Field::kSize, event.size_bytes);
    StreamOf(event.stream);
    if (event.time_us != trace::kNoTime) Time(event.time_us);
    if (event.pool.has_value()) Pool(Field::kPoolId, *event.pool);
    if (snapshot_.traits.has_labels || event.label != trace::kNoLabel) Label(snapshot_.labels.label(event.label));
    Stack(event.stack);
    out_.EndDict();
  }
  // Of a release that has labels every entry has the two keys, be they empty.
  void Label(const trace::Label& label) {
    Text(Field::kCompileContext, label.compile_context.empty() ? "N/A" : label.compile_context);
    Text(Field::kUserMetadata, label.user_metadata);
    if (!label.internal_metadata.empty()) Text(Field::kInternalMetadata, label.internal_metadata);
  }
  void Time(std::int64_t time_us) {
    Key(Field::kTimeUs);
    out_.Signed(time_us);
  }

  void Annotations() {
    Key(Field::kExternalAnnotations);
    out_.BeginList();
    for (const trace::Annotation& annotation : snapshot_.annotations) {
      out_.BeginDict();
      Text(Field::kStage, annotation.stage);
      Text(Field::kName, annotation.name);
      Number(Field::kDevice, static_cast<std::uint64_t>(annotation.device));
      Time(annotation.time_us);
      out_.EndDict();
    }
    out_.EndList();
  }

  // --- settings --------------------------------------------------------------------------------------------------
  // The named fields first, overridden by what `values` has under the same key.
  void Settings(const trace::RecordedSettings& settings) {
    std::map<std::string, std::string> values = {
        {"expandable_segments", settings.expandable_segments ? "True" : "False"}};
    if (trace::BackendOf(snapshot_) != trace::Backend::kXpu) {
      values["max_split_size"] = settings.max_split_size_bytes ? absl::StrCat(*settings.max_split_size_bytes) : "-1";
      values["garbage_collection_threshold"] = absl::StrCat(settings.garbage_collection_threshold);
    }
    const bool has_text =
        settings.values.contains("PYTORCH_ALLOC_CONF") || settings.values.contains("PYTORCH_HIP_ALLOC_CONF");
    if (!has_text) values["PYTORCH_CUDA_ALLOC_CONF"] = settings.conf;
    for (const auto& [key, value] : settings.values) values[key] = value;
    Key(Field::kAllocatorSettings);
    out_.BeginDict();
    for (const auto& [key, value] : values) {
      out_.Text(key);
      Setting(key, value);
    }
    out_.EndDict();
  }

  void Setting(absl::string_view key, absl::string_view value) {
    std::int64_t number = 0;
    double fraction = 0;
    const bool is_text = absl::EndsWith(key, "ALLOC_CONF") || value.empty();
    if (is_text) return out_.Text(value);
    if (key == "roundup_power2_divisions") return Divisions(value);
    if (value == "True" || value == "False") return out_.Bool(value == "True");
    if (value == "None") return out_.None();
    if (absl::SimpleAtoi(value, &number) && absl::StrCat(number) == value) return out_.Signed(number);
    const bool looks_numeric = value.find_first_not_of("+-.0123456789e") == absl::string_view::npos;
    if (looks_numeric && absl::SimpleAtod(value, &fraction)) return out_.Float(fraction);
    out_.Text(value);
  }

  // "1:0,2:4" as {'1': 0, '2': 4}.
  void Divisions(absl::string_view value) {
    out_.BeginDict();
    for (absl::string_view item : absl::StrSplit(value, ',')) {
      const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(item, absl::MaxSplits(':', 1));
      std::int64_t divisions = 0;
      out_.Text(parts.first);
      absl::SimpleAtoi(parts.second, &divisions) ? out_.Signed(divisions) : out_.Text(parts.second);
    }
    out_.EndDict();
  }

  const trace::Snapshot& snapshot_;
  pickle::PickleWriter out_;
  std::vector<std::optional<MemoIndex>> stacks_;
  std::vector<std::optional<MemoIndex>> frames_;
};

}  // namespace

void WriteTorchSnapshot(const trace::Snapshot& snapshot, ByteSink& out) { Writer(snapshot, out).Run(); }

std::string WriteTorchSnapshot(const trace::Snapshot& snapshot) {
  std::string out;
  StringSink sink(&out);
  WriteTorchSnapshot(snapshot, sink);
  return out;
}

}  // namespace ashlar::formats
