// Tells which kind of release a record shows, by comparing what was released with what each kind would release.
#ifndef ASHLAR_ANALYZER_REPLAY_WARM_RELEASE_H_
#define ASHLAR_ANALYZER_REPLAY_WARM_RELEASE_H_

#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/types/span.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/trace/event.h"
#include "analyzer/replay/fidelity.h"

namespace ashlar::replay {

// A decision about segments: action, address, size.
using SegmentDecision = std::tuple<trace::Action, std::uint64_t, std::uint64_t>;

bool IsSegmentEvent(trace::Action action);
bool IsRelease(trace::Action action);
SegmentDecision DecisionOf(const trace::Event& event);
// Adds to `fidelity` what one request decided, in whatever order, against what was recorded.
void CompareDecisions(std::vector<SegmentDecision> recorded, std::vector<SegmentDecision> replayed, Fidelity& fidelity);

// Tells the allocator that private pools whose segments were released had lost their users. `asking`: the pool of the
// request that the release may have made room for; it may release its own oversize segments while in use.
void ReleaseUsedPools(absl::Span<const trace::Event> released, PoolId asking, core::CachingAllocator& allocator);

// Whether emptying the cache would release just this, in whatever order.
bool IsWholeCache(absl::Span<const trace::Event> released, const core::CachingAllocator& allocator);

// The bytes to collect so that garbage collection releases the longest possible beginning of `released`; 0: none.
std::uint64_t GarbageBytes(absl::Span<const trace::Event> released, const core::CachingAllocator& allocator);

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_WARM_RELEASE_H_
