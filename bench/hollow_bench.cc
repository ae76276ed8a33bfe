// What a call of the hollow device costs: a launch of a kernel, cudaMalloc and cudaFree, among so many live blocks.
//
//   build/release/bench/hollow_bench
//
// The library is opened by name, as a program's calls reach it by preloading: the call itself is the same.
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

struct Calls {
  int (*malloc)(void**, std::size_t);
  int (*free)(void*);
  int (*launch)(const void*, Dim3, Dim3, void**, std::size_t, void*);
};

template <typename Function>
void Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  if (*function == nullptr) {
    std::fprintf(stderr, "hollow_bench: the library has no %s\n", name);
    std::exit(1);
  }
}

const Calls& TheCalls() {
  static const Calls calls = [] {
    void* library = dlopen(ASHLAR_HOLLOW_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::fprintf(stderr, "hollow_bench: %s\n", dlerror());
      std::exit(1);
    }
    Calls out{};
    Find(library, "cudaMalloc", &out.malloc);
    Find(library, "cudaFree", &out.free);
    Find(library, "cudaLaunchKernel", &out.launch);
    return out;
  }();
  return calls;
}

void Launch(benchmark::State& state) {
  const Calls& calls = TheCalls();
  int status = 0;
  for (auto _ : state) status |= calls.launch(&calls, {}, {}, nullptr, 0, nullptr);
  if (status != 0) state.SkipWithError("a launch was refused");
}
BENCHMARK(Launch);

// A pair of calls among state.range(0) live blocks of 4 MiB.
void MallocAndFree(benchmark::State& state) {
  const Calls& calls = TheCalls();
  constexpr std::size_t kBytes = std::size_t{4} << 20;
  std::vector<void*> live(static_cast<std::size_t>(state.range(0)));
  int status = 0;
  for (void*& pointer : live) status |= calls.malloc(&pointer, kBytes);
  for (auto _ : state) {
    void* pointer = nullptr;
    status |= calls.malloc(&pointer, kBytes);
    status |= calls.free(pointer);
  }
  for (void* pointer : live) status |= calls.free(pointer);
  if (status != 0) state.SkipWithError("a call was refused");
}
BENCHMARK(MallocAndFree)->Arg(0)->Arg(100)->Arg(10'000);

}  // namespace

BENCHMARK_MAIN();
