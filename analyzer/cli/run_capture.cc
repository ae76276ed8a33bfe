#include "analyzer/cli/run_capture.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/policy/options.h"

namespace ashlar::cli {
namespace {

trace::RecordedSettings SettingsOf(const policy::Options& options) {
  trace::RecordedSettings out;
  out.conf = options.conf;
  if (options.max_split_size_bytes != policy::kUnlimited) out.max_split_size_bytes = options.max_split_size_bytes;
  out.garbage_collection_threshold = options.garbage_collection_threshold;
  out.expandable_segments = options.expandable_segments;
  // A key that tells the newer rules from the older ones.
  if (options.compat == policy::Compat::kTorch210 || options.compat == policy::Compat::kTorchLatest) {
    out.values["large_segment_size"] = absl::StrCat(options.large_segment_bytes);
  }
  std::string divisions;
  for (std::size_t i = 0; i < options.roundup_power2_divisions.size(); ++i) {
    absl::StrAppend(&divisions, i == 0 ? "" : ",", std::uint64_t{1} << i, ":", options.roundup_power2_divisions[i]);
  }
  out.values["roundup_power2_divisions"] = divisions;
  return out;
}

}  // namespace

RunCapture::RunCapture(kernels::World& world, std::string workload) : world_(world), workload_(std::move(workload)) {
  world_.allocator().SetSink(this);
}

RunCapture::~RunCapture() { world_.allocator().SetSink(nullptr); }

void RunCapture::OnEvent(const trace::Event& event, std::uint64_t) {
  const kernels::Memory& memory = world_.context().memory();
  std::vector<trace::FrameId> frames;
  if (!memory.owner().empty()) frames.push_back(stacks_.InternFrame(workload_, 0, memory.owner()));
  if (!memory.phase().empty()) frames.push_back(stacks_.InternFrame(workload_, 0, memory.phase()));
  events_.push_back(event);
  if (!frames.empty()) events_.back().stack = stacks_.InternStack(frames);
}

trace::Snapshot RunCapture::Snapshot() const {
  trace::Snapshot out;
  out.segments = world_.allocator().Segments();
  std::map<std::uint64_t, trace::StackId> stack_of;  // of each live block's allocation
  for (const trace::Event& event : events_) {
    if (event.action == trace::Action::kAlloc) stack_of[event.address] = event.stack;
  }
  for (trace::SnapshotSegment& segment : out.segments) {
    for (trace::SnapshotBlock& block : segment.blocks) {
      const auto it = stack_of.find(block.address);
      if (block.state != trace::BlockState::kFree && it != stack_of.end()) block.stack = it->second;
    }
  }
  out.device_traces.push_back(events_);
  out.stacks = stacks_;
  out.settings = SettingsOf(world_.allocator().options());
  out.traits.has_stacks = out.traits.has_requested_bytes = out.traits.has_settings = true;
  return out;
}

}  // namespace ashlar::cli
