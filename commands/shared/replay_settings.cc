#include "commands/shared/replay_settings.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/gpus/gpu_table.h"

namespace ashlar::answers {

void Tell(const ReplaySettings& settings, const std::string& stage) {
  if (settings.progress) settings.progress(stage);
}

absl::Status SetCard(absl::string_view name, ReplaySettings& settings) {
  if (const gpus::CardMemory* const other = gpus::OtherCardNamed(name); other != nullptr) {
    settings.card = std::string(other->name);
    settings.capacity_bytes = other->total_bytes.value;
    return absl::OkStatus();
  }
  const absl::StatusOr<gpus::Gpu> gpu = gpus::GpuNamed(name);
  if (!gpu.ok()) return gpu.status();
  settings.card = std::string(gpu->name);
  settings.capacity_bytes = gpu->total_bytes.value;
  if (!settings.context_bytes.has_value()) {
    settings.context_bytes = gpus::ContextOf(*gpu, gpus::ModuleLoading::kLazy).value;
  }
  return absl::OkStatus();
}

std::uint64_t MostContextBytes() {
  return std::max(gpus::KnownContexts(gpus::ModuleLoading::kEager).second,
                  gpus::KnownContexts(gpus::ModuleLoading::kLazy).second);
}

namespace {

// As dry-run assumes it of a device of so much memory.
std::uint64_t UsualContext() {
  return gpus::ContextOf(*gpus::GpuNamed(gpus::kUsualCard), gpus::ModuleLoading::kLazy).value;
}

}  // namespace

ReplaySettings WithContext(ReplaySettings settings, const trace::Snapshot& snapshot) {
  if (!settings.context_bytes.has_value() && !snapshot.recording.has_value()) {
    settings.context_bytes = UsualContext();
  }
  return settings;
}

std::optional<trace::Note> ContextNote(const ReplaySettings& settings, const trace::Snapshot& snapshot) {
  const bool is_assumed = !settings.context_bytes.has_value() && WithContext(settings, snapshot).context_bytes;
  if (!is_assumed || !settings.capacity_bytes.has_value()) return std::nullopt;
  return trace::Note{
      "context_assumed",
      absl::StrCat("of --capacity ", FormatBytes(*settings.capacity_bytes), " the CUDA context takes ",
                   FormatBytes(UsualContext()), " (assumed: that of ", gpus::kUsualCard, "; or give --context)"),
      1};
}

std::optional<std::uint64_t> AllocatorBytes(const ReplaySettings& settings) {
  if (!settings.capacity_bytes.has_value()) return std::nullopt;
  return *settings.capacity_bytes - std::min(*settings.capacity_bytes, settings.context_bytes.value_or(0));
}

std::uint64_t OutsideBytes(const ReplaySettings& settings) {
  return settings.capacity_bytes.value_or(0) - AllocatorBytes(settings).value_or(0);
}

whatif::ReplayLimits LimitsOf(const ReplaySettings& settings) {
  return {AllocatorBytes(settings),   OutsideBytes(settings), settings.memory_fraction,
          settings.segment_addresses, settings.device_costs,  settings.threads};
}

}  // namespace ashlar::answers
