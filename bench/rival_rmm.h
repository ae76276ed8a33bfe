// A rival: RMM's pool and arena of a released wheel (librmm-cu12 or -cu13 with rapids-logger),
// unchanged, over a CUDA of ours whose calls cost nothing. The pool begins with 256 MiB, as in RMM's own benchmark; the
// arena has 300 GiB.
//
//   RivalRmm rmm(RivalRmm::Kind::kPool);
//   std::uint64_t address = rmm.Allocate(300 * kKiB, Stream{0});
//   rmm.Free(address, 300 * kKiB, Stream{0});                       // RMM's callers say size and stream again
//
// Built only where the build is told of the wheels (ASHLAR_BENCH_RMM, docs/internals/performance.md).
#ifndef ASHLAR_BENCH_RIVAL_RMM_H_
#define ASHLAR_BENCH_RIVAL_RMM_H_

#include <cstdint>
#include <memory>

#include "allocator/base/units.h"

namespace ashlar::bench {

class RivalRmm {
 public:
  enum class Kind : std::uint8_t { kPool, kArena };

  explicit RivalRmm(Kind kind);
  ~RivalRmm();
  RivalRmm(const RivalRmm&) = delete;
  RivalRmm& operator=(const RivalRmm&) = delete;

  std::uint64_t Allocate(std::uint64_t bytes, Stream stream);
  void Free(std::uint64_t address, std::uint64_t bytes, Stream stream);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ashlar::bench

#endif  // ASHLAR_BENCH_RIVAL_RMM_H_
