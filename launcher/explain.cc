#include "launcher/explain.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/base/units.h"
#include "analyzer/formats/oom/oom_message.h"
#include "commands/explain/explain.h"
#include "console/load_trace.h"

namespace ashlar::cli {

namespace {

// A device's peak is of all processes on it: of those the one that holds most by itself decides.
std::pair<std::uint64_t, std::uint64_t> HeldBytes(const ProcessRun& run) {
  std::uint64_t own = 0;
  if (run.torch.has_value()) {
    for (const TorchDevice& device : run.torch->devices) own = std::max(own, device.peak_reserved_bytes);
  }
  return {run.PeakBytes(), own};
}

}  // namespace

const ProcessRun* ToExplain(const RunResults& results) {
  const ProcessRun* out = nullptr;
  for (const ProcessRun& run : results.runs) {
    if (!run.failures.empty()) return &run;
    if (run.history.empty()) continue;
    if (out == nullptr || HeldBytes(run) > HeldBytes(*out)) out = &run;
  }
  return out;
}

namespace {

constexpr std::int64_t kMostSourceLines = 100'000;

bool HasRetried(const ProcessRun& run) {
  if (!run.torch.has_value()) return false;
  const std::vector<TorchDevice>& devices = run.torch->devices;
  return std::any_of(devices.begin(), devices.end(), [](const TorchDevice& d) { return d.num_alloc_retries > 0; });
}

// By the program's source, which lies where it just ran.
bool CallsFusedAttention(const trace::Frame& frame) {
  std::ifstream file(frame.file);
  std::string line;
  for (std::int64_t number = 1; number <= frame.line && number <= kMostSourceLines; ++number) {
    if (!std::getline(file, line)) return false;
  }
  return absl::StrContains(line, "scaled_dot_product_attention(");
}

// JAX asks the device once, for most of it. What failed is told by its own error, and by what it had in use.
std::optional<answers::Explanation> ExplainJax(const JaxInfo& jax, const answers::ExplainSettings& options) {
  const std::vector<formats::OomMessage> messages = formats::FindOomMessages(jax.out_of_memory);
  if (messages.empty()) return std::nullopt;
  answers::Explanation out = answers::ExplainMessage(messages.front(), options);
  for (const JaxDevice& device : jax.devices) {
    const std::uint64_t tried = out.failure.tried_bytes.value_or(0);
    if (tried == 0 || device.peak_in_use_bytes + tried <= device.limit_bytes) continue;
    out.verdict.kind = answers::OomVerdict::kCapacity;
    out.verdict.is_certain = true;
    out.verdict.evidence = {absl::StrCat("Capacity: JAX had ", FormatBytes(device.peak_in_use_bytes),
                                         " in use at its peak and may have ", FormatBytes(device.limit_bytes),
                                         " of the device: XLA_CLIENT_MEM_FRACTION, three quarters unless it is set.")};
    return out;
  }
  return out;
}

}  // namespace

absl::StatusOr<answers::Explanation> ExplainProcess(const ProcessRun& run, const ProcessMemory& memory,
                                                    const answers::Progress& progress) {
  answers::ExplainSettings options;
  options.replay.progress = progress;
  options.replay.segment_addresses = memory.addresses;
  options.calls_fused_attention = CallsFusedAttention;
  options.run_again = memory.run_again;
  if (memory.is_drawn) options.picture = answers::PictureLimits{};
  options.replay.context_bytes = memory.context_bytes + memory.in_use_bytes;
  options.shared_device = analyses::SharedDevice{memory.other_processes, memory.context_bytes};
  options.device_bytes = memory.total_bytes;
  if (run.jax.has_value()) {
    if (std::optional<answers::Explanation> failure = ExplainJax(*run.jax, options)) return *std::move(failure);
  }
  if (memory.is_held_to_total || !run.failures.empty() || HasRetried(run))
    options.replay.capacity_bytes = memory.total_bytes;
  const absl::StatusOr<formats::InputBytes> bytes =
      LoadBytes(run.failures.empty() ? run.history : run.failures.back(), options.replay);
  if (!bytes.ok()) return bytes.status();
  absl::StatusOr<std::vector<answers::Explanation>> explanations = answers::ExplainBytes(*bytes, options);
  if (!explanations.ok()) return explanations.status();
  return std::move(explanations->front());
}

std::string OwnersLine(const ProcessRun& run) {
  if (run.device_log.empty()) return "";
  const absl::StatusOr<formats::InputBytes> bytes = LoadBytes(run.device_log, {});
  if (!bytes.ok()) return "";
  const absl::StatusOr<std::vector<answers::Explanation>> explained = answers::ExplainBytes(*bytes, {});
  if (!explained.ok() || !explained->front().memory.by_library.has_value()) return "";
  const answers::ByLibrary& whose = *explained->front().memory.by_library;
  if (whose.owners.size() < 2) return "";
  std::vector<std::string> parts;
  for (const answers::OwnedBytes& of : whose.owners)
    parts.push_back(absl::StrCat(of.owner, " ", FormatBytes(of.bytes)));
  return absl::StrCat(
      run.Name(), ", ", explained->front().memory.moment, ": ", absl::StrJoin(parts, ", "),
      whose.rest_bytes.has_value() ? absl::StrCat("; beside, by the driver: ", FormatBytes(*whose.rest_bytes)) : "");
}

}  // namespace ashlar::cli
