// Follows a lane's requests through its plan: which planned request is the one that the program makes now?
//
//   PlanCursor cursor(lane_plan);
//   const PlannedRequest* planned = cursor.Next(rounded_bytes);   // nullptr: the plan does not know it
//
// A program may leave the plan at any time. A request of another length than planned takes the next larger one's place
// (sequences differ in length from step to step); requests that the plan does not know stand for planned ones or come
// in between, and planned ones may be left out; where nothing helps, the next step begins anew. Not thread-safe.
#ifndef ASHLAR_ALLOCATOR_POLICY_PLAN_CURSOR_H_
#define ASHLAR_ALLOCATOR_POLICY_PLAN_CURSOR_H_

#include <cstdint>

#include "allocator/policy/placement_plan.h"

namespace ashlar::policy {

class PlanCursor {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // The plan outlives this.
  explicit PlanCursor(const LanePlan& plan) : plan_(&plan) {}

  // The number of the planned request; kNone where there is none.
  std::uint32_t NextNumber(std::uint64_t rounded_bytes);
  const PlannedRequest* Next(std::uint64_t rounded_bytes) {
    const std::uint32_t number = NextNumber(rounded_bytes);
    return number == kNone ? nullptr : &plan_->requests[number];
  }

 private:
  std::uint32_t Find(std::uint64_t rounded_bytes) const;

  const LanePlan* plan_;
  std::uint32_t at_ = LanePlan::kStart;
  std::uint32_t strangers_ = 0;  // since: requests that the plan does not know
};

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_PLAN_CURSOR_H_
