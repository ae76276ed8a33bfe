// The rules of docs/internals/policy.md once more, as slowly and plainly as can be: every search looks at every block.
// It shares no code with policy::Heap. It is the heap alone, step by step; the model (model.h) is the whole allocator
// with its device and its ladder. Requests are rounded to 512 bytes; equal free blocks are in address order.
#ifndef ASHLAR_TESTS_ALLOCATOR_POLICY_SLOW_HEAP_H_
#define ASHLAR_TESTS_ALLOCATOR_POLICY_SLOW_HEAP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace ashlar::policy {

class SlowHeap {
 public:
  enum class State : std::uint8_t { kFree, kWaiting, kLive };
  struct Piece {
    std::uint64_t address, bytes;
    State state;
  };
  struct Owner {
    std::uint64_t stream, pool;
    bool is_small;
    bool operator==(const Owner&) const = default;
  };
  struct Chunk {
    Owner owner;
    std::vector<Piece> pieces;
  };

  explicit SlowHeap(std::uint64_t max_split_bytes) : max_split_bytes_(max_split_bytes) {}

  static std::uint64_t Rounded(std::uint64_t bytes) { return std::max<std::uint64_t>(512, (bytes + 511) / 512 * 512); }
  static bool IsSmall(std::uint64_t rounded) { return rounded <= 1048576; }
  static std::uint64_t ChunkBytes(std::uint64_t rounded) {
    if (IsSmall(rounded)) return 2097152;
    return rounded < 10485760 ? 20971520 : (rounded + 2097151) / 2097152 * 2097152;
  }

  // The address handed out; 0 where no free piece serves.
  std::uint64_t Take(std::uint64_t bytes, std::uint64_t stream, std::uint64_t pool) {
    const std::uint64_t rounded = Rounded(bytes);
    const Owner owner{stream, pool, IsSmall(rounded)};
    Chunk* best_chunk = nullptr;
    std::size_t best = 0;
    for (auto& [address, chunk] : chunks_) {
      for (std::size_t i = 0; i < chunk.pieces.size(); ++i) {
        const Piece& piece = chunk.pieces[i];
        if (!(chunk.owner == owner) || piece.state != State::kFree || piece.bytes < rounded) continue;
        if (best_chunk == nullptr || piece.bytes < best_chunk->pieces[best].bytes) best_chunk = &chunk, best = i;
      }
    }
    if (best_chunk == nullptr || !MayServe(rounded, best_chunk->pieces[best].bytes)) return 0;
    return Cut(*best_chunk, best, rounded);
  }

  std::uint64_t TakeNew(std::uint64_t bytes, std::uint64_t stream, std::uint64_t pool, std::uint64_t address) {
    const std::uint64_t rounded = Rounded(bytes);
    Chunk& chunk = chunks_[address];
    chunk = {{stream, pool, IsSmall(rounded)}, {{address, ChunkBytes(rounded), State::kFree}}};
    return Cut(chunk, 0, rounded);
  }

  void Set(std::uint64_t address, State state) {
    for (auto& [begin, chunk] : chunks_) {
      for (std::size_t i = 0; i < chunk.pieces.size(); ++i) {
        if (chunk.pieces[i].address != address) continue;
        chunk.pieces[i].state = state;
        Join(chunk.pieces);
        return;
      }
    }
  }

  void ReturnCache() {
    std::erase_if(chunks_, [](const auto& entry) {
      return entry.second.pieces.size() == 1 && entry.second.pieces[0].state == State::kFree;
    });
  }

  const std::map<std::uint64_t, Chunk>& chunks() const { return chunks_; }

 private:
  bool MayServe(std::uint64_t rounded, std::uint64_t bytes) const {
    if (max_split_bytes_ == ~std::uint64_t{0}) return true;
    if (rounded < max_split_bytes_) return bytes < max_split_bytes_;
    return bytes - rounded < 20971520;
  }

  std::uint64_t Cut(Chunk& chunk, std::size_t i, std::uint64_t rounded) {
    const Piece whole = chunk.pieces[i];
    const std::uint64_t rest = whole.bytes - rounded;
    const bool cuts =
        chunk.owner.pool != 2 && (chunk.owner.is_small ? rest >= 512 : rest > 1048576 && rounded < max_split_bytes_);
    chunk.pieces[i].state = State::kLive;
    if (cuts) {
      chunk.pieces[i].bytes = rounded;
      chunk.pieces.insert(chunk.pieces.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                          {whole.address + rounded, rest, State::kFree});
    }
    return whole.address;
  }

  static void Join(std::vector<Piece>& pieces) {
    for (std::size_t i = 0; i + 1 < pieces.size();) {
      if (pieces[i].state == State::kFree && pieces[i + 1].state == State::kFree) {
        pieces[i].bytes += pieces[i + 1].bytes;
        pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      } else {
        ++i;
      }
    }
  }

  const std::uint64_t max_split_bytes_;
  std::map<std::uint64_t, Chunk> chunks_;  // by address
};

}  // namespace ashlar::policy

#endif  // ASHLAR_TESTS_ALLOCATOR_POLICY_SLOW_HEAP_H_
