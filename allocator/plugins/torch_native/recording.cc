// Histories, their texts, and snapshots.
#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "allocator/plugins/torch/failure.h"
#include "allocator/plugins/torch_native/allocator.h"
#include "allocator/plugins/torch_native/segments.h"

namespace ashlar::torch {
namespace {

using native::AllocatorConfigInfo;
using native::SnapshotInfo;

// The names of actions, in the order of their values.
std::set<TraceEntry::Action> ActionsOf(const std::vector<std::string>& names) {
  static const std::vector<std::string> kNames = {"alloc",        "free_requested", "free_completed", "segment_alloc",
                                                  "segment_free", "segment_map",    "segment_unmap",  "snapshot",
                                                  "oom",          "annotate"};
  std::set<TraceEntry::Action> out;
  for (const std::string& name : names) {
    const auto found = std::find(kNames.begin(), kNames.end(), name);
    TORCH_CHECK(found != kNames.end(), "Unknown TraceEntry action: ", name);
    out.insert(static_cast<TraceEntry::Action>(found - kNames.begin()));
  }
  return out;
}

// PyTorch's own settings are those of ours that it knows (python/ashlar_gpu/_torch_native.py).
template <typename Config>
void FillConfig(Config& out, const std::string& text) {
  using Settings = native::CUDAAllocatorConfig;
  using Shared = c10::CachingAllocator::AcceleratorAllocatorConfig;
  out.garbage_collection_threshold = Shared::garbage_collection_threshold();
  out.max_split_size = Shared::max_split_size();
  out.pinned_num_register_threads = Settings::pinned_num_register_threads();
  out.expandable_segments = Shared::use_expandable_segments();  // CUDA's own depends on how PyTorch is built
  out.release_lock_on_malloc = Settings::release_lock_on_cudamalloc();
  out.pinned_use_host_register = Settings::pinned_use_cuda_host_register();
  if constexpr (requires {
                  Settings::graph_capture_record_stream_reuse();
                  out.graph_capture_record_stream_reuse;
                })
    out.graph_capture_record_stream_reuse = Settings::graph_capture_record_stream_reuse();
  if constexpr (requires { out.max_round_threshold; }) out.max_round_threshold = static_cast<std::size_t>(-1);
  if constexpr (requires { out.max_cached_size; }) out.max_cached_size = static_cast<std::size_t>(-1);
  out.roundup_power2_divisions = Shared::roundup_power2_divisions();
  out.last_allocator_settings = text;
}

// An action that some releases have not.
template <typename Entry>
std::optional<typename Entry::Action> Annotates() {
  if constexpr (requires { Entry::ANNOTATE; }) {
    return Entry::ANNOTATE;
  } else {
    return std::nullopt;
  }
}

std::uint64_t LiveBytes(const std::vector<SegmentInfo>& segments) {
  std::uint64_t bytes = 0;
  for (const SegmentInfo& segment : segments) bytes += segment.active_size;
  return bytes;
}

template <typename Entry, typename Convert>
void ToMicroseconds(std::vector<Entry>& entries, const Convert& to_nanoseconds) {
  for (Entry& entry : entries) entry.time_.t_ = to_nanoseconds(entry.time_.approx_t_) / 1000;
}

}  // namespace

void NativeAllocator::ObserveWhereWanted(c10::DeviceIndex device) {
  ashlar_allocator* const allocator = OpenAllocator(device);
  if (allocator == nullptr) return;
  Device& its = *devices_[static_cast<std::size_t>(device)];
  const std::lock_guard<std::mutex> lock(its.mutex);
  const bool is_wanted = its.history.IsWanted();
  if (is_wanted == its.is_observed) return;
  Expect(ashlar_observe(allocator, is_wanted ? DeviceHistory::Tell : nullptr, &its.history), device);
  its.is_observed = is_wanted;
}

void NativeAllocator::recordHistory(bool enabled, CreateContextFn gather, std::size_t most_entries, RecordContext when,
                                    bool clears, const std::vector<std::string>& skips) {
  TORCH_CHECK(when == RecordContext::NEVER || gather != nullptr,
              "ashlar: recordHistory: there is no function for stacks");
  const HistoryRule rule{.is_on = enabled,
                         .gather = enabled ? gather : nullptr,
                         .most_entries = most_entries,
                         .when = enabled ? when : RecordContext::NEVER,
                         .skips = ActionsOf(skips)};
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    most_entries_ = most_entries;
    if (!enabled || clears) annotations_.clear();
  }
  gather_ = rule.gather;
  gather_when_ = static_cast<int>(rule.when);
  is_recording_ = enabled;
  for (int device = 0; device < kMostDevices; ++device) {
    devices_[static_cast<std::size_t>(device)]->history.Change(rule, clears);
    ObserveWhereWanted(static_cast<c10::DeviceIndex>(device));
  }
}

void NativeAllocator::recordAnnotation(const std::vector<std::pair<std::string, std::string>>& values) {
  if (!is_recording_) return;
  AnnotationEntry entry(CurrentDevice(), c10::getApproximateTime());
  for (const auto& [name, value] : values) entry.recordUserMetadata(name, value);
  const std::lock_guard<std::mutex> lock(mutex_);
  annotations_.push_back(std::move(entry));
  if (annotations_.size() > most_entries_) annotations_.pop_front();
}

void NativeAllocator::pushCompileContext(std::string& text) { ThreadTexts::Mine().compile_contexts.push_back(text); }
void NativeAllocator::popCompileContext() {
  auto& contexts = ThreadTexts::Mine().compile_contexts;
  if (!contexts.empty()) contexts.pop_back();
}

void NativeAllocator::annotateMemory(const void* memory, const std::string& text) {
  if (!is_recording_) return;
  const auto [allocator, block] = BlockOf(memory);
  const auto device = static_cast<c10::DeviceIndex>(ashlar_device(allocator));
  const auto address = reinterpret_cast<std::uintptr_t>(block.address);
  if (const auto annotates = Annotates<TraceEntry>(); annotates.has_value())
    Of(device).history.Add(*annotates, address, block.requested_bytes, nullptr, {0, 0}, text);
}

std::shared_ptr<c10::GatheredContext> NativeAllocator::getContextForPointer(const void* memory) {
  std::shared_ptr<c10::GatheredContext> context;
  ForEachOpen([&](int device, ashlar_allocator*) {
    if (context == nullptr)
      context = Of(static_cast<c10::DeviceIndex>(device)).history.OfBlock(reinterpret_cast<std::uintptr_t>(memory));
  });
  return context;
}

void NativeAllocator::attachAllocatorTraceTracker(AllocatorTraceTracker tracker) {
  for (int device = 0; device < kMostDevices; ++device) {
    devices_[static_cast<std::size_t>(device)]->history.Attach(tracker);
    ObserveWhereWanted(static_cast<c10::DeviceIndex>(device));
  }
}

void NativeAllocator::SetSettingsText(std::string text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  settings_text_ = std::move(text);
}

// A device's entries come first, so that what happens while its segments are looked at is in the next snapshot.
native::SnapshotInfo NativeAllocator::snapshot(c10::MempoolId_t pool, bool include_traces) {
  const auto to_nanoseconds = clock_.makeConverter();
  SnapshotInfo out;
  for (int index = 0; index < std::max(device_count_.load(), 1); ++index) {
    const auto device = static_cast<c10::DeviceIndex>(index);
    DeviceHistory& history = Of(device).history;
    std::vector<TraceEntry> entries = include_traces ? history.Entries() : std::vector<TraceEntry>();
    ToMicroseconds(entries, to_nanoseconds);
    out.device_traces.push_back(std::move(entries));
    const ashlar_allocator* allocator = OpenAllocator(device);
    if (allocator == nullptr) continue;
    std::vector<SegmentInfo> segments = SegmentsOf(allocator, device, history, pool);
    history.Add(TraceEntry::SNAPSHOT, 0, LiveBytes(segments), nullptr, pool);
    std::move(segments.begin(), segments.end(), std::back_inserter(out.segments));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  out.external_annotations.assign(annotations_.begin(), annotations_.end());
  ToMicroseconds(out.external_annotations, to_nanoseconds);
  FillConfig(out.config_metadata, settings_text_);
  return out;
}

}  // namespace ashlar::torch
