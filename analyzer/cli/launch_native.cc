#include "analyzer/cli/launch_native.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "allocator/trace/codec.h"
#include "analyzer/cli/command.h"
#include "analyzer/cli/load_trace.h"
#include "analyzer/readers/native/native_log.h"
#include "analyzer/readers/torch/torch_snapshot_writer.h"

namespace ashlar::cli {
namespace {

absl::StatusOr<trace::Snapshot> ReadLog(const std::string& path) {
  const absl::StatusOr<readers::InputBytes> bytes = LoadBytes(path, {});
  if (!bytes.ok()) return bytes.status();
  return readers::ReadNativeLog(*bytes);
}

}  // namespace

absl::StatusOr<NativeCalls> ReadNativeCalls(const std::string& path) {
  const absl::StatusOr<trace::Snapshot> snapshot = ReadLog(path);
  if (!snapshot.ok()) return snapshot.status();
  NativeCalls out;
  for (const trace::EventList& events : snapshot->device_traces) {
    std::uint64_t held = 0;
    for (const trace::Event& event : events) {
      out.allocations += event.action == trace::Action::kAlloc ? 1 : 0;
      out.out_of_memory += event.action == trace::Action::kOom ? 1 : 0;
      held += event.action == trace::Action::kAlloc ? event.size_bytes : 0;
      held -= event.action == trace::Action::kFreeRequested ? event.size_bytes : 0;
      out.peak_bytes = std::max(out.peak_bytes, held);
    }
  }
  return out;
}

absl::Status KeepNativeLog(const std::string& path, const std::string& to) {
  const absl::StatusOr<trace::Snapshot> snapshot = ReadLog(path);
  if (!snapshot.ok()) return snapshot.status();
  const bool is_pickle = absl::EndsWith(to, ".pickle") || absl::EndsWith(to, ".pkl");
  return WriteFile(to, is_pickle ? readers::WriteTorchSnapshot(*snapshot) : trace::Encode(*snapshot));
}

}  // namespace ashlar::cli
