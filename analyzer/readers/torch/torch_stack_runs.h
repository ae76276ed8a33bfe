// Which stack a list of frames is, by the bytes that it is written with: PyTorch makes a new list at every allocation,
// so that a file has the same hundred references to frames, in the same bytes, as often as a line of the program
// allocated.
//
//   ...  EMPTY_LIST MEMOIZE MARK  BINGET 25 BINGET 31 LONG_BINGET 533 ... APPENDS  ...
//                                 └──────────────── a run ────────────────────┘
//
// Holds while no index of the memo is written again: then Clear. Not thread-safe.
#ifndef ASHLAR_ANALYZER_READERS_TORCH_TORCH_STACK_RUNS_H_
#define ASHLAR_ANALYZER_READERS_TORCH_TORCH_STACK_RUNS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "allocator/trace/event.h"

namespace ashlar::readers {

class StackRuns {
 public:
  struct Run {
    std::uint32_t begin = 0;  // in bytes_
    std::uint32_t size = 0;   // 0: no run
    trace::StackId stack = trace::kNoStack;
  };

  // The run that begins at `at`, nullptr where none is known.
  const Run* Find(const std::uint8_t* at, const std::uint8_t* end) {
    if (end - at < static_cast<std::ptrdiff_t>(kKeyBytes) || sets_.empty()) return nullptr;
    Set& set = SetOf(at);
    for (std::size_t way = 0; way < kWays; ++way) {
      const Run& run = set[way];
      if (run.size == 0) return nullptr;
      if (run.size > static_cast<std::size_t>(end - at)) continue;
      if (std::memcmp(at, bytes_.data() + run.begin, run.size) != 0) continue;
      if (way > 0) std::swap(set[way], set[way - 1]);
      return &set[way > 0 ? way - 1 : 0];
    }
    return nullptr;
  }

  void Add(const std::uint8_t* begin, std::size_t size, trace::StackId stack) {
    if (size < kKeyBytes || size > kMostBytes) return;
    if (bytes_.size() + size > kMostBytes) Clear();
    if (sets_.empty()) sets_.resize(kSets);
    Set& set = SetOf(begin);
    for (std::size_t way = kWays - 1; way > 0; --way) set[way] = set[way - 1];
    set[0] = {static_cast<std::uint32_t>(bytes_.size()), static_cast<std::uint32_t>(size), stack};
    bytes_.insert(bytes_.end(), begin, begin + size);
  }

  void Clear() {
    bytes_.clear();
    sets_.clear();
  }

 private:
  // Frames are written innermost first, where many stacks are alike: shorter runs are read as fast as found, and a
  // set has several.
  static constexpr std::size_t kKeyBytes = 32;
  static constexpr std::size_t kWays = 4;
  static constexpr std::size_t kSets = 2048;
  static constexpr std::size_t kMostBytes = 4 << 20;
  using Set = std::array<Run, kWays>;

  Set& SetOf(const std::uint8_t* at) {
    const absl::string_view key(reinterpret_cast<const char*>(at), kKeyBytes);
    return sets_[absl::HashOf(key) % kSets];
  }

  std::vector<std::uint8_t> bytes_;
  std::vector<Set> sets_;
};

}  // namespace ashlar::readers

#endif  // ASHLAR_ANALYZER_READERS_TORCH_TORCH_STACK_RUNS_H_
