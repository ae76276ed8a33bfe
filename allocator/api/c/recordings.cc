#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/api/c/handle.h"

namespace ashlar::c {
namespace {

// A device that is full of files is not a GPU that is full.
absl::Status OfFile(const absl::Status& status) {
  return absl::IsResourceExhausted(status) ? absl::UnknownError(status.message()) : status;
}

// Of the allocators that record, so that the end of the process ends their files. Never destroyed.
class Recordings {
 public:
  static Recordings& Instance() {
    static Recordings& instance = *new Recordings;
    return instance;
  }

  absl::Status Start(ashlar_allocator& allocator, const char* path) {
    RecorderOptions options;
    options.device = allocator.ordinal < 0 ? 0 : allocator.ordinal;
    options.overwrites = true;
    const std::lock_guard<std::mutex> lock(allocator.recording_mutex);
    if (IsRing(allocator)) allocator.recording.reset();
    absl::StatusOr<std::unique_ptr<Recorder>> recorder = Recorder::ToFile(allocator.allocator, path, options);
    if (!recorder.ok()) return OfFile(std::move(recorder).status());
    allocator.recording = *std::move(recorder);
    const std::lock_guard<std::mutex> own(mutex_);
    recording_.insert(&allocator);
    return absl::OkStatus();
  }

  absl::Status StartRing(ashlar_allocator& allocator, std::uint64_t bytes) {
    RecorderOptions options;
    options.device = allocator.ordinal < 0 ? 0 : allocator.ordinal;
    options.ring_bytes = bytes;
    const std::lock_guard<std::mutex> lock(allocator.recording_mutex);
    absl::StatusOr<std::unique_ptr<Recorder>> recorder = Recorder::Ring(allocator.allocator, options);
    if (!recorder.ok()) return recorder.status();
    allocator.recording = *std::move(recorder);
    return absl::OkStatus();
  }

  absl::Status WriteRing(ashlar_allocator& allocator, const char* path) {
    const std::lock_guard<std::mutex> lock(allocator.recording_mutex);
    if (!IsRing(allocator)) return absl::FailedPreconditionError("the allocator has no ring to write");
    return OfFile(allocator.recording->Write(path));
  }

  absl::Status Stop(ashlar_allocator& allocator) {
    {
      const std::lock_guard<std::mutex> own(mutex_);
      recording_.erase(&allocator);
    }
    const std::lock_guard<std::mutex> lock(allocator.recording_mutex);
    const std::unique_ptr<Recorder> recorder = std::move(allocator.recording);
    return recorder == nullptr ? absl::OkStatus() : OfFile(recorder->Finish());
  }

 private:
  static bool IsRing(const ashlar_allocator& allocator) {
    return allocator.recording != nullptr && allocator.recording->path().empty();
  }

  Recordings() {
    std::atexit([] { Instance().StopAll(); });
  }

  void StopAll() {
    std::set<ashlar_allocator*> left;
    {
      const std::lock_guard<std::mutex> own(mutex_);
      left = recording_;
    }
    for (ashlar_allocator* allocator : left) Stop(*allocator).IgnoreError();  // nobody is there to be told
  }

  std::mutex mutex_;
  std::set<ashlar_allocator*> recording_;
};

}  // namespace
}  // namespace ashlar::c

extern "C" {

ashlar_status ashlar_dump_snapshot(const ashlar_allocator* allocator, const char* path) {
  return ashlar::c::Call([&] { return ashlar::c::OfFile(allocator->allocator.DumpSnapshot(path)); });
}

ashlar_status ashlar_start_recording(ashlar_allocator* allocator, const char* path) {
  return ashlar::c::Call([&] { return ashlar::c::Recordings::Instance().Start(*allocator, path); });
}

ashlar_status ashlar_stop_recording(ashlar_allocator* allocator) {
  return ashlar::c::Call([&] { return ashlar::c::Recordings::Instance().Stop(*allocator); });
}

ashlar_status ashlar_start_ring(ashlar_allocator* allocator, uint64_t bytes) {
  return ashlar::c::Call([&] { return ashlar::c::Recordings::Instance().StartRing(*allocator, bytes); });
}

ashlar_status ashlar_write_ring(ashlar_allocator* allocator, const char* path) {
  return ashlar::c::Call([&] { return ashlar::c::Recordings::Instance().WriteRing(*allocator, path); });
}

ashlar_status ashlar_change_settings(ashlar_allocator* allocator, const char* conf) {
  return ashlar::c::Call([&] { return allocator->allocator.ChangeSettings(conf); });
}

}  // extern "C"
