// Uses memory of GPU 0, or of the host where there is none: the loop of a training run, then a request too many.
#include <ashlar/ashlar.h>

#include <iostream>
#include <memory>

int main() {
  using namespace ashlar;
  const absl::StatusOr<std::unique_ptr<Device>> gpu = OpenCudaDevice({.ordinal = 0});
  const std::unique_ptr<Device> host = MakeHostDevice({.capacity_bytes = kGiB});
  Device* const device = gpu.ok() ? gpu->get() : host.get();
  std::cout << (gpu.ok() ? "memory of GPU 0" : "memory of the host") << "\n";

  Allocator allocator(device, *Options::Parse("max_split_size_mb:128"));
  const Stream stream{0};  // a cudaStream_t as an integer
  for (int step = 0; step < 100; ++step) {
    const auto activations = Buffer::Make(allocator, 300 * kMiB, stream);
    const auto gradients = Buffer::Make(allocator, 20 * kMiB, stream);
    if (!activations.ok() || !gradients.ok()) return 1;
    // ... kernels on `stream` that use activations->data() and gradients->data() ...
  }
  const Stats stats = allocator.stats();
  std::cout << stats.allocation.all().allocated << " requests took " << stats.num_device_alloc << " device calls, "
            << FormatBytes(stats.reserved_bytes.all().peak) << "\n";
  std::cout << allocator.Allocate(4096 * kGiB, stream).status().message() << "\n";
}
