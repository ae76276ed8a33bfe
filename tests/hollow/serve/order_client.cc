// A program that looks at which block it is served, while work of its streams is not done: over a hollow device whose
// work takes time. What it does is named on its command line.
#include <dlfcn.h>

#include <cstring>

#include "ashlar.h"
#include "tests/hollow/serve/cuda.h"

namespace ashlar {
namespace {

constexpr std::size_t kBytes = 3 * kMega;
constexpr int kNotReady = 600;

void Work(void* pointer, void* stream) { cudaMemsetAsync(pointer, 0, kBytes, stream); }

// cudaFree waits, and then the block serves whoever comes.
int FreeWaits() {
  void* stream = NewStream();
  void* first = Grab(kBytes);
  Work(first, stream);
  Tell("is working", cudaStreamQuery(stream) == kNotReady);
  Tell("free", cudaFree(first));
  Tell("is done", cudaStreamQuery(stream));
  Tell("the same block", Grab(kBytes) == first);
  return 0;
}

int StreamOrder() {
  void *stream = NewStream(), *other = NewStream();
  void* first = GrabOn(stream, kBytes);
  Work(first, stream);
  cudaFreeAsync(first, stream);
  Tell("in order at once", GrabOn(stream, kBytes) == first);
  Tell("is still working", cudaStreamQuery(stream) == kNotReady);
  cudaFreeAsync(first, stream);
  void* of_other = GrabOn(other, kBytes);
  Tell("another stream has another", of_other != first);
  // Freed on another stream, whose work is not done: not even its own stream has it yet.
  void* third = GrabOn(stream, kBytes);
  Tell("in order", third == first);
  Work(third, other);
  cudaFreeAsync(third, other);
  void* fourth = GrabOn(stream, kBytes);
  Tell("it waits", fourth != third);
  cudaStreamSynchronize(other);
  Tell("it is back", GrabOn(stream, kBytes) == third);
  return 0;
}

// The default stream's blocks are not for cudaMalloc while its work is not done.
int DefaultStream() {
  void* first = GrabOn(nullptr, kBytes);
  Work(first, nullptr);
  cudaFreeAsync(first, nullptr);
  void* every = Grab(kBytes);
  Tell("cudaMalloc has another", every != first);
  Tell("in order", GrabOn(nullptr, kBytes) == first);
  // Memory of cudaMalloc that is freed on a stream comes back when that stream is done.
  Work(every, nullptr);
  cudaFreeAsync(every, nullptr);
  void* next = Grab(kBytes);
  Tell("it waits", next != every);
  cudaDeviceSynchronize();
  Tell("it is back", Grab(kBytes) == every);
  return 0;
}

// A stream's handle may be used again while work of the one before it is not done.
int Handles() {
  void *first = NewStream(), *second = nullptr, *block = GrabOn(first, kBytes);
  void* watched = NewStream();
  Work(block, watched);
  cudaFreeAsync(block, first);
  cudaStreamDestroy(first);
  for (int i = 0; i < 64 && second != first; ++i) second = NewStream();
  Tell("has the handle again", second == first);
  Tell("is working", cudaStreamQuery(watched) == kNotReady);
  Tell("the old block", GrabOn(second, kBytes) == block);
  Tell("is done", cudaStreamQuery(watched));
  return 0;
}

// In a capture that allows it: the block comes back after the end, when all work is done.
int RelaxedCapture() {
  void *stream = NewStream(), *watched = NewStream(), *graph = nullptr, *held = Grab(kBytes);
  Work(held, watched);
  cudaStreamBeginCapture(stream, 2);
  int mode = 2;
  cudaThreadExchangeStreamCaptureMode(&mode);
  Tell("free", cudaFree(held));
  void* meanwhile = Grab(kBytes);
  Tell("the driver's", meanwhile != held);
  Tell("end", cudaStreamEndCapture(stream, &graph));
  Tell("it is back", Grab(kBytes) == held);
  Tell("is done", cudaStreamQuery(watched));
  Tell("free", cudaFree(meanwhile));
  return 0;
}

// Work of a device that may use another one's memory is waited for, and so is a stream of another device.
int OtherDevices() {
  cudaSetDevice(0);
  void *stream = NewStream(), *worked_on = Grab(kBytes);
  cudaSetDevice(1);
  void *first = Grab(kBytes), *second = Grab(kBytes), *own_stream = NewStream();
  cudaSetDevice(0);
  hollow::abi::PointerAttributes attributes = {};
  cudaPointerGetAttributes(&attributes, GrabOn(own_stream, kBytes));
  Tell("of the stream's device", attributes.device);
  Work(worked_on, stream);
  Tell("is working", cudaStreamQuery(stream) == kNotReady);
  Tell("free on a stream of another device", cudaFreeAsync(first, stream));
  Tell("is done", cudaStreamQuery(stream));
  Work(worked_on, stream);
  Tell("is working", cudaStreamQuery(stream) == kNotReady);
  Tell("without peers", cudaFree(second));
  Tell("is working", cudaStreamQuery(stream) == kNotReady);
  Tell("peers", cudaDeviceEnablePeerAccess(1, 0));
  cudaSetDevice(1);
  Tell("free", cudaFree(Grab(kBytes)));
  Tell("is done", cudaStreamQuery(stream));
  return 0;
}

int Pools() {
  void *stream = NewStream(), *pool = nullptr, *served = GrabOn(stream, kBytes);
  Tell("free", cudaFreeAsync(served, stream));
  Tell("pool", cudaDeviceGetDefaultMemPool(&pool, 0));
  void* pooled = GrabOn(stream, kBytes);
  Tell("the driver's", pooled != served);
  Tell("free", cudaFreeAsync(pooled, stream));
  return 0;
}

int PerThread() {
  void* pointer = nullptr;
  Tell("allocate", cudaMallocAsync_ptsz(&pointer, kBytes, nullptr));
  Tell("free", cudaFreeAsync(pointer, reinterpret_cast<void*>(2)));
  void* every = Grab(kBytes);
  Tell("free of cudaMalloc", cudaFreeAsync(every, reinterpret_cast<void*>(2)));
  return 0;
}

int Ipc() {
  hollow::abi::IpcHandle handle = {};
  void *served = Grab(kBytes), *pitched = nullptr;
  std::size_t pitch = 0;
  Tell("runtime", cudaIpcGetMemHandle(&handle, served));
  Tell("driver", cuIpcGetMemHandle(&handle, served));
  unsigned char is_capable = 1;
  Tell("attribute", cuPointerGetAttribute(&is_capable, 10, Address(served)));
  Tell("is capable", is_capable);
  Tell("last error", cudaGetLastError());
  Tell("of the driver's own", cudaMallocPitch(&pitched, &pitch, 1000, 100));
  Tell("runtime", cudaIpcGetMemHandle(&handle, pitched));
  return 0;
}

// A library of this name is what PyTorch is known by.
int WithTorch(const char* library, bool comes_late) {
  void* early = comes_late ? Grab(kBytes) : nullptr;
  if (dlopen(library, RTLD_NOW) == nullptr) return 1;
  void* pointer = Grab(kBytes);
  Tell("free", cudaFree(pointer));
  if (early != nullptr) Tell("free", cudaFree(early));
  return 0;
}

// As a runtime that is linked statically finds the driver.
int Handed(const char* library) {
  cudaFree(nullptr);
  void* driver = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return 1;
  using Ask = int(const char*, void**, int, std::uint64_t, int*);
  auto* first = reinterpret_cast<Ask*>(dlsym(driver, "cuGetProcAddress_v2"));
  void* found = nullptr;
  Tell("itself", first("cuGetProcAddress", &found, 12000, 0, nullptr));
  auto* ask = reinterpret_cast<Ask*>(found);
  const auto get = [ask](const char* name, std::uint64_t flags) {
    void* function = nullptr;
    Tell(name, ask(name, &function, 12000, flags, nullptr));
    return function;
  };
  auto* allocate = reinterpret_cast<int (*)(void**, std::size_t)>(get("cuMemAlloc", 0));
  auto* release = reinterpret_cast<int (*)(void*)>(get("cuMemFree", 0));
  auto* on_stream = reinterpret_cast<int (*)(void**, std::size_t, void*)>(get("cuMemAllocAsync", 0));
  auto* per_thread = reinterpret_cast<int (*)(void**, std::size_t, void*)>(get("cuMemAllocAsync", 2));
  Tell("differ", on_stream != per_thread);
  void *pointer = nullptr, *again = nullptr, *ordered = nullptr;
  Tell("allocate", allocate(&pointer, kBytes));
  Tell("free", release(pointer));
  Tell("allocate", allocate(&again, kBytes));
  Tell("the same block", pointer == again);
  Tell("on a stream", on_stream(&ordered, kBytes, NewStream()));
  Tell("of a thread", per_thread(&ordered, kBytes, nullptr));
  return 0;
}

// Another integration of the process has the allocator first: its own calls of the driver are not served again.
int OtherIntegration(const char* library) {
  void* ashlar = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (ashlar == nullptr) return 1;
  cudaFree(nullptr);
  const auto open = reinterpret_cast<decltype(&ashlar_process_allocator)>(dlsym(ashlar, "ashlar_process_allocator"));
  const auto allocate = reinterpret_cast<decltype(&ashlar_allocate)>(dlsym(ashlar, "ashlar_allocate"));
  const auto release = reinterpret_cast<decltype(&ashlar_free)>(dlsym(ashlar, "ashlar_free"));
  ashlar_allocator* allocator = nullptr;
  void* pointer = nullptr;
  Tell("open", open(0, &allocator));
  Tell("allocate", allocate(allocator, kBytes, nullptr, &pointer));
  Tell("free", release(allocator, pointer));
  Tell("one pool", Grab(kBytes) == pointer);
  Tell("allocate", allocate(allocator, 100 * kMega, nullptr, &pointer));
  Tell("free", release(allocator, pointer));
  return 0;
}

}  // namespace

int Run(const char* what, const char* how) {
  const auto is = [what](const char* name) { return std::strcmp(what, name) == 0; };
  if (is("free-waits")) return FreeWaits();
  if (is("stream-order")) return StreamOrder();
  if (is("default-stream")) return DefaultStream();
  if (is("handles")) return Handles();
  if (is("relaxed-capture")) return RelaxedCapture();
  if (is("other-devices")) return OtherDevices();
  if (is("pools")) return Pools();
  if (is("per-thread")) return PerThread();
  if (is("ipc")) return Ipc();
  if (is("torch")) return WithTorch(how, false);
  if (is("late-torch")) return WithTorch(how, true);
  if (is("handed")) return Handed(how);
  if (is("other-integration")) return OtherIntegration(how);
  return 64;
}

}  // namespace ashlar

int main(int argc, char** argv) { return ashlar::Run(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : ""); }
