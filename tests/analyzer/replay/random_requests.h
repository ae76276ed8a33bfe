// Random requests of a program, for property tests.
#ifndef ASHLAR_TESTS_ANALYZER_REPLAY_RANDOM_REQUESTS_H_
#define ASHLAR_TESTS_ANALYZER_REPLAY_RANDOM_REQUESTS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "allocator/base/rng.h"
#include "allocator/trace/request.h"

namespace ashlar::replay {

inline trace::RequestTrace RandomRequests(Rng& rng, int count = 250) {
  trace::RequestTrace out;
  out.pools.push_back({0, 7});
  std::vector<std::uint32_t> live;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t dice = rng.Below(100);
    if (dice < 2) {
      out.requests.push_back({.kind = trace::OpKind::kEmptyCache});
    } else if (dice < 5) {
      out.requests.push_back({.kind = trace::OpKind::kDeviceSync});
    } else if (dice < 10 && !live.empty()) {
      out.requests.push_back(
          {.stream = Stream{9}, .id = live[rng.Below(live.size())], .kind = trace::OpKind::kRecordStream});
    } else if (dice < 50 && !live.empty()) {
      const std::size_t victim = rng.Below(live.size());
      out.requests.push_back({.id = std::exchange(live[victim], live.back()), .kind = trace::OpKind::kFree});
      live.pop_back();
    } else {
      const std::uint64_t bytes = 1 + rng.Below(std::uint64_t{512} << rng.Below(17));
      const auto pool = static_cast<std::uint16_t>(rng.Below(5) == 0 ? 1 : 0);
      out.requests.push_back({.bytes = bytes, .stream = Stream{rng.Below(2)}, .id = out.id_count, .pool = pool});
      live.push_back(out.id_count++);
    }
  }
  return out;
}

}  // namespace ashlar::replay

#endif  // ASHLAR_TESTS_ANALYZER_REPLAY_RANDOM_REQUESTS_H_
