// Request lists for tests of remedies: written by hand, or random with few sizes.
//
//   RequestList list;
//   const std::uint32_t big = list.Allocate(100 * kMiB);
//   list.Free(big);
#ifndef ASHLAR_TESTS_ANALYZER_WHATIF_REQUEST_LIST_H_
#define ASHLAR_TESTS_ANALYZER_WHATIF_REQUEST_LIST_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/rng.h"
#include "allocator/trace/request.h"

namespace ashlar::tests {

class RequestList {
 public:
  // `pool`: 0, or what AddPool said.
  std::uint32_t Allocate(std::uint64_t bytes, Stream stream = {}, std::uint16_t pool = 0) {
    trace_.requests.push_back({bytes, stream, trace_.id_count, trace::OpKind::kAlloc, pool});
    return trace_.id_count++;
  }
  std::uint16_t AddPool(PoolId pool) {
    trace_.pools.push_back(pool);
    return static_cast<std::uint16_t>(trace_.pools.size() - 1);
  }
  void Free(std::uint32_t id) { trace_.requests.push_back({0, Stream{}, id, trace::OpKind::kFree, 0}); }
  void EmptyCache() { trace_.requests.push_back({0, Stream{}, 0, trace::OpKind::kEmptyCache, 0}); }
  const trace::RequestTrace& trace() const { return trace_; }

 private:
  trace::RequestTrace trace_;
};

// One block of 6 MiB in each 20 MiB stays: neither a segment nor a page of 20 MiB is ever whole-free, so that of 460
// MiB that nobody uses no setting of PyTorch gives 300. Of pages of 2 MiB two thirds are free.
inline constexpr std::uint64_t kStrandingCapacity = 640 * kMiB;
inline trace::RequestTrace Stranding(std::uint64_t last_bytes = 300 * kMiB) {
  RequestList out;
  std::vector<std::uint32_t> ids;
  for (int i = 0; i < 90; ++i) ids.push_back(out.Allocate(6 * kMiB));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i % 3 != 0) out.Free(ids[i]);
  }
  out.Allocate(last_bytes);
  return out.trace();
}

// `op_count` requests of `size_count` sizes from 512 B to `most_bytes`, a few of them just around even numbers of MiB.
inline trace::RequestTrace RandomRequests(std::uint64_t seed, std::size_t op_count, std::size_t size_count,
                                          std::uint64_t most_bytes) {
  Rng rng(seed);
  std::vector<std::uint64_t> sizes;
  while (sizes.size() < size_count) {
    std::uint64_t size = rng.Between(512, most_bytes);
    if (rng.Below(3) == 0) size = size / (2 * kMiB) * 2 * kMiB + rng.Below(3) * 512;
    if (rng.Below(4) == 0) size = rng.Between(512, 12 * kMiB);
    if (size > 0) sizes.push_back(size);
  }
  RequestList out;
  std::vector<std::uint32_t> live;
  for (std::size_t i = 0; i < op_count; ++i) {
    if (!live.empty() && rng.Below(100) < 47) {
      std::swap(live[rng.Below(live.size())], live.back());
      out.Free(live.back());
      live.pop_back();
    } else if (rng.Below(200) == 0) {
      out.EmptyCache();
    } else {
      live.push_back(out.Allocate(sizes[rng.Below(sizes.size())], Stream{rng.Below(8) == 0 ? 7u : 0u}));
    }
  }
  return out.trace();
}

// The list as a plain request trace: what a failed property test prints.
inline std::string PlainTrace(const trace::RequestTrace& requests) {
  std::string out;
  for (const trace::Op& request : requests.requests) {
    switch (request.kind) {
      case trace::OpKind::kAlloc:
        absl::StrAppend(&out, "a ", request.id, " ", request.bytes, " ", Handle(request.stream), "\n");
        break;
      case trace::OpKind::kFree:
        absl::StrAppend(&out, "f ", request.id, "\n");
        break;
      default:
        absl::StrAppend(&out, "e\n");
    }
  }
  return out;
}

}  // namespace ashlar::tests

#endif  // ASHLAR_TESTS_ANALYZER_WHATIF_REQUEST_LIST_H_
