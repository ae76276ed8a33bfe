#include "commands/fit/largest.h"

#include <algorithm>

namespace ashlar::answers {

std::vector<std::uint64_t> LargestSearch::Next(std::size_t count) const {
  std::vector<std::uint64_t> out;
  const auto add = [&out](std::uint64_t value) {
    if (out.empty() || out.back() != value) out.push_back(value);
  };
  if (fits_.has_value() && fails_.has_value()) {
    const std::uint64_t between = *fails_ - *fits_ - 1;
    const std::uint64_t parts = std::min<std::uint64_t>(count, between);
    for (std::uint64_t i = 1; i <= parts; ++i) add(*fits_ + (between + 1) * i / (parts + 1));
  } else if (fails_.has_value()) {
    std::uint64_t value = *fails_;
    while (out.size() < count && value > range_.least) add(value = std::max(range_.least, value / 2));
  } else {
    std::uint64_t value = fits_.value_or(range_.start);
    if (!fits_.has_value()) add(value);
    while (out.size() < count && value < range_.most) {
      add(value = value > range_.most / 2 ? range_.most : std::max(value * 2, value + 1));
    }
  }
  return out;
}

void LargestSearch::Tell(std::uint64_t value, bool fits) {
  if (fits) {
    fits_ = std::max(fits_.value_or(value), value);
    if (fails_.has_value() && *fails_ < *fits_) fails_.reset();
  } else if (!fits_.has_value() || value > *fits_) {
    fails_ = std::min(fails_.value_or(value), value);
  }
}

}  // namespace ashlar::answers
