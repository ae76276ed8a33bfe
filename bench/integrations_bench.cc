// What a C++ integration adds to a call of the C interface: an allocate and a free of 4 KiB from the cache, in host
// memory.
//
//   build/release/bench/integrations_bench
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <memory_resource>

#include "ashlar/handle.h"
#include "ashlar/pmr.h"
#ifdef ASHLAR_BENCH_CUDA_INTEGRATIONS
#include "ashlar/cub.h"
#include "ashlar/cuda_mr.h"
#include "ashlar/thrust_mr.h"
#endif

namespace {

constexpr std::size_t kBytes = 4096;
const ashlar_stream kStream = reinterpret_cast<ashlar_stream>(std::uintptr_t{64});

// Every round must be served by the cache.
template <typename Allocate, typename Free>
void Time(benchmark::State& state, const ashlar::SharedAllocator& allocator, Allocate allocate, Free free) {
  void* const first = allocate();
  free(first);
  for (auto _ : state) {
    void* const memory = allocate();
    benchmark::DoNotOptimize(memory);
    free(memory);
  }
  const ashlar_statistics statistics = allocator.Statistics();
  if (allocate() != first || statistics.device_allocations != 1) state.SkipWithError("wrong answer");
  free(first);
}

ashlar::SharedAllocator Host() { return ashlar::SharedAllocator::OpenHost(std::uint64_t{1} << 30); }

void C(benchmark::State& state) {
  const ashlar::SharedAllocator allocator = Host();
  Time(
      state, allocator,
      [&] {
        void* memory = nullptr;
        ashlar_allocate(allocator.get(), kBytes, kStream, &memory);
        return memory;
      },
      [&](void* memory) { ashlar_free(allocator.get(), memory); });
}
BENCHMARK(C);

void Handle(benchmark::State& state) {
  ashlar::SharedAllocator allocator = Host();
  Time(
      state, allocator, [&] { return allocator.Allocate(kBytes, kStream); },
      [&](void* memory) { allocator.Free(memory); });
}
BENCHMARK(Handle);

void Pmr(benchmark::State& state) {
  ashlar::PmrResource resource(Host(), kStream);
  std::pmr::memory_resource* const base = &resource;
  Time(
      state, resource.allocator(), [&] { return base->allocate(kBytes, 64); },
      [&](void* memory) { base->deallocate(memory, kBytes, 64); });
}
BENCHMARK(Pmr);

#ifdef ASHLAR_BENCH_CUDA_INTEGRATIONS
void CudaMr(benchmark::State& state) {
  ashlar::CudaResource resource(Host());
  const cuda::stream_ref stream(static_cast<cudaStream_t>(kStream));
  Time(
      state, resource.allocator(), [&] { return resource.allocate(stream, kBytes); },
      [&](void* memory) { resource.deallocate(stream, memory, kBytes); });
}
BENCHMARK(CudaMr);

void Thrust(benchmark::State& state) {
  ashlar::ThrustResource resource(Host(), static_cast<cudaStream_t>(kStream));
  using Pointer = ashlar::ThrustResource::pointer;
  Time(
      state, resource.allocator(), [&] { return resource.allocate(kBytes).get(); },
      [&](void* memory) { resource.deallocate(Pointer(memory), kBytes); });
}
BENCHMARK(Thrust);

void Cub(benchmark::State& state) {
  const ashlar::SharedAllocator allocator = Host();
  ashlar::CachingDeviceAllocator cub(allocator);
  Time(
      state, allocator,
      [&] {
        void* memory = nullptr;
        cub.DeviceAllocate(&memory, kBytes, static_cast<cudaStream_t>(kStream));
        return memory;
      },
      [&](void* memory) { cub.DeviceFree(memory); });
}
BENCHMARK(Cub);
#endif

}  // namespace

BENCHMARK_MAIN();
