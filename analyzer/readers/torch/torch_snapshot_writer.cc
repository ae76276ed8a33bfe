#include "analyzer/readers/torch/torch_snapshot_writer.h"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "analyzer/readers/pickle/pickle_writer.h"
#include "analyzer/readers/torch/torch_fields.h"

namespace ashlar::readers {
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
    Text(Field::kFilename, frame.file);
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
        {"max_split_size", settings.max_split_size_bytes ? absl::StrCat(*settings.max_split_size_bytes) : "-1"},
        {"garbage_collection_threshold", absl::StrCat(settings.garbage_collection_threshold)},
        {"expandable_segments", settings.expandable_segments ? "True" : "False"}};
    if (!settings.values.contains("PYTORCH_ALLOC_CONF")) values["PYTORCH_CUDA_ALLOC_CONF"] = settings.conf;
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

}  // namespace ashlar::readers
