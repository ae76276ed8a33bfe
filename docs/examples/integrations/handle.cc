// The allocator from C++17, without Abseil and by any compiler: in host memory, or of GPU 0 (`handle gpu`).
//
//   clang++ -std=c++17 -stdlib=libc++ -I PREFIX/include handle.cc -L PREFIX/lib -lashlar -o handle
#include <ashlar/handle.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <vector>

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

ashlar::SharedAllocator Choose(bool is_gpu) {
  return is_gpu ? ashlar::SharedAllocator::OfProcess(0) : ashlar::SharedAllocator::OpenHost(1024 * kMiB);
}

// Requests of many sizes, ten of them live at a time.
void Work(ashlar::SharedAllocator allocator) {
  std::vector<void*> live;
  for (std::size_t i = 0; i < 1000; ++i) {
    if (live.size() == 10) {
      allocator.Free(live.front());
      live.erase(live.begin());
    }
    live.push_back(allocator.Allocate((1 + i % 7) * kMiB));
  }
  for (void* const memory : live) allocator.Free(memory);
}

}  // namespace

int main(int argc, char** argv) try {
  ashlar::SharedAllocator allocator = Choose(argc > 1 && std::strcmp(argv[1], "gpu") == 0);
  Work(allocator);
  const ashlar_statistics statistics = allocator.Statistics();
  std::printf("%d requests took %d device calls\n", static_cast<int>(statistics.allocations),
              static_cast<int>(statistics.device_allocations));
  try {
    allocator.Allocate(std::size_t{1} << 50);
  } catch (const std::bad_alloc& error) {
    std::printf("%.*s\n", static_cast<int>(std::strcspn(error.what(), "\n")), error.what());
    return 0;
  }
  return 1;
} catch (const std::exception& error) {  // such as: there is no GPU
  std::fprintf(stderr, "handle: %s\n", error.what());
  return 2;
}
