// A program whose output must be the same with and without the serving library under it: what it does is named on its
// command line. It links the hollow device in place of CUDA.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "tests/hollow/serve/cuda.h"

namespace ashlar {
namespace {

// Every kind of wrong call, and what is left of it.
int Errors() {
  void* pointer = nullptr;
  Tell("too much", cudaMalloc(&pointer, std::size_t{1} << 60));
  Tell("last error", cudaGetLastError());
  Tell("last error again", cudaGetLastError());
  Tell("nowhere", cudaMalloc(nullptr, kMega));
  Tell("last error", cudaGetLastError());
  Tell("nothing", cudaMalloc(&pointer, 0));
  Tell("is null", pointer == nullptr);
  Tell("free of null", cudaFree(nullptr));
  void* held = Grab(3 * kMega);
  Tell("free within", cudaFree(static_cast<char*>(held) + 512));
  Tell("last error", cudaGetLastError());
  Tell("free", cudaFree(held));
  Tell("free again", cudaFree(held));
  Tell("last error", cudaGetLastError());
  int of_the_host = 0;
  Tell("free of the host's", cudaFree(&of_the_host));
  Tell("last error", cudaGetLastError());
  Tell("driver, nothing", cuMemAlloc_v2(&pointer, 0));
  Tell("driver, free again", cuMemFree_v2(held));
  Tell("last error", cudaPeekAtLastError());
  // The second gigabyte does not fit, and the first is there all the same.
  void* half = Grab(600 * kMega);
  Tell("second half", cudaMalloc(&pointer, 600 * kMega));
  Tell("last error", cudaGetLastError());
  Tell("free", cudaFree(half));
  Tell("second half", cudaMalloc(&pointer, 600 * kMega));
  Tell("last error", cudaGetLastError());
  return cudaFree(pointer);
}

// What CUDA says of memory.
int Answers() {
  std::size_t before = 0, after = 0, total = 0;
  cudaFree(nullptr);
  Tell("info", cudaMemGetInfo(&before, &total));
  void* large = Grab(64 * kMega);
  void* small = Grab(1000);
  cudaMemGetInfo(&after, &total);
  Tell("taken at least", before - after >= 64 * kMega);
  for (void* pointer : {large, small}) {
    std::uint64_t base = 0;
    std::size_t bytes = 0;
    Tell("range", cuMemGetAddressRange_v2(&base, &bytes, Address(pointer) + 100));
    Tell("begins there", base == Address(pointer));
    Tell("bytes", bytes);
    Tell("aligned", Address(pointer) % 256 == 0);
    int kinds[] = {2, 11, 12};  // type, range
    unsigned type = 0;
    void* places[] = {&type, &base, &bytes};
    base = bytes = 0;
    Tell("attributes", cuPointerGetAttributes(3, kinds, places, Address(pointer) + 200));
    Tell("of a device", type);
    Tell("begins there", base == Address(pointer));
    Tell("bytes", bytes);
    bytes = 0;
    Tell("attribute", cuPointerGetAttribute(&bytes, 12, Address(pointer)));
    Tell("bytes", bytes);
    hollow::abi::PointerAttributes attributes = {};
    Tell("runtime", cudaPointerGetAttributes(&attributes, pointer));
    Tell("type", attributes.type);
    Tell("device", attributes.device);
  }
  Tell("free", cudaFree(large));
  Tell("free", cudaFree(small));
  cudaMemGetInfo(&after, &total);
  Tell("all is free again", after == before);
  void* managed = nullptr;
  Tell("managed", cudaMallocManaged(&managed, kMega, 1));
  Tell("free", cudaFree(managed));
  std::size_t pitch = 0;
  Tell("pitched", cudaMallocPitch(&managed, &pitch, 1000, 10));
  Tell("pitch", pitch);
  Tell("free", cudaFree(managed));
  return 0;
}

// Either free frees either memory, of the program's own pools too.
int Frees() {
  void* stream = NewStream();
  void* first = Grab(3 * kMega);
  void* second = GrabOn(stream, 3 * kMega);
  Tell("async free of cudaMalloc", cudaFreeAsync(first, stream));
  Tell("free of async", cudaFree(second));
  void* third = GrabOn(stream, 3 * kMega);
  Tell("async free on another stream", cudaFreeAsync(third, nullptr));
  void* fourth = GrabOn(nullptr, 3 * kMega);
  Tell("async free", cudaFreeAsync(fourth, nullptr));
  void* driver = nullptr;
  Tell("driver", cuMemAlloc_v2(&driver, kMega));
  Tell("free by the runtime", cudaFree(driver));
  void* runtime = Grab(kMega);
  Tell("free by the driver", cuMemFree_v2(runtime));
  hollow::abi::PoolProps props = {};
  props.allocation_type = 1;
  props.location = {1, 0};
  void *pool = nullptr, *pooled = nullptr;
  Tell("pool", cudaMemPoolCreate(&pool, &props));
  Tell("from it", cudaMallocFromPoolAsync(&pooled, kMega, pool, stream));
  Tell("free", cudaFreeAsync(pooled, stream));
  Tell("stream", cudaStreamDestroy(stream));
  Tell("last error", cudaGetLastError());
  return 0;
}

// What a capture forbids, allows and makes a node of.
int Capture(int mode) {
  void *stream = NewStream(), *graph = nullptr, *pointer = nullptr;
  void* held = Grab(kMega);
  Tell("begin", cudaStreamBeginCapture(stream, mode));
  Tell("async", cudaMallocAsync(&pointer, kMega, stream));
  Tell("async free", cudaFreeAsync(pointer, stream));
  int of_thread = mode;
  if (mode == 2) cudaThreadExchangeStreamCaptureMode(&of_thread);
  Tell("cudaFree", cudaFree(held));
  Tell("last error", cudaGetLastError());
  Tell("cudaMalloc", cudaMalloc(&pointer, kMega));
  Tell("last error", cudaGetLastError());
  Tell("end", cudaStreamEndCapture(stream, &graph));
  std::size_t nodes = 0;
  if (graph != nullptr) cudaGraphGetNodes(graph, nullptr, &nodes);
  Tell("nodes", nodes);
  Tell("last error", cudaGetLastError());
  void* later = Grab(kMega);
  Tell("free", cudaFree(later));
  return 0;
}

int Devices() {
  void* pointers[2] = {};
  for (const int device : {1, 0}) {
    cudaSetDevice(device);
    pointers[device] = Grab(5 * kMega);
    hollow::abi::PointerAttributes attributes = {};
    cudaPointerGetAttributes(&attributes, pointers[device]);
    Tell("device", attributes.device);
  }
  Tell("peers", cudaDeviceEnablePeerAccess(1, 0));
  Tell("free of the other", cudaFree(pointers[1]));  // the current one is 0
  Tell("free", cudaFree(pointers[0]));
  std::thread([] {  // a thread that has not called CUDA
    void* pointer = Grab(kMega);
    Tell("free", cudaFree(pointer));
  })
      .join();
  return 0;
}

int Reset() {
  void* lost = Grab(3 * kMega);
  Tell("reset", cudaDeviceReset());
  Tell("free of what is lost", cudaFree(lost));
  Tell("last error", cudaGetLastError());
  void* next = Grab(5 * kMega);
  Tell("free", cudaFree(next));
  Tell("reset", cudaDeviceReset());
  return 0;
}

int OwnContext() {
  void *own = nullptr, *pointer = nullptr;
  Tell("init", cuInit(0));
  Tell("without a context", cuMemAlloc_v2(&pointer, kMega));
  Tell("context", cuCtxCreate_v2(&own, 0, 0));
  Tell("allocate", cuMemAlloc_v2(&pointer, kMega));
  Tell("free", cuMemFree_v2(pointer));
  Tell("destroy", cuCtxDestroy_v2(own));
  return 0;
}

int Threads() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([] {
      std::vector<void*> held;
      for (int turn = 0; turn < 500; ++turn) {
        held.push_back(Grab((1 + turn % 7) * kMega / 4));
        if (held.size() < 4) continue;
        if (cudaFree(held.front()) != 0) std::exit(2);
        held.erase(held.begin());
      }
      for (void* pointer : held) {
        if (cudaFree(pointer) != 0) std::exit(2);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Tell("last error", cudaGetLastError());
  return 0;
}

// What a thread holds, with a mark of its own at both ends: memory of the hollow device can be written by the host.
class Marked {
 public:
  Marked(void* memory, std::size_t bytes, std::uint64_t mark)
      : first_(static_cast<std::uint64_t*>(memory)), last_(first_ + bytes / sizeof(mark) - 1), mark_(mark) {
    *first_ = *last_ = mark;
  }
  // Null where somebody else wrote there.
  void* Checked() const { return *first_ == mark_ && *last_ == mark_ ? first_ : nullptr; }

 private:
  std::uint64_t* first_;
  std::uint64_t* last_;
  std::uint64_t mark_;
};

// Every way to allocate and to free, by chance, on streams that threads share.
void Mix(std::uint64_t seed, const std::vector<void*>& streams) {
  std::vector<Marked> held;
  std::uint64_t state = seed;
  const auto next = [&state](std::uint64_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % bound;
  };
  for (int turn = 0; turn < 2000 || !held.empty(); ++turn) {
    void* stream = streams[next(streams.size())];
    if (turn < 2000 && held.size() < 20 && next(2) == 0) {
      const std::size_t bytes = 512 * (1 + next(4000));
      held.emplace_back(next(2) == 0 ? Grab(bytes) : GrabOn(stream, bytes), bytes, seed * 1'000'000 + turn);
      continue;
    }
    if (held.empty()) continue;
    const std::size_t at = next(held.size());
    void* memory = held[at].Checked();
    if (memory == nullptr || (next(2) == 0 ? cudaFree(memory) : cudaFreeAsync(memory, stream)) != 0) std::exit(3);
    held[at] = held.back();
    held.pop_back();
  }
}

int Mixes() {
  const std::vector<void*> streams = {NewStream(), NewStream(), nullptr};
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) threads.emplace_back([=] { Mix(seed, streams); });
  for (std::thread& thread : threads) thread.join();
  Tell("last error", cudaGetLastError());
  return 0;
}

// After the parent has used CUDA, or before: then the child is the first.
int Fork(bool parent_is_first) {
  void* held = parent_is_first ? Grab(3 * kMega) : nullptr;
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    void* pointer = nullptr;
    Tell("child allocates", cudaMalloc(&pointer, kMega));
    if (pointer != nullptr) Tell("child frees", cudaFree(pointer));
    if (held != nullptr) Tell("child frees its parent's", cudaFree(held));
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  Tell("child", WEXITSTATUS(status));
  void* pointer = Grab(3 * kMega);
  Tell("free", cudaFree(pointer));
  if (held != nullptr) Tell("free", cudaFree(held));
  return 0;
}

int Exec(char** argv) {
  void* held = Grab(3 * kMega);
  Tell("free", cudaFree(held));
  std::fflush(stdout);
  execl(argv[0], argv[0], "frees", nullptr);
  return 1;
}

// Frees at the very end, when other destructors have run.
struct Late {
  ~Late() {
    if (held != nullptr) Tell("late free", cudaFree(held));
  }
  void* held = nullptr;
};
Late g_late;

int End(const char* how) {
  g_late.held = Grab(5 * kMega);
  cudaFree(Grab(kMega));
  std::fflush(stdout);
  if (std::strcmp(how, "_exit") == 0) _exit(0);
  if (std::strcmp(how, "abort") == 0) std::abort();
  return 0;
}

}  // namespace

int Run(char** argv, const char* what, const char* how) {
  const auto is = [what](const char* name) { return std::strcmp(what, name) == 0; };
  if (is("errors")) return Errors();
  if (is("answers")) return Answers();
  if (is("frees")) return Frees();
  if (is("capture")) return Capture(std::atoi(how));
  if (is("devices")) return Devices();
  if (is("reset")) return Reset();
  if (is("own-context")) return OwnContext();
  if (is("threads")) return Threads();
  if (is("mixes")) return Mixes();
  if (is("fork")) return Fork(std::strcmp(how, "after") == 0);
  if (is("exec")) return Exec(argv);
  if (is("end")) return End(how);
  return 64;
}

}  // namespace ashlar

int main(int argc, char** argv) { return ashlar::Run(argv, argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : ""); }
