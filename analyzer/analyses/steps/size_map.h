// What a request of an earlier step is in a later one of other sizes: told from the requests that both have. Private to
// Continue. Pure; sizes are bytes.
#ifndef ASHLAR_ANALYZER_ANALYSES_STEPS_SIZE_MAP_H_
#define ASHLAR_ANALYZER_ANALYSES_STEPS_SIZE_MAP_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace ashlar::analyses {

// Ratios of sizes, and their median, which is found once after the last was added.
class Ratios {
 public:
  void Add(double ratio) {
    values_.push_back(ratio);
    median_.reset();
  }
  bool IsEmpty() const { return values_.empty(); }
  double Median() const;  // not of none

 private:
  std::vector<double> values_;
  mutable std::optional<double> median_;
};

class SizeMap {
 public:
  // A request of the earlier step, and what stands in its place now. In order.
  void Add(std::uint32_t token, std::uint64_t before, std::uint64_t now);
  // A size that does not change with the batch: of a parameter, of its gradient.
  void AddLasting(std::uint64_t size) { lasting_.insert(size); }

  // False: all sizes seen are as they were.
  bool Changes() const { return !ratios_.IsEmpty(); }
  // `lasts`: the block outlived its step, as gradients and state do.
  std::uint64_t Of(std::uint32_t token, std::uint64_t before, bool lasts) const;

 private:
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> by_stack_;
  std::map<std::uint64_t, std::uint64_t> by_size_;
  std::map<std::uint32_t, Ratios> ratios_of_;  // all, of each stack
  Ratios ratios_;                              // of those that changed
  std::set<std::uint64_t> lasting_;
};

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_STEPS_SIZE_MAP_H_
