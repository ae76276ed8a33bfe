// The part of torch_calls.py that runs without Python: allocate and free pairs, through PyTorch's own allocator,
// through Ashlar by PyTorch's class for allocators, as PyTorch's plug-in, and through the plug-in alone. Built by
// torch_calls.py against a release's headers.
#include <c10/cuda/CUDACachingAllocator.h>
#include <time.h>
#include <torch/csrc/cuda/CUDAPluggableAllocator.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

namespace {

using c10::cuda::CUDACachingAllocator::CUDAAllocator;
using Allocate = void* (*)(std::size_t, int, cudaStream_t);
using Free = void (*)(void*, std::size_t, int, cudaStream_t);

Allocate plugin_allocate = nullptr;
Free plugin_free = nullptr;
std::shared_ptr<CUDAAllocator> wrapped;
CUDAAllocator* by_class = nullptr;

struct Native {
  void* Get(std::size_t bytes) { return inner->raw_alloc_with_stream(bytes, nullptr); }
  void Return(void* block, std::size_t) { inner->raw_delete(block); }
  CUDAAllocator* inner = c10::cuda::CUDACachingAllocator::get();
};
struct Wrapped {
  void* Get(std::size_t bytes) { return inner->raw_alloc_with_stream(bytes, nullptr); }
  void Return(void* block, std::size_t) { inner->raw_delete(block); }
  CUDAAllocator* inner = wrapped.get();
};
struct ByClass {
  void* Get(std::size_t bytes) { return inner->raw_alloc_with_stream(bytes, nullptr); }
  void Return(void* block, std::size_t) { inner->raw_delete(block); }
  CUDAAllocator* inner = by_class;
};
struct Alone {
  void* Get(std::size_t bytes) { return plugin_allocate(bytes, 0, nullptr); }
  void Return(void* block, std::size_t bytes) { plugin_free(block, bytes, 0, nullptr); }
};

// Of this thread: others may keep the machine busy.
double ProcessorNanoseconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

struct Held {
  void* block = nullptr;
  std::size_t bytes = 0;
};

bool AreApart(std::vector<Held> blocks) {
  std::sort(blocks.begin(), blocks.end(), [](const Held& a, const Held& b) { return a.block < b.block; });
  for (std::size_t i = 0; i + 1 < blocks.size(); ++i) {
    if (static_cast<char*>(blocks[i].block) + blocks[i].bytes > blocks[i + 1].block) return false;
  }
  return std::none_of(blocks.begin(), blocks.end(), [](const Held& held) { return held.block == nullptr; });
}

// One of the given sizes; without any, the sizes of heap_bench's steady_varying.
std::size_t RandomSize(std::mt19937_64& random, const std::size_t* sizes, std::size_t size_count) {
  if (size_count > 0) return sizes[random() % size_count];
  const std::size_t magnitude = std::size_t{512} << random() % 14;
  return magnitude + random() % magnitude + 1;
}

// A random one of `count` live blocks is replaced, `pairs` times; with one block it is a ping-pong. Processor time
// of a pair in nanoseconds, -1 where two live blocks share a byte.
template <typename Subject>
double Run(std::size_t count, std::size_t pairs, const std::size_t* sizes, std::size_t size_count, unsigned seed) {
  Subject subject;
  std::mt19937_64 random(seed);
  std::vector<Held> turns(1 << 18), live(count);
  std::vector<std::size_t> victims(turns.size());
  for (std::size_t i = 0; i < turns.size(); ++i) {
    turns[i].bytes = RandomSize(random, sizes, size_count);
    victims[i] = random() % count;
  }
  for (Held& held : live) {
    held.bytes = RandomSize(random, sizes, size_count);
    held.block = subject.Get(held.bytes);
  }
  std::size_t at = 0;
  const auto step = [&] {
    const std::size_t turn = at++ % turns.size();
    Held& held = live[victims[turn]];
    subject.Return(held.block, held.bytes);
    held = {subject.Get(turns[turn].bytes), turns[turn].bytes};
  };
  for (std::size_t i = 0; i < 4 * count + 1000; ++i) step();
  const double began = ProcessorNanoseconds();
  for (std::size_t i = 0; i < pairs; ++i) step();
  const double took = ProcessorNanoseconds() - began;
  const bool is_right = AreApart(live);
  for (const Held& held : live) subject.Return(held.block, held.bytes);
  return is_right ? took / static_cast<double>(pairs) : -1;
}

}  // namespace

extern "C" {

// The addresses of ashlar_torch_alloc and ashlar_torch_free.
void use_plugin(std::uintptr_t allocate, std::uintptr_t free) {
  plugin_allocate = reinterpret_cast<Allocate>(allocate);
  plugin_free = reinterpret_cast<Free>(free);
  wrapped = torch::cuda::CUDAPluggableAllocator::createCustomAllocator(plugin_allocate, plugin_free);
}

// What ashlar_torch_native_allocator gave, told of the devices as PyTorch does when CUDA is first used.
void use_class(void* allocator, int device_count) {
  by_class = static_cast<CUDAAllocator*>(allocator);
  by_class->init(device_count);
}

// subject: 0 PyTorch's own, 1 ours by PyTorch's class, 2 the plug-in in PyTorch's wrapper, 3 the plug-in alone, 4 one
// that gives a block twice.
double measure(int subject, std::size_t count, std::size_t pairs, const std::size_t* sizes, std::size_t size_count,
               unsigned seed) {
  struct Wrong {
    void* Get(std::size_t) { return this; }
    void Return(void*, std::size_t) {}
  };
  switch (subject) {
    case 0:
      return Run<Native>(count, pairs, sizes, size_count, seed);
    case 1:
      return Run<ByClass>(count, pairs, sizes, size_count, seed);
    case 2:
      return Run<Wrapped>(count, pairs, sizes, size_count, seed);
    case 3:
      return Run<Alone>(count, pairs, sizes, size_count, seed);
    default:
      return Run<Wrong>(count, pairs, sizes, size_count, seed);
  }
}
}
