// The largest value that fits, where a larger one takes more: which values to try, after what the ones before told.
//
//   LargestSearch search({.least = 1, .most = 256, .start = 8});
//   for (auto next = search.Next(2); !next.empty(); next = search.Next(2)) {
//     for (std::uint64_t value : next) search.Tell(value, Fits(value));
//   }
//   search.largest();   // nullopt: none fits
//
// What it ends with was told: the largest that fits, and that one more does not. A value that fails below one that fits
// is forgotten.
#ifndef ASHLAR_COMMANDS_FIT_LARGEST_H_
#define ASHLAR_COMMANDS_FIT_LARGEST_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ashlar::answers {

class LargestSearch {
 public:
  struct Range {
    std::uint64_t least = 1, most = 1, start = 1;  // least <= start <= most
  };

  explicit LargestSearch(const Range& range) : range_(range) {}

  // Up to `count` values, to be tried side by side; none: it is found.
  std::vector<std::uint64_t> Next(std::size_t count) const;
  void Tell(std::uint64_t value, bool fits);

  std::optional<std::uint64_t> largest() const { return fits_; }
  std::optional<std::uint64_t> least_that_fails() const { return fails_; }

 private:
  Range range_;
  std::optional<std::uint64_t> fits_, fails_;
};

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_FIT_LARGEST_H_
