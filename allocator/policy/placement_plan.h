// A plan says where the blocks of a run go: `ashlar plan` makes it from a recorded run, `plan:FILE` follows it
// (docs/guide/plan.md). Of each lane, the large or the small blocks of one stream in one pool, it has the size of one
// segment, the planned segment, and a tree of the requests that are expected, each with its offsets in the planned
// segment:
//
//   0 start ── weights ── ... ── last of the prologue
//   1 step ─┬─ 96 MiB at 0 ── 64 MiB at 96 MiB ── ...      one kind of step
//           └─ 48 MiB at 0 ── 32 MiB at 48 MiB ── ...      another: told apart by the first request that differs
//
// The next step comes behind a request that nothing follows, or that may be a step's last.
//
//   absl::StatusOr<PlacementPlan> plan = ReadPlan("run.plan");     // one line that names the file and the mend
//   std::string text = PlanText(*plan);                            // ParsePlan of it is the plan again
//
// Sizes and offsets are bytes. Any text is read without a crash; what is read can be followed.
#ifndef ASHLAR_ALLOCATOR_POLICY_PLACEMENT_PLAN_H_
#define ASHLAR_ALLOCATOR_POLICY_PLACEMENT_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/base/units.h"

namespace ashlar::policy {

struct PlannedRequest {
  std::uint64_t size_bytes = 0;             // rounded; multiples of 512, as the offsets
  std::vector<std::uint64_t> offsets = {};  // the first that is free is taken; empty: wherever there is room
  std::vector<std::uint32_t> next = {};     // what may follow, by number
  bool may_be_last = false;                 // of a step; true of all that nothing follows

  bool operator==(const PlannedRequest&) const = default;
};

// Whose requests follow a lane: the default stream's, those of any one other stream, or of any one stream in any one
// private pool. Handles differ from run to run, so which one is told by its first requests.
enum class LaneUse : std::uint8_t { kDefaultStream, kOtherStream, kPrivatePool };

constexpr LaneUse UseOf(PoolId pool, Stream stream) {
  if (!pool.IsDefault()) return LaneUse::kPrivatePool;
  return stream == Stream{0} ? LaneUse::kDefaultStream : LaneUse::kOtherStream;
}

struct LanePlan {
  static constexpr std::uint32_t kStart = 0;  // before the first request
  static constexpr std::uint32_t kStep = 1;   // before a step

  std::uint64_t segment_bytes = 0;
  std::uint64_t peak_bytes = 0;  // of what lies in it, expected
  std::vector<PlannedRequest> requests = {{}, {}};
  LaneUse use = LaneUse::kDefaultStream;
  bool is_small = false;  // its requests are of at most 1 MiB, else of more

  bool operator==(const LanePlan&) const = default;
};

struct PlacementPlan {
  std::string made_of = {};          // in words, one line
  std::vector<LanePlan> lanes = {};  // by the first request of each

  bool operator==(const PlacementPlan&) const = default;
};

std::string PlanText(const PlacementPlan& plan);
// What the last line says of the text before it.
std::string PlanChecksum(absl::string_view text);
// Errors name the line and what is wrong with it.
absl::StatusOr<PlacementPlan> ParsePlan(absl::string_view text);
// Errors name the file and how to mend it.
absl::StatusOr<PlacementPlan> ReadPlan(const std::string& path);

// Follows a lane's requests through its plan: which planned request is the one that the program makes now?
//
//   PlanCursor cursor(lane_plan);
//   const PlannedRequest* planned = cursor.Next(rounded_bytes);   // nullptr: the plan does not know it
//
// A program may leave the plan at any time. A request of another length than planned takes the next larger one's place
// (sequences differ in length from step to step); requests that the plan does not know stand for planned ones or come
// in between, and planned ones may be left out; where nothing helps, the next step begins anew. Not thread-safe.
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

#endif  // ASHLAR_ALLOCATOR_POLICY_PLACEMENT_PLAN_H_
