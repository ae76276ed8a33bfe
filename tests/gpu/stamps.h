// Work that stamps blocks and checks the stamps, in stream order: on a GPU by kernels, on the host at once. A block
// that two users hold at a time, or that is reused before its last reader is done, shows as a wrong stamp.
#ifndef ASHLAR_TESTS_GPU_STAMPS_H_
#define ASHLAR_TESTS_GPU_STAMPS_H_

#include <cstdint>

#include "allocator/base/units.h"

namespace ashlar::tests {

// The word at `index` of a block stamped with `value`; bytes beyond whole words of 4 are left alone.
constexpr std::uint32_t StampOf(std::uint32_t value, std::uint64_t index) {
  return (value * 0x9e3779b1u) ^ static_cast<std::uint32_t>(index);
}

// Any thread may call anything; every call returns before its work is done, unless it says so.
class Stamps {
 public:
  virtual ~Stamps() = default;

  virtual Stream NewStream() = 0;
  // Fills the block; the work takes at least `spin_cycles` of the device's clock, so that order, not luck, is tested.
  virtual void Write(Stream stream, std::uint64_t address, std::uint64_t bytes, std::uint32_t value,
                     std::uint64_t spin_cycles) = 0;
  // Counts the words that differ from Write's.
  virtual void Check(Stream stream, std::uint64_t address, std::uint64_t bytes, std::uint32_t value,
                     std::uint64_t spin_cycles) = 0;
  // What `stream` is given from now on runs after what `awaited` was given so far.
  virtual void Wait(Stream stream, Stream awaited) = 0;
  // Waits for all work. The words found wrong since the start.
  virtual std::uint64_t WrongWords() = 0;
};

}  // namespace ashlar::tests

#endif  // ASHLAR_TESTS_GPU_STAMPS_H_
