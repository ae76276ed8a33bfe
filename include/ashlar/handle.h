// An allocator of libashlar.so as a C++17 value: no Abseil, any compiler and standard library (g++, clang with libc++,
// nvcc). All that throws does so in the program's own code; what crosses to the library is C.
//
//   ashlar::SharedAllocator allocator = ashlar::SharedAllocator::OfProcess(0);
//   try {
//     void* memory = allocator.Allocate(300 << 20, stream);
//     Kernel<<<..., stream>>>(memory);
//     allocator.Free(memory);         // reused in the order of `stream`
//   } catch (const ashlar::OutOfMemoryError& error) {
//     std::fputs(error.what(), stderr);  // where every byte is, at most 12 lines
//   }
//
// SharedBuffer is a block that frees itself; SharedPool is memory of its own for a part of a program.
//
// A handle is copied freely; the last one of an allocator that was opened closes it, and its memory goes with it. The
// process's allocators are never closed. Sizes are bytes; streams are CUDA's (cudaStream_t), nullptr the default
// stream. Threads: as ashlar.h; copying and destroying as std::shared_ptr. Streams: the per-thread default stream is
// refused in one line, since it is another stream in each thread.
#ifndef ASHLAR_HANDLE_H_
#define ASHLAR_HANDLE_H_

#include <ashlar.h>
#include <ashlar/exceptions.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace ashlar {

using AllocationError = OutOfMemoryError;  // its older name

// An Error with the number that the call returned.
class ASHLAR_API CallError : public Error {
 public:
  CallError(ashlar_status status, const std::string& text) : Error(text), status_(status) {}
  ashlar_status status() const noexcept { return status_; }  // ASHLAR_... of ashlar.h

 private:
  ashlar_status status_;
};

// Throws what the call of this thread that returned `status` left as its text.
inline void ThrowUnlessOk(ashlar_status status) {
  if (status == ASHLAR_OK) return;
  if (status == ASHLAR_OUT_OF_MEMORY) throw OutOfMemoryError(ashlar_last_error());
  throw CallError(status, ashlar_last_error());
}

class SharedAllocator {
 public:
  // Addresses are multiples of it.
  static constexpr std::size_t kAlignment = 512;

  // The one that all integrations of the process share. Throws CallError: no driver, no such GPU.
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

  // nullptr for 0 bytes. Throws OutOfMemoryError where memory is not enough, else CallError.
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

  // --- limits: requests beyond are out of memory ---
  // At most `fraction` of the device's memory, in [0, 1].
  void SetMemoryFraction(double fraction) { ThrowUnlessOk(ashlar_set_memory_fraction(get(), fraction)); }
  // At most so many bytes reserved, beside the fraction; UINT64_MAX: no such limit.
  void SetMemoryLimit(std::uint64_t bytes) { ThrowUnlessOk(ashlar_set_memory_limit(get(), bytes)); }

  // --- files for `ashlar explain`; `path` may have %p for the process's number and %h for the host ---
  // The state as it is.
  void DumpSnapshot(const std::string& path) const { ThrowUnlessOk(ashlar_dump_snapshot(get(), path.c_str())); }
  // Everything from now on, until it is stopped or the allocator closed. An existing file is replaced.
  void StartRecording(const std::string& path) { ThrowUnlessOk(ashlar_start_recording(get(), path.c_str())); }
  void StopRecording() { ThrowUnlessOk(ashlar_stop_recording(get())); }
  // The last events, in so many bytes of memory, which WriteRing makes a file of as often as asked.
  void StartRing(std::uint64_t bytes) { ThrowUnlessOk(ashlar_start_ring(get(), bytes)); }
  void WriteRing(const std::string& path) { ThrowUnlessOk(ashlar_write_ring(get(), path.c_str())); }

  // For the other functions of ashlar.h.
  ashlar_allocator* get() const noexcept { return allocator_.get(); }
  // The ordinal of its GPU; -1 for other memory.
  int device() const noexcept { return ashlar_device(get()); }

  // Memory of one may be freed by the other.
  friend bool operator==(const SharedAllocator& a, const SharedAllocator& b) noexcept { return a.get() == b.get(); }
  friend bool operator!=(const SharedAllocator& a, const SharedAllocator& b) noexcept { return !(a == b); }

 private:
  friend class SharedPool;
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

// A private pool: its memory serves its own requests alone. Its free memory goes back with it, and what lives then once
// it is freed and the cache is emptied. A pool keeps its allocator. Threads: one thread at a time uses a pool; a scope
// belongs to the thread that opened it.
//
//   ashlar::SharedPool pool(allocator);
//   void* memory = pool.Allocate(300 << 20, stream);   // allocator.Free frees it
//   {
//     const ashlar::SharedPool::Scope scope(pool);     // all requests of this thread come from the pool
//   }
class SharedPool {
 public:
  explicit SharedPool(SharedAllocator allocator) : allocator_(std::move(allocator)) {
    ThrowUnlessOk(ashlar_create_pool(allocator_.get(), &pool_));
  }
  ~SharedPool() {
    ashlar_release_pool(allocator_.get(), pool_);
    ashlar_empty_pool(allocator_.get(), pool_);  // not while a scope or a graph still uses it
  }
  SharedPool(const SharedPool&) = delete;
  SharedPool& operator=(const SharedPool&) = delete;

  // As SharedAllocator::Allocate.
  void* Allocate(std::size_t bytes, ashlar_stream stream = nullptr) {
    SharedAllocator::CheckStream(stream);
    void* memory = nullptr;
    ThrowUnlessOk(ashlar_allocate_in_pool(allocator_.get(), pool_, bytes, stream, &memory));
    return memory;
  }

  const SharedAllocator& allocator() const noexcept { return allocator_; }
  ashlar_pool id() const noexcept { return pool_; }  // for the other functions of ashlar.h

  // Throws CallError: the pool has a scope already. Scopes of several pools nest, and the innermost counts.
  class Scope {
   public:
    explicit Scope(const SharedPool& pool) : allocator_(pool.allocator_), pool_(pool.pool_) {
      auto self = std::make_unique<std::thread::id>(std::this_thread::get_id());
      ThrowUnlessOk(ashlar_begin_pool(allocator_.get(), pool_, ASHLAR_ROUTE_PLAIN, &IsOfThread, self.release(), &Drop));
    }
    ~Scope() {
      SharedAllocator::StopUnlessOk(ashlar_end_pool(allocator_.get(), pool_));
      SharedAllocator::StopUnlessOk(ashlar_release_pool(allocator_.get(), pool_));
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    static int IsOfThread(void* thread, ashlar_stream) {
      return *static_cast<std::thread::id*>(thread) == std::this_thread::get_id() ? 1 : 0;
    }
    static void Drop(void* thread) { delete static_cast<std::thread::id*>(thread); }

    SharedAllocator allocator_;
    ashlar_pool pool_;
  };

 private:
  SharedAllocator allocator_;
  ashlar_pool pool_{};
};

// A block that frees itself, in the order of its stream; it keeps its allocator. Work that the stream is given later
// may reuse the memory. Threads: one thread at a time uses a buffer.
//
//   ashlar::SharedBuffer buffer(allocator, 300 << 20, stream);
//   Kernel<<<..., stream>>>(buffer.data());
//   buffer.RecordStream(other);   // `other` uses it too: reused once its work so far is done as well
class SharedBuffer {
 public:
  SharedBuffer() noexcept = default;  // empty
  // Throws as SharedAllocator::Allocate. 0 bytes is an empty buffer.
  SharedBuffer(SharedAllocator allocator, std::size_t bytes, ashlar_stream stream = nullptr)
      : allocator_(std::move(allocator)),
        data_(allocator_->Allocate(bytes, stream)),
        size_bytes_(bytes),
        stream_(stream) {}
  ~SharedBuffer() { Reset(); }
  SharedBuffer(SharedBuffer&& other) noexcept { Swap(other); }
  SharedBuffer& operator=(SharedBuffer&& other) noexcept {
    SharedBuffer taken(std::move(other));
    Swap(taken);
    return *this;
  }

  explicit operator bool() const noexcept { return data_ != nullptr; }
  void* data() const noexcept { return data_; }
  std::size_t size_bytes() const noexcept { return size_bytes_; }  // as asked for
  ashlar_stream stream() const noexcept { return stream_; }

  void RecordStream(ashlar_stream stream) noexcept {
    if (data_ != nullptr) allocator_->RecordStream(data_, stream);
  }
  // Frees the block now; the buffer is empty then.
  void Reset() noexcept {
    if (data_ != nullptr) allocator_->Free(data_);
    Release();
  }
  // Hands the block to the caller, who frees it.
  void* Release() noexcept {
    size_bytes_ = 0;
    return std::exchange(data_, nullptr);
  }

 private:
  void Swap(SharedBuffer& other) noexcept {
    std::swap(allocator_, other.allocator_);
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
    std::swap(stream_, other.stream_);
  }

  std::optional<SharedAllocator> allocator_;
  void* data_ = nullptr;
  std::size_t size_bytes_ = 0;
  ashlar_stream stream_ = nullptr;
};

}  // namespace ashlar

#endif  // ASHLAR_HANDLE_H_
