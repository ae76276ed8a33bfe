#include "allocator/policy/plan_cursor.h"

#include <array>
#include <cstddef>

namespace ashlar::policy {
namespace {

constexpr std::uint32_t kMostAhead = 32;      // planned requests that may be left out at once
constexpr std::uint32_t kMostStrangers = 64;  // in a row, before the next step begins anew
constexpr std::size_t kMostLooked = 256;      // planned requests that one search looks at

struct Seen {
  std::uint32_t number;
  std::uint32_t level;  // 1: what comes next
};

}  // namespace

// What may come next and after, nearest first. Each stranger since stands for a planned request: of this very size the
// one at that level, else the nearest; else at that level the next larger one up to twice the size.
std::uint32_t PlanCursor::Find(std::uint64_t rounded_bytes) const {
  std::array<Seen, kMostLooked> seen;
  std::size_t count = 0;
  const auto remember = [&](std::uint32_t from, std::uint32_t level) {
    const auto add = [&](const PlannedRequest& request) {
      for (const std::uint32_t next : request.next) {
        if (count < seen.size()) seen[count++] = {next, level};
      }
    };
    const PlannedRequest& request = plan_->requests[from];
    add(request);
    const bool may_end = request.may_be_last || request.next.empty();
    if (may_end && from != LanePlan::kStep) add(plan_->requests[LanePlan::kStep]);
  };
  const std::uint32_t expected_level = strangers_ + 1;
  std::uint32_t same = kNone, larger = kNone;
  remember(at_, 1);
  for (std::size_t i = 0; i < count && seen[i].level <= strangers_ + kMostAhead; ++i) {
    const auto [number, level] = seen[i];
    const std::uint64_t size_bytes = plan_->requests[number].size_bytes;
    if (size_bytes == rounded_bytes) {
      if (level == expected_level) return number;
      if (same == kNone) same = number;
    } else if (level == expected_level && size_bytes > rounded_bytes && size_bytes / 2 <= rounded_bytes) {
      if (larger == kNone || size_bytes < plan_->requests[larger].size_bytes) larger = number;
    }
    remember(number, level + 1);
  }
  return same != kNone ? same : larger;
}

std::uint32_t PlanCursor::NextNumber(std::uint64_t rounded_bytes) {
  std::uint32_t found = Find(rounded_bytes);
  if (found == kNone && ++strangers_ > kMostStrangers) {
    at_ = LanePlan::kStep;
    strangers_ = 0;
    found = Find(rounded_bytes);
  }
  if (found == kNone) return kNone;
  strangers_ = 0;
  at_ = found;
  return found;
}

}  // namespace ashlar::policy
