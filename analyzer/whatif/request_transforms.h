// Changes a list of requests to what the program could have done differently.
//
//   std::optional<RequestPlaces> places = PlaceRequests(timeline, requests);
//   trace::RequestTrace apart = InPoolOfTheirOwn(requests, places->IdsOf(finding.blocks));
//
// Pure functions; a changed trace has the same ids.
#ifndef ASHLAR_ANALYZER_WHATIF_REQUEST_TRANSFORMS_H_
#define ASHLAR_ANALYZER_WHATIF_REQUEST_TRANSFORMS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "allocator/trace/request.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::whatif {

// Where the blocks of a timeline stand in the requests that led to it.
struct RequestPlaces {
  std::vector<std::uint32_t> ids = {};            // of each block of the timeline
  std::vector<timeline::EventIndex> events = {};  // of each request that allocates: its allocation or failure
  std::vector<std::size_t> positions = {};        // of the same requests, in the trace

  // Ids of blocks, given by index in Timeline::blocks(), ascending.
  std::vector<std::uint32_t> IdsOf(absl::Span<const std::size_t> blocks) const;
  // Of the first request that allocates at or after `event`; nullopt where none does.
  std::optional<std::size_t> PositionFrom(timeline::EventIndex event) const;
};

// The requests that allocate are the timeline's blocks and failures in its own order: first the start state's, then
// those of the window. nullopt where their numbers differ, so that the two do not belong together.
std::optional<RequestPlaces> PlaceRequests(const timeline::Timeline& timeline, const trace::RequestTrace& requests);

// All allocations on stream 0.
trace::RequestTrace OnOneStream(trace::RequestTrace requests);
// No free waits for another stream.
trace::RequestTrace WithoutWaits(trace::RequestTrace requests);
// Everything in the default pool.
trace::RequestTrace InDefaultPool(trace::RequestTrace requests);
// All private pools are one.
trace::RequestTrace InOnePool(trace::RequestTrace requests);
std::size_t PrivatePoolCount(const trace::RequestTrace& requests);
// The blocks of these ids (ascending) in segments apart from all others.
trace::RequestTrace InPoolOfTheirOwn(trace::RequestTrace requests, absl::Span<const std::uint32_t> ids);
// torch.cuda.empty_cache() before the requests at these positions (ascending).
trace::RequestTrace WithEmptyCacheAt(const trace::RequestTrace& requests, absl::Span<const std::size_t> positions);

// From the request at `begin` on, up to the one at `end`: positions in a trace, `end` may lie behind its last.
struct RequestRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};
// The blocks of these ids (ascending) in a pool of their own, which sleeps in these ranges: in order, and apart.
trace::RequestTrace AsleepIn(const trace::RequestTrace& requests, absl::Span<const std::uint32_t> ids,
                             absl::Span<const RequestRange> ranges);

}  // namespace ashlar::whatif

#endif  // ASHLAR_ANALYZER_WHATIF_REQUEST_TRANSFORMS_H_
