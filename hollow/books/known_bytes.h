// Keeps which bytes of device memory are known: bytes that the program copied or filled, and bytes that were computed
// for real. Only a kernel would have written the others.
//
//   KnownBytes known;
//   known.Know(0x1000, 64);
//   known.AreKnown(0x1000, 64);   // true
//   known.Forget(0x1000, 8);      // a kernel wrote there
//
// Thread rule: not thread-safe.
#ifndef ASHLAR_HOLLOW_BOOKS_KNOWN_BYTES_H_
#define ASHLAR_HOLLOW_BOOKS_KNOWN_BYTES_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace ashlar::hollow {

class KnownBytes {
 public:
  void Know(std::uint64_t address, std::uint64_t bytes);
  void Forget(std::uint64_t address, std::uint64_t bytes);
  // How many of the bytes from `address` on are known.
  std::uint64_t CountKnown(std::uint64_t address, std::uint64_t bytes) const;
  bool AreKnown(std::uint64_t address, std::uint64_t bytes) const { return CountKnown(address, bytes) == bytes; }
  // What is known of `bytes` at `from` is known at `to` afterwards, and nothing else there.
  void Carry(std::uint64_t from, std::uint64_t to, std::uint64_t bytes);
  // What is known of the bytes from `address` on, as (address, bytes) in order.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> RangesIn(std::uint64_t address, std::uint64_t bytes) const;
  std::uint64_t range_count() const { return ranges_.size(); }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  // begin -> end, apart from each other
};

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_BOOKS_KNOWN_BYTES_H_
