// Follows a placement plan (policy/placement_plan.h) for one allocator: which planned segment the requests of a stream
// in a pool want, and where in it the request under way goes.
//
//   follower.Begin(request, rounded_bytes);       // once a request
//   follower.Steer(heap, decision);                   // each time the heap was asked: the plan's block and address
//   follower.NotePlaced(*block);
//
// A request that the plan does not know, or whose place is taken, is served by the rules. After a request that it does
// not know, the rules serve the next ones too, until the program has kept to the plan for a while; each time this while
// is longer. Best fit in the planned segment packs a program that leaves its plan better than a mixture of both. A
// replay of a recording says by Direct what was done then. The default stream has its own lanes of the plan; other
// streams, and private pools, take the first that knows their first requests. Thread rule: not thread-safe; the
// allocator's exclusive section guards it.
#ifndef ASHLAR_ALLOCATOR_CORE_PLAN_FOLLOWER_H_
#define ASHLAR_ALLOCATOR_CORE_PLAN_FOLLOWER_H_

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "allocator/base/units.h"
#include "allocator/policy/heap.h"
#include "allocator/policy/placement_plan.h"

namespace ashlar::core {

// What a recording says of a request that a plan placed.
struct Direction {
  std::uint64_t segment_bytes = 0;  // the planned segment that was asked for; 0: none
  std::uint64_t address = 0;        // where the block was placed; 0: by the rules

  bool IsEmpty() const { return segment_bytes == 0 && address == 0; }
};

class PlanFollower {
 public:
  // nullptr: no plan.
  explicit PlanFollower(std::shared_ptr<const policy::PlacementPlan> plan);

  bool HasPlan() const { return plan_ != nullptr; }
  void Begin(const policy::Request& request, std::uint64_t rounded_bytes);
  // Instead of Begin.
  void Direct(const Direction& direction) { directed_ = direction; }
  // The request that was begun or directed is over.
  void End();

  void Steer(const policy::Heap& heap, policy::Decision& decision);
  // Bytes of the planned segments that are yet to be obtained, the one that is asked for among them; 0: a recording
  // says what was done.
  std::uint64_t WantedBytes(const policy::Heap& heap) const;
  // There is no room for those: what has no planned segment goes on without the plan.
  void GiveUp() { has_given_up_ = true; }
  // The device gave the planned segment, or refused it: then the requests of its lane go on without the plan.
  void NoteSegment(std::uint64_t address);
  void NoteRefusal();
  // By a plan, at the address that it gave.
  void NotePlaced(policy::Block* block) { placed_[block->address] = block; }

 private:
  using Key = std::tuple<PoolId, Stream, bool>;  // true: small

  struct Follower {
    explicit Follower(const policy::LanePlan& its_plan) : plan(&its_plan), cursor(its_plan) {}

    const policy::LanePlan* plan;
    policy::PlanCursor cursor;
    std::uint64_t segment = 0;       // its address; 0: there is none
    std::uint64_t doubts = 0;        // requests yet to be known before their places are taken again
    std::uint64_t next_doubts = 64;  // after the next stranger
    bool has_given_up = false;
  };

  Follower* FollowerOf(const Key& key, std::uint64_t rounded_bytes);
  std::optional<std::size_t> FreeLane(const Key& key, std::uint64_t rounded_bytes) const;
  const policy::Segment* SegmentOf(const policy::Heap& heap, const policy::Decision& decision);
  static bool HasSegment(const policy::Heap& heap, const Follower& follower);
  // The block placed last, of those that live in the segment, at or below the address.
  policy::Block* PlacedBelow(const policy::Segment& segment, std::uint64_t address);
  bool TryAt(const policy::Segment& segment, std::uint64_t address, policy::Decision& decision);
  void SteerDirected(const policy::Heap& heap, policy::Decision& decision);

  const std::shared_ptr<const policy::PlacementPlan> plan_;
  std::map<Key, Follower> followers_;
  std::map<Key, std::uint32_t> tries_;  // of those that no lane of the plan knew
  std::vector<bool> is_taken_;          // by lane of the plan
  std::size_t free_lanes_ = 0;
  bool has_given_up_ = false;
  std::map<std::uint64_t, policy::Block*> placed_;  // by address; those that were freed are left out as they are met
  // Of the request under way.
  Follower* now_ = nullptr;
  const policy::PlannedRequest* planned_ = nullptr;
  std::optional<Direction> directed_;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_PLAN_FOLLOWER_H_
