#include "allocator/policy/free_chunks.h"

#include <iterator>
#include <utility>

namespace ashlar::policy {

void FreeChunks::Insert(const FreeEntry& entry) {
  if (chunks_.empty()) {
    chunks_.push_back({entry, {}});
    chunks_.back().entries.reserve(kFirstEntries);
    chunks_.back().entries.push_back(entry);
    return;
  }
  const Position at = Count([&entry](const FreeEntry& e) { return IsBefore(entry, e); });
  Chunk& chunk = chunks_[at.chunk];
  chunk.entries.insert(chunk.entries.begin() + static_cast<std::ptrdiff_t>(at.count), entry);
  if (at.count == 0) chunk.greatest = entry;
  if (chunk.entries.size() < kChunkEntries) return;
  // The lesser half becomes a chunk of its own behind it.
  const auto middle = chunk.entries.begin() + kChunkEntries / 2;
  Chunk lesser{*middle, {}};
  lesser.entries.reserve(kChunkEntries);
  lesser.entries.assign(middle, chunk.entries.end());
  chunk.entries.erase(middle, chunk.entries.end());
  chunks_.insert(chunks_.begin() + static_cast<std::ptrdiff_t>(at.chunk) + 1, std::move(lesser));
}

bool FreeChunks::Erase(const FreeEntry& entry) {
  const Position at = Count([&entry](const FreeEntry& e) { return !IsBefore(e, entry); });
  if (at.count == 0 || chunks_[at.chunk].entries[at.count - 1].block != entry.block) return false;
  EraseAt(at.chunk, at.count - 1);
  return true;
}

FreeEntry FreeChunks::PopLeast() {
  const FreeEntry out = least();
  EraseAt(chunks_.size() - 1, chunks_.back().entries.size() - 1);
  return out;
}

void FreeChunks::EraseAt(std::size_t c, std::size_t index) {
  Chunk& chunk = chunks_[c];
  chunk.entries.erase(chunk.entries.begin() + static_cast<std::ptrdiff_t>(index));
  if (chunk.entries.empty()) {
    chunks_.erase(chunks_.begin() + static_cast<std::ptrdiff_t>(c));
  } else if (index == 0) {
    chunk.greatest = chunk.entries.front();
  }
}

}  // namespace ashlar::policy
