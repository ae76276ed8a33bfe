// Makes a program that fails small: leaves steps out, halves first, while it still fails.
//
//   const std::vector<Step> small = Shrink(steps, [](const std::vector<Step>& part) { return Fails(part); });
#ifndef ASHLAR_TESTS_ALLOCATOR_POLICY_SHRINK_H_
#define ASHLAR_TESTS_ALLOCATOR_POLICY_SHRINK_H_

#include <cstddef>
#include <utility>
#include <vector>

namespace ashlar::policy {

template <typename Step, typename Fails>
std::vector<Step> Shrink(std::vector<Step> steps, Fails fails) {
  for (std::size_t length = steps.size() / 2; length > 0; length /= 2) {
    for (std::size_t begin = 0; begin + length <= steps.size();) {
      std::vector<Step> part = steps;
      const auto first = part.begin() + static_cast<std::ptrdiff_t>(begin);
      part.erase(first, first + static_cast<std::ptrdiff_t>(length));
      if (fails(part)) {
        steps = std::move(part);
      } else {
        begin += length;
      }
    }
  }
  return steps;
}

}  // namespace ashlar::policy

#endif  // ASHLAR_TESTS_ALLOCATOR_POLICY_SHRINK_H_
