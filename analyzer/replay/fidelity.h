// Fidelity counts how far a replay made the decisions that were recorded.
#ifndef ASHLAR_ANALYZER_REPLAY_FIDELITY_H_
#define ASHLAR_ANALYZER_REPLAY_FIDELITY_H_

#include <cstdint>
#include <optional>
#include <string>

namespace ashlar::replay {

// The first allocation that landed elsewhere.
struct Mismatch {
  std::int64_t event = 0;
  std::uint64_t recorded_address = 0;
  std::uint64_t replayed_address = 0;  // 0: the replay ran out of memory, or the record did
};

struct Fidelity {
  std::uint64_t matched = 0;  // allocations whose address equals the recorded one; recorded OOMs that failed again
  std::uint64_t total = 0;
  std::uint64_t segments_matched = 0;  // segments obtained and returned, maps and unmaps: same request, same range
  std::uint64_t segments_total = 0;
  std::optional<Mismatch> first_mismatch;
  bool final_state_matches = false;
  std::string final_state_difference;  // empty when it matches

  // The recorded answers that were used, and nothing else was.
  std::uint64_t segment_addresses_used = 0;  // where the driver put a segment
  std::uint64_t tails_inferred = 0;          // unsplit rests of the older blocks, inferred from later addresses

  bool IsExact() const { return matched == total && segments_matched == segments_total && final_state_matches; }
};

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_FIDELITY_H_
