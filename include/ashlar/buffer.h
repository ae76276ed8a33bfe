// A block that frees itself, in stream order:
//
//   {
//     absl::StatusOr<ashlar::Buffer> buffer = ashlar::Buffer::Make(allocator, 300 * ashlar::kMiB, stream);
//     if (!buffer.ok()) return buffer.status();
//     Kernel<<<..., stream>>>(buffer->data());
//     buffer->RecordStream(other);    // `other` uses it too
//   }                                 // freed: the next request of `stream` may have it, after that kernel
//
// Freeing waits for nothing. Work that the stream is given later may reuse the memory; where other streams were
// recorded, it is reused once their work so far is done. The allocator outlives the buffer. Threads: one thread at a
// time uses a buffer.
#ifndef ASHLAR_BUFFER_H_
#define ASHLAR_BUFFER_H_

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "ashlar/allocator.h"
#include "ashlar/units.h"

namespace ashlar {

class Buffer {
 public:
  // Errors as Allocator::Allocate. 0 bytes is an empty buffer.
  static absl::StatusOr<Buffer> Make(Allocator& allocator, std::uint64_t bytes, Stream stream, PoolId pool = {}) {
    absl::StatusOr<Block> block = allocator.Allocate(bytes, stream, pool);
    if (!block.ok()) return std::move(block).status();
    return Buffer(allocator, *block, bytes, stream);
  }

  Buffer() = default;  // empty
  ~Buffer() { Reset(); }
  Buffer(Buffer&& other) noexcept { Swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer taken(std::move(other));
    Swap(taken);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  explicit operator bool() const { return static_cast<bool>(block_); }
  void* data() const { return block_.data(); }
  std::uint64_t address() const { return block_.address(); }
  std::uint64_t size_bytes() const { return size_bytes_; }  // as asked for
  Stream stream() const { return stream_; }

  // `stream` uses the memory too.
  void RecordStream(Stream stream) {
    if (block_) allocator_->RecordStream(block_, stream);
  }
  // Frees the block now; the buffer is empty then.
  void Reset() {
    if (block_) allocator_->Free(block_);
    block_ = Block();
    size_bytes_ = 0;
  }
  // Hands the block to the caller, who frees it.
  Block Release() {
    size_bytes_ = 0;
    return std::exchange(block_, Block());
  }

 private:
  Buffer(Allocator& allocator, Block block, std::uint64_t bytes, Stream stream)
      : allocator_(&allocator), block_(block), size_bytes_(bytes), stream_(stream) {}
  void Swap(Buffer& other) noexcept {
    std::swap(allocator_, other.allocator_);
    std::swap(block_, other.block_);
    std::swap(size_bytes_, other.size_bytes_);
    std::swap(stream_, other.stream_);
  }

  Allocator* allocator_ = nullptr;
  Block block_;
  std::uint64_t size_bytes_ = 0;
  Stream stream_{};
};

}  // namespace ashlar

#endif  // ASHLAR_BUFFER_H_
