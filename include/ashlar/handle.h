// An allocator of libashlar.so as a C++17 value: no Abseil, any compiler and standard library (g++, clang with libc++,
// nvcc). All that throws does so in the program's own code; what crosses to the library is C.
//
//   ashlar::SharedAllocator allocator = ashlar::SharedAllocator::OfProcess(0);
//   try {
//     void* memory = allocator.Allocate(300 << 20, stream);
//     Kernel<<<..., stream>>>(memory);
//     allocator.Free(memory);         // reused in the order of `stream`
//   } catch (const ashlar::AllocationError& error) {
//     std::fputs(error.what(), stderr);  // where every byte is, at most 12 lines
//   }
//
// A handle is copied freely; the last one of an allocator that was opened closes it, and its memory goes with it. The
// process's allocators are never closed. Sizes are bytes; streams are CUDA's (cudaStream_t), nullptr the default
// stream. Threads: as ashlar.h; copying and destroying as std::shared_ptr. Streams: the per-thread default stream is
// refused in one line, since it is another stream in each thread.
#ifndef ASHLAR_HANDLE_H_
#define ASHLAR_HANDLE_H_

#include <ashlar.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace ashlar {

// The device's memory is not enough, after everything was tried. Copies never throw.
class ASHLAR_API AllocationError : public std::bad_alloc {
 public:
  explicit AllocationError(std::string text) : text_(std::make_shared<const std::string>(std::move(text))) {}
  const char* what() const noexcept override { return text_->c_str(); }

 private:
  std::shared_ptr<const std::string> text_;
};

// Any other failure of a call: no GPU, an unknown setting, the device's own error.
class ASHLAR_API CallError : public std::runtime_error {
 public:
  CallError(ashlar_status status, const std::string& text) : std::runtime_error(text), status_(status) {}
  ashlar_status status() const noexcept { return status_; }  // ASHLAR_... of ashlar.h

 private:
  ashlar_status status_;
};

// Throws what the call of this thread that returned `status` left as its text.
inline void ThrowUnlessOk(ashlar_status status) {
  if (status == ASHLAR_OK) return;
  if (status == ASHLAR_OUT_OF_MEMORY) throw AllocationError(ashlar_last_error());
  throw CallError(status, ashlar_last_error());
}

class SharedAllocator {
 public:
  // Addresses are multiples of it.
  static constexpr std::size_t kAlignment = 512;

  // The one that all doors of the process share. Throws CallError: no driver, no such GPU.
  static SharedAllocator OfProcess(int device) {
    ashlar_allocator* allocator = nullptr;
    ThrowUnlessOk(ashlar_process_allocator(device, &allocator));
    return SharedAllocator(std::shared_ptr<ashlar_allocator>(allocator, [](ashlar_allocator*) {}));
  }

  // One of the program's own. Throws CallError: as OfProcess, and a setting that is none.
  static SharedAllocator Open(const ashlar_open_options& options) {
    ashlar_allocator* allocator = nullptr;
    ThrowUnlessOk(ashlar_open(&options, &allocator));
    return SharedAllocator(std::shared_ptr<ashlar_allocator>(allocator, &ashlar_close));
  }
  // `conf`: settings as text; nullptr: those of the environment.
  static SharedAllocator OpenGpu(int device, const char* conf = nullptr) {
    return Open({sizeof(ashlar_open_options), conf, ASHLAR_MEMORY_CUDA, device, 0});
  }
  // Memory of the host, which needs no GPU.
  static SharedAllocator OpenHost(std::uint64_t capacity_bytes, const char* conf = nullptr) {
    return Open({sizeof(ashlar_open_options), conf, ASHLAR_MEMORY_HOST, 0, capacity_bytes});
  }
  // Addresses without memory, for tests.
  static SharedAllocator OpenSimulated(std::uint64_t capacity_bytes, const char* conf = nullptr) {
    return Open({sizeof(ashlar_open_options), conf, ASHLAR_MEMORY_SIMULATED, 0, capacity_bytes});
  }

  // nullptr for 0 bytes. Throws AllocationError where memory is not enough, else CallError.
  void* Allocate(std::size_t bytes, ashlar_stream stream = nullptr) {
    CheckStream(stream);
    void* memory = nullptr;
    ThrowUnlessOk(ashlar_allocate(get(), bytes, stream, &memory));
    return memory;
  }
  // The same for a caller that names an alignment, a power of two. Above kAlignment the block is larger by the
  // difference, and the address lies inside it: FreeAligned alone frees it.
  void* Allocate(std::size_t bytes, std::size_t alignment, ashlar_stream stream) {
    CheckAlignment(alignment);
    if (alignment <= kAlignment || bytes == 0) return Allocate(bytes, stream);
    const std::size_t more = alignment - kAlignment;
    void* const block = Allocate(bytes + (bytes > SIZE_MAX - more ? SIZE_MAX - bytes : more), stream);
    const std::uintptr_t last = reinterpret_cast<std::uintptr_t>(block) + more;
    return reinterpret_cast<void*>(last & ~(static_cast<std::uintptr_t>(alignment) - 1));
  }

  // Reused at once by the stream that it was allocated for. nullptr is nothing to do. An address at which no live block
  // begins stops the process with one line.
  void Free(void* memory) noexcept { StopUnlessOk(ashlar_free(get(), memory)); }
  // The same by a program whose last work with the memory is on `stream`, which may be another one: then it is reused
  // once that work is done.
  void Free(void* memory, ashlar_stream stream) noexcept {
    if (memory == nullptr) return;
    RecordStream(memory, stream);
    Free(memory);
  }
  // What was allocated with this alignment. Above kAlignment all threads stand still while its block is looked for.
  void FreeAligned(void* memory, std::size_t alignment) noexcept { Free(BlockOf(memory, alignment)); }
  void FreeAligned(void* memory, std::size_t alignment, ashlar_stream stream) noexcept {
    Free(BlockOf(memory, alignment), stream);
  }
  // `stream` uses the memory too.
  void RecordStream(void* memory, ashlar_stream stream) noexcept {
    StopUnlessOk(ashlar_record_stream(get(), memory, stream));
  }

  // Returns what is whole-free to the device.
  void EmptyCache() { ThrowUnlessOk(ashlar_empty_cache(get())); }
  ashlar_statistics Statistics() const {
    ashlar_statistics statistics{};
    statistics.struct_size = sizeof(statistics);
    ThrowUnlessOk(ashlar_get_statistics(get(), &statistics));
    return statistics;
  }

  // For the other functions of ashlar.h.
  ashlar_allocator* get() const noexcept { return allocator_.get(); }
  // The ordinal of its GPU; -1 for other memory.
  int device() const noexcept { return ashlar_device(get()); }

  // Memory of one may be freed by the other.
  friend bool operator==(const SharedAllocator& a, const SharedAllocator& b) noexcept { return a.get() == b.get(); }
  friend bool operator!=(const SharedAllocator& a, const SharedAllocator& b) noexcept { return !(a == b); }

 private:
  explicit SharedAllocator(std::shared_ptr<ashlar_allocator> allocator) : allocator_(std::move(allocator)) {}

  // CUDA's handle of the per-thread default stream is the number 2.
  static void CheckStream(ashlar_stream stream) {
    if (reinterpret_cast<std::uintptr_t>(stream) != 2) return;
    throw CallError(ASHLAR_INVALID_ARGUMENT,
                    "the per-thread default stream is another stream in each thread: pass one from cudaStreamCreate");
  }
  static void CheckAlignment(std::size_t alignment) {
    if (alignment != 0 && (alignment & (alignment - 1)) == 0) return;
    throw CallError(ASHLAR_INVALID_ARGUMENT, "an alignment of " + std::to_string(alignment) +
                                                 " bytes is not to be had: powers of two alone are");
  }
  // Where the block begins in which the memory lies.
  void* BlockOf(void* memory, std::size_t alignment) noexcept {
    if (alignment <= kAlignment || memory == nullptr) return memory;
    ashlar_block block{};
    block.struct_size = sizeof(block);
    StopUnlessOk(ashlar_find_block(get(), memory, &block));
    return block.address;
  }
  static void StopUnlessOk(ashlar_status status) noexcept {
    if (status == ASHLAR_OK) return;
    std::fprintf(stderr, "ashlar: %s\n", ashlar_last_error());
    std::abort();
  }

  std::shared_ptr<ashlar_allocator> allocator_;
};

}  // namespace ashlar

#endif  // ASHLAR_HANDLE_H_
