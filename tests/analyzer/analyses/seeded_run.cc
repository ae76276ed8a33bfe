#include "tests/analyzer/analyses/seeded_run.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/base/check.h"
#include "analyzer/replay/recorded_options.h"
#include "analyzer/timeline/observed.h"

namespace ashlar::tests {
namespace {

constexpr std::int64_t kEventUs = 10;

device::SimDeviceOptions DeviceOf(const SeededOptions& options) {
  device::SimDeviceOptions out;
  out.capacity_bytes = options.capacity_bytes;
  return out;
}

policy::Options PolicyOf(const SeededOptions& options) {
  absl::StatusOr<policy::Options> out = policy::ParseConf(options.conf, policy::Compat::kTorch210);
  ASHLAR_CHECK(out.ok());
  return *std::move(out);
}

// As PyTorch writes them down.
trace::RecordedSettings SettingsOf(const policy::Options& options) {
  trace::RecordedSettings out;
  out.conf = options.conf;
  out.expandable_segments = options.expandable_segments;
  out.garbage_collection_threshold = options.garbage_collection_threshold;
  if (options.max_split_size_bytes != policy::kUnlimited) out.max_split_size_bytes = options.max_split_size_bytes;
  std::vector<std::string> divisions;
  for (std::size_t i = 0; i < options.roundup_power2_divisions.size(); ++i) {
    divisions.push_back(absl::StrCat(1 << i, ": ", options.roundup_power2_divisions[i]));
  }
  out.values = {{"PYTORCH_CUDA_ALLOC_CONF", options.conf},
                {"expandable_segments", options.expandable_segments ? "True" : "False"},
                {"graph_capture_record_stream_reuse", "False"},
                {"max_split_size", out.max_split_size_bytes ? absl::StrCat(*out.max_split_size_bytes) : "-1"},
                {"roundup_power2_divisions", absl::StrCat("{", absl::StrJoin(divisions, ", "), "}")}};
  return out;
}

}  // namespace

SeededRun::SeededRun(SeededOptions options)
    : options_(std::move(options)), device_(DeviceOf(options_)), allocator_(&device_, PolicyOf(options_)) {
  snapshot_.device_traces.resize(1);
  allocator_.SetSink(this);
}

void SeededRun::At(std::initializer_list<SeededFrame> frames) {
  std::vector<trace::FrameId> ids;
  for (const SeededFrame& frame : frames) {
    ids.push_back(snapshot_.stacks.InternFrame(frame.file, frame.line, frame.function));
  }
  stack_ = snapshot_.stacks.InternStack(ids);
}

void SeededRun::Fail(std::uint64_t bytes) { ASHLAR_CHECK(!allocator_.Allocate(bytes, Stream{}, PoolId{}).ok()); }

std::uint64_t SeededRun::LiveBytes() const {
  std::uint64_t out = 0;
  for (const trace::SnapshotSegment& segment : allocator_.Segments()) {
    for (const trace::SnapshotBlock& block : segment.blocks) {
      if (block.state == trace::BlockState::kLive) out += block.size_bytes;
    }
  }
  return out;
}

core::Block* SeededRun::Allocate(std::uint64_t bytes, Stream stream, PoolId pool) {
  if (is_out_of_memory_) return nullptr;
  absl::StatusOr<core::Block*> block = allocator_.Allocate(bytes, stream, pool);
  if (!block.ok()) {
    is_out_of_memory_ = true;
    return nullptr;
  }
  stack_of_[(*block)->address] = stack_;
  return *block;
}

void SeededRun::Free(core::Block* block) {
  if (!is_out_of_memory_ && block != nullptr) allocator_.Free(block);
}

void SeededRun::Free(std::vector<core::Block*>& blocks) {
  for (auto it = blocks.rbegin(); it != blocks.rend(); ++it) Free(*it);
  blocks.clear();
}

void SeededRun::RecordStream(core::Block* block, Stream stream) {
  if (!is_out_of_memory_ && block != nullptr) allocator_.RecordStream(block, stream);
}

void SeededRun::EmptyCache() {
  if (!is_out_of_memory_) allocator_.EmptyCache();
}

void SeededRun::ForgetEvents() {
  snapshot_.device_traces[0].clear();
  snapshot_.annotations.clear();
}

void SeededRun::Mark(const char* stage, const std::string& name) {
  if (!is_out_of_memory_) snapshot_.annotations.push_back({stage, name, 0, time_us_});
  time_us_ += kEventUs;
}

void SeededRun::OnEvent(const trace::Event& event, std::uint64_t) {
  trace::Event recorded = event;
  recorded.stack = stack_;
  recorded.time_us = time_us_;
  if (!options_.has_pool_ids) recorded.pool.reset();
  time_us_ += kEventUs;
  snapshot_.device_traces[0].push_back(recorded);
}

SeededInput SeededRun::Finish() {
  SeededInput out;
  out.snapshot = std::move(snapshot_);
  out.snapshot.segments = allocator_.Segments();
  for (trace::SnapshotSegment& segment : out.snapshot.segments) {
    for (trace::SnapshotBlock& block : segment.blocks) {
      if (block.state != trace::BlockState::kFree) block.stack = stack_of_.at(block.address);
    }
  }
  out.snapshot.settings = SettingsOf(allocator_.options());
  trace::Traits& traits = out.snapshot.traits;
  traits.has_time = traits.has_stacks = traits.has_requested_bytes = traits.has_settings = true;
  traits.has_pool_ids = options_.has_pool_ids;
  return out;
}

Diagnosis::Diagnosis(const SeededInput& input) {
  const trace::Snapshot& snapshot = input.snapshot;
  absl::StatusOr<policy::Options> options = replay::RecordedOptions(snapshot, replay::GuessCompat(snapshot));
  ASHLAR_CHECK(options.ok());
  options_ = *std::move(options);
  absl::StatusOr<timeline::Timeline> timeline =
      timeline::MakeObservedTimeline({snapshot, 0}, replay::SizeRuleOf(options_));
  ASHLAR_CHECK(timeline.ok());
  timeline_.emplace(*std::move(timeline));
  analyses::CauseFacts facts;
  facts.options = &options_;
  facts.stacks = &snapshot.stacks;
  if (snapshot.settings.has_value()) facts.settings = &*snapshot.settings;
  facts.annotations = snapshot.annotations;
  facts.named = &snapshot;
  facts.device.total_bytes = input.total_bytes;
  facts.device.device_used_bytes = input.device_used_bytes;
  facts.device.ranks = input.ranks;
  context_ = analyses::ContextOf(*timeline_, facts);
  context_.fails_again = input.fails_again;
  causes_ = analyses::FindCauses(context_);
}

std::vector<analyses::CauseFinding> Diagnosis::Found() const {
  std::vector<analyses::CauseFinding> out;
  for (const analyses::CauseFinding& cause : causes_) {
    if (cause.finding == analyses::Finding::kFound) out.push_back(cause);
  }
  return out;
}

const analyses::CauseFinding& Diagnosis::Of(analyses::CauseKind kind) const {
  for (const analyses::CauseFinding& cause : causes_) {
    if (cause.kind == kind) return cause;
  }
  ASHLAR_CHECK(false);
  return causes_.front();
}

}  // namespace ashlar::tests
