// A program of somebody else: it uses the installed headers and library, nothing of the source tree. It allocates from
// a simulated device of 1 GiB, frees, runs out of memory, and says what it saw; writes into memory that it allocates
// from a host device; brings a device of its own; and says what CUDA there is, which compiles and links without the
// toolkit.
#include <ashlar/ashlar.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace {

using ashlar::kGiB;
using ashlar::kMiB;
using ashlar::Stream;

// Counts what reaches the device behind it.
class CountingDevice final : public ashlar::Device {
 public:
  explicit CountingDevice(std::unique_ptr<ashlar::Device> device) : device_(std::move(device)) {}
  absl::StatusOr<std::uint64_t> AllocateSegment(std::uint64_t size_bytes) override {
    ++segments;
    return device_->AllocateSegment(size_bytes);
  }
  absl::Status FreeSegment(std::uint64_t address) override { return device_->FreeSegment(address); }
  absl::StatusOr<std::uint64_t> Reserve(std::uint64_t size_bytes) override { return device_->Reserve(size_bytes); }
  absl::Status ReleaseReservation(std::uint64_t address) override { return device_->ReleaseReservation(address); }
  absl::Status Map(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) override {
    return device_->Map(address, size_bytes, page_bytes);
  }
  absl::Status Unmap(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) override {
    return device_->Unmap(address, size_bytes, page_bytes);
  }
  ashlar::MemoryInfo GetMemoryInfo() override { return device_->GetMemoryInfo(); }
  ashlar::DeviceEvent RecordEvent(Stream stream) override { return device_->RecordEvent(stream); }
  bool QueryEvent(const ashlar::DeviceEvent& event) override { return device_->QueryEvent(event); }
  absl::Status SynchronizeEvent(const ashlar::DeviceEvent& event) override { return device_->SynchronizeEvent(event); }
  absl::Status SynchronizeStream(Stream stream) override { return device_->SynchronizeStream(stream); }
  absl::Status MakeStreamWait(Stream stream, Stream awaited) override {
    return device_->MakeStreamWait(stream, awaited);
  }
  void SetCapturing(bool is_capturing) override { device_->SetCapturing(is_capturing); }

  int segments = 0;

 private:
  std::unique_ptr<ashlar::Device> device_;
};

int Fail(const char* what) {
  std::fprintf(stderr, "consumer: %s\n", what);
  return 1;
}

bool HostMemoryWorks() {
  const std::unique_ptr<ashlar::Device> device = ashlar::MakeHostDevice({.capacity_bytes = 64 * kMiB});
  ashlar::Allocator allocator(device.get());
  const auto buffer = ashlar::Buffer::Make(allocator, 3 * kMiB, Stream{0});
  if (!buffer.ok()) return false;
  std::memset(buffer->data(), 7, 3 * kMiB);
  return static_cast<const char*>(buffer->data())[3 * kMiB - 1] == 7;
}

bool ErrorsAreCaught() {
  const std::unique_ptr<ashlar::Device> device = ashlar::MakeHostDevice({.capacity_bytes = 64 * kMiB});
  ashlar::Allocator allocator(device.get());
  try {
    ashlar::AllocateOrThrow(allocator, kGiB, Stream{0});
  } catch (const ashlar::OutOfMemoryError& error) {
    return std::strstr(error.what(), "1.00 GiB requested") != nullptr;
  }
  return false;
}

void SayWhatCudaThereIs() {
  const auto device = ashlar::OpenCudaDevice({.ordinal = 0});
  const std::string text = device.ok() ? ashlar::FormatBytes((*device)->GetMemoryInfo().total_bytes)
                                       : std::string(device.status().message());
  std::printf("CUDA device 0: %s\n", text.c_str());
}

}  // namespace

int main() {
  const auto options = ashlar::Options::Parse("max_split_size_mb:128");
  if (!options.ok()) return Fail("the setting was refused");
  CountingDevice device(ashlar::MakeSimulatedDevice({.capacity_bytes = kGiB}));
  ashlar::Allocator allocator(&device, *options);

  const auto block = allocator.Allocate(300 * kMiB, Stream{0});
  if (!block.ok()) return Fail("300 MiB of 1 GiB were refused");
  const std::uint64_t used_bytes = kGiB - device.GetMemoryInfo().free_bytes;
  allocator.Free(*block);
  allocator.EmptyCache();
  if (device.GetMemoryInfo().free_bytes != kGiB) return Fail("the cache did not return its memory");

  const auto too_large = allocator.Allocate(2 * kGiB, Stream{0});
  if (!absl::IsResourceExhausted(too_large.status())) return Fail("2 GiB of 1 GiB did not run out of memory");
  if (!allocator.Validate().ok()) return Fail("the allocator is not in order");
  if (device.segments < 2) return Fail("the device was not asked");
  const auto ring = ashlar::Recorder::Ring(allocator);
  if (!ring.ok()) return Fail("there is no recorder");

  if (!HostMemoryWorks()) return Fail("host memory was not to be had");
  if (!ErrorsAreCaught()) return Fail("out of memory was not caught");
  SayWhatCudaThereIs();
  std::printf("300 MiB took %s of the device\n", ashlar::FormatBytes(used_bytes).c_str());
  return 0;
}
