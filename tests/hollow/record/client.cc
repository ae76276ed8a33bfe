// A native program for the recorder's tests: what it does is named on its command line. It brings no CUDA runtime: the
// functions it calls are those of the hollow device. What it did by its own count is printed, for a test to compare.
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "hollow/abi/cuda_types.h"

namespace abi = ashlar::hollow::abi;

extern "C" {
int cudaMalloc(void**, std::size_t);
int cudaMallocManaged(void**, std::size_t, unsigned);
int cudaMallocPitch(void**, std::size_t*, std::size_t, std::size_t);
int cudaMalloc3D(abi::PitchedPtr*, abi::Extent);
int cudaMallocAsync(void**, std::size_t, void*);
int cudaFree(void*);
int cudaFreeAsync(void*, void*);
int cudaDeviceReset();
int cudaSetDevice(int);
int cudaGetDriverEntryPointByVersion(const char*, void**, unsigned, unsigned long long, int*);
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void**, int);
int cuCtxSetCurrent(void*);
int cuMemAlloc_v2(void**, std::size_t);
int cuMemFree_v2(void*);
int cuMemAddressReserve(std::uint64_t*, std::size_t, std::size_t, std::uint64_t, unsigned long long);
int cuMemCreate(std::uint64_t*, std::size_t, const abi::AllocationProp*, unsigned long long);
int cuMemRelease(std::uint64_t);
int cuMemMap(std::uint64_t, std::size_t, std::size_t, std::uint64_t, unsigned long long);
int cuMemUnmap(std::uint64_t, std::size_t);
}

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

void Check(int result, const char* what) {
  if (result == 0) return;
  std::fprintf(stderr, "%s answered %d\n", what, result);
  std::exit(1);
}

__attribute__((noinline)) void* LeakHere(std::size_t bytes) {
  void* out = nullptr;
  Check(cudaMalloc(&out, bytes), "cudaMalloc");
  return out;
}

int Kinds() {
  void* pointer = nullptr;
  Check(cudaMalloc(&pointer, 3 * kMiB), "cudaMalloc");
  cudaFree(pointer);
  Check(cudaMallocManaged(&pointer, 2 * kMiB, 1), "cudaMallocManaged");
  cudaFree(pointer);
  std::size_t pitch = 0;
  Check(cudaMallocPitch(&pointer, &pitch, 1000, 10), "cudaMallocPitch");
  std::printf("pitched %zu\n", pitch * 10);
  cudaFree(pointer);
  abi::PitchedPtr cube = {};
  Check(cudaMalloc3D(&cube, {1000, 10, 4}), "cudaMalloc3D");
  std::printf("cube %zu\n", cube.pitch * 10 * 4);
  cudaFree(cube.ptr);
  Check(cudaMallocAsync(&pointer, 5 * kMiB, nullptr), "cudaMallocAsync");
  cudaFreeAsync(pointer, nullptr);
  Check(cudaMalloc(&pointer, 0), "cudaMalloc of nothing");
  Check(cudaSetDevice(1), "cudaSetDevice");
  LeakHere(7 * kMiB);
  return 0;
}

// Two mappings of one memory, two memories side by side, and one that is never mapped.
int Virtual() {
  void* context = nullptr;
  Check(cuInit(0), "cuInit");
  Check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  Check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  abi::AllocationProp prop = {};
  prop.type = 1;
  prop.location = {1, 0};
  std::uint64_t base = 0, first = 0, second = 0, third = 0;
  Check(cuMemAddressReserve(&base, 64 * kMiB, 0, 0, 0), "cuMemAddressReserve");
  Check(cuMemCreate(&first, 4 * kMiB, &prop, 0), "cuMemCreate");
  Check(cuMemCreate(&second, 6 * kMiB, &prop, 0), "cuMemCreate");
  Check(cuMemCreate(&third, 8 * kMiB, &prop, 0), "cuMemCreate");
  Check(cuMemMap(base, 4 * kMiB, 0, first, 0), "cuMemMap");
  Check(cuMemMap(base + 4 * kMiB, 6 * kMiB, 0, second, 0), "cuMemMap");
  Check(cuMemMap(base + 32 * kMiB, 4 * kMiB, 0, first, 0), "cuMemMap again");
  Check(cuMemUnmap(base, 10 * kMiB), "cuMemUnmap");
  for (const std::uint64_t handle : {first, second, third}) Check(cuMemRelease(handle), "cuMemRelease");
  return 0;
}

int Threads() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([] {
      for (int turn = 0; turn < 1000; ++turn) {
        void* pointer = nullptr;
        Check(cudaMalloc(&pointer, kMiB), "cudaMalloc");
        cudaFree(pointer);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}

// The child is the first to call CUDA, or it does not call it; a file of its own shows it.
int Fork(bool parent_is_first) {
  if (parent_is_first) LeakHere(3 * kMiB);
  const pid_t child = fork();
  if (child == 0) {
    if (!parent_is_first) LeakHere(9 * kMiB);
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  LeakHere(5 * kMiB);
  std::printf("parent %d child %d\n", getpid(), child);
  return WEXITSTATUS(status);
}

int End(const char* how) {
  LeakHere(5 * kMiB);
  if (std::strcmp(how, "_exit") == 0) _exit(0);
  if (std::strcmp(how, "kill") == 0) raise(SIGKILL);
  if (std::strcmp(how, "term") == 0) raise(SIGTERM);
  if (std::strcmp(how, "abort") == 0) std::abort();
  return 0;
}

int Fail() {
  LeakHere(3 * kMiB);
  void* pointer = nullptr;
  const int result = cudaMalloc(&pointer, std::size_t{1} << 60);
  std::printf("result %d\n", result);
  return 0;
}

int BadFrees() {
  void* kept = LeakHere(3 * kMiB);
  const int result = cudaFree(static_cast<char*>(kept) + 4096);
  std::printf("result %d\n", result);
  return 0;
}

int Reset() {
  LeakHere(3 * kMiB);
  Check(cudaDeviceReset(), "cudaDeviceReset");
  LeakHere(5 * kMiB);
  Check(cudaDeviceReset(), "cudaDeviceReset");
  return 0;
}

// As a runtime that is linked statically finds the driver, and as programs that look for single functions do.
int Handed(const char* library) {
  void* driver = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return 1;
  using Ask = int(const char*, void**, int, std::uint64_t, int*);
  auto* ask = reinterpret_cast<Ask*>(dlsym(driver, "cuGetProcAddress_v2"));
  void* found = nullptr;
  LeakHere(kMiB);  // makes the context current
  Check(ask("cuMemAlloc", &found, 12000, 0, nullptr), "cuGetProcAddress_v2");
  void* pointer = nullptr;
  Check(reinterpret_cast<int (*)(void**, std::size_t)>(found)(&pointer, 2 * kMiB), "cuMemAlloc");
  Check(cudaGetDriverEntryPointByVersion("cuMemAllocAsync", &found, 12000, 0, nullptr), "cudaGetDriverEntryPoint");
  Check(reinterpret_cast<int (*)(void**, std::size_t, void*)>(found)(&pointer, 3 * kMiB, nullptr), "cuMemAllocAsync");
  auto* allocate = reinterpret_cast<int (*)(void**, std::size_t)>(dlsym(driver, "cuMemAlloc_v2"));
  Check(allocate(&pointer, 4 * kMiB), "cuMemAlloc_v2");
  // What is nobody's stand-in is what it was, and what is not there is not there.
  if (dlsym(driver, "cuMemGetInfo_v2") == nullptr || dlsym(driver, "cuNoSuchFunction") != nullptr) return 2;
  return dlerror() == nullptr ? 3 : 0;
}

// A library of this name is what the recorder knows PyTorch by.
int WithTorch(const char* library, bool comes_late) {
  if (comes_late) LeakHere(3 * kMiB);
  if (dlopen(library, RTLD_NOW) == nullptr) return 1;
  LeakHere(5 * kMiB);
  return 0;
}

int PoolWithTorch(const char* library) {
  if (const int code = WithTorch(library, false); code != 0) return code;
  void* pointer = nullptr;
  if (cudaMallocAsync(&pointer, 7 * kMiB, nullptr) != 0) return 1;
  return cudaFreeAsync(pointer, nullptr);
}

int Cost(int turns) {
  void* pointer = nullptr;
  for (int i = 0; i < 100; ++i) {
    cudaMalloc(&pointer, kMiB);
    cudaFree(pointer);
  }
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < turns; ++i) {
    cudaMalloc(&pointer, kMiB);
    cudaFree(pointer);
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  std::printf("%.1f ns for an allocation and its free\n", took.count() / turns);
  return 0;
}

// What the recorder says is held of both devices, behind what the program said.
void PrintLibraries() {
  using Libraries = std::size_t (*)(int, char*, std::size_t);
  const auto libraries = reinterpret_cast<Libraries>(dlsym(RTLD_DEFAULT, "ashlar_record_libraries"));
  char text[4096];
  for (int device = 0; libraries != nullptr && device < 2; ++device) {
    libraries(device, text, sizeof(text));
    std::printf("device %d\n%s", device, text);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (std::getenv("PRINT_LIBRARIES") != nullptr) std::atexit(PrintLibraries);
  const char* what = argc > 1 ? argv[1] : "";
  const char* how = argc > 2 ? argv[2] : "";
  const auto is = [what](const char* name) { return std::strcmp(what, name) == 0; };
  if (is("kinds")) return Kinds();
  if (is("virtual")) return Virtual();
  if (is("threads")) return Threads();
  if (is("fork")) return Fork(std::strcmp(how, "late") == 0);
  if (is("end")) return End(how);
  if (is("fail")) return Fail();
  if (is("bad-frees")) return BadFrees();
  if (is("reset")) return Reset();
  if (is("handed")) return Handed(how);
  if (is("torch")) return WithTorch(how, false);
  if (is("torch-pool")) return PoolWithTorch(how);
  if (is("late-torch")) return WithTorch(how, true);
  if (is("cost")) return Cost(std::atoi(how));
  return 64;
}
