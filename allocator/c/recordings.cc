#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/c/handle.h"

extern "C" {

ashlar_status ashlar_dump_snapshot(const ashlar_allocator* allocator, const char* path) {
  return ashlar::c::Call([&] { return allocator->allocator.DumpSnapshot(path); });
}

ashlar_status ashlar_start_recording(ashlar_allocator* allocator, const char* path) {
  return ashlar::c::Call([&]() -> absl::Status {
    ashlar::RecorderOptions options;
    options.device = allocator->ordinal < 0 ? 0 : allocator->ordinal;
    options.overwrites = true;
    const std::lock_guard<std::mutex> lock(allocator->recording_mutex);
    absl::StatusOr<std::unique_ptr<ashlar::Recorder>> recorder =
        ashlar::Recorder::ToFile(allocator->allocator, path, options);
    if (!recorder.ok()) return std::move(recorder).status();
    allocator->recording = *std::move(recorder);
    return absl::OkStatus();
  });
}

ashlar_status ashlar_stop_recording(ashlar_allocator* allocator) {
  return ashlar::c::Call([&]() -> absl::Status {
    const std::lock_guard<std::mutex> lock(allocator->recording_mutex);
    const std::unique_ptr<ashlar::Recorder> recorder = std::move(allocator->recording);
    return recorder == nullptr ? absl::OkStatus() : recorder->Finish();
  });
}

}  // extern "C"
