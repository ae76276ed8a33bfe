// The report on a request that failed for good: where every byte of the device is, why the request did not fit, the
// largest size that would have, and the blocks that strand the most memory. It has at most 12 lines; the first is the
// error's own message. `ashlar explain` prints the same values for the same state; a test holds the two together.
//
//   out of memory: 220.00 MiB requested (a segment of 220.00 MiB), device free 200.00 MiB of 15.78 GiB, reserved 14.44
//   GiB verdict: fragmentation: without holes the request fits with 1.26 GiB to spare; the free memory misses the new
//   ... largest size that would have been served: 200.00 MiB (from the cache 96.00 MiB), stream 0, large pool
//   where 15.78 GiB went (parts sum exactly):
//     live 13.09 GiB, rounding 72.00 MiB, pending 0 B, stranded 1.28 GiB in 37 segments behind 41 blocks
//     whole-free 0 B, private pools 0 B, outside 1.14 GiB, free on the device 200.00 MiB
//   what pins the segments, the worst of 41 blocks:
//     412.00 MiB behind 2.00 MiB at 0x7f0012000000, stream 0
//     ...                                                       three at most
//
// Pure functions over values: no device, no lock, no memory but the report's own. Sizes are bytes; O(blocks).
#ifndef ASHLAR_ALLOCATOR_CORE_OOM_REPORT_H_
#define ASHLAR_ALLOCATOR_CORE_OOM_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "allocator/base/units.h"
#include "allocator/core/accounting.h"
#include "allocator/policy/options.h"
#include "allocator/trace/snapshot.h"

namespace ashlar::core {

// The request, and what the device said when it was given up.
struct FailedAllocation {
  std::uint64_t request_bytes = 0;
  std::uint64_t rounded_bytes = 0;
  std::uint64_t segment_bytes = 0;  // of the new segment it needed
  Stream stream = {};
  PoolId pool = {};
  std::uint64_t device_free_bytes = 0;
  std::uint64_t device_total_bytes = 0;
  std::optional<std::uint64_t> limit_bytes = {};  // of a memory fraction, for all segments together
  bool takes_pages = false;                       // its pool's new memory is of expandable segments
  bool is_rejected = false;                       // by throw_on_cudamalloc_oom, before the device was asked
};

enum class OomKind : std::uint8_t {
  kCapacity,       // does not fit even without holes: no setting of the allocator can help
  kNearlyFull,     // would fit without holes, with less than 2 % of the memory to spare: no setting packs as well
  kFragmentation,  // fits without holes, yet what is free is less than the new segment
  kOutside,        // what others hold of the device is missing, and is more than the holes
  kLimit,          // the device had room for the segment: a limit stopped it
};

// What one failed request is judged by.
struct OomFigures {
  std::uint64_t reserved_bytes = 0;
  std::uint64_t live_bytes = 0;  // that the program asked for, and not what blocks span, where the former is known
  std::uint64_t device_free_bytes = 0;
  std::optional<std::uint64_t> outside_bytes = {};  // of the device, held by nobody here
  std::uint64_t request_bytes = 0;                  // rounded
  std::uint64_t segment_bytes = 0;                  // of the new segment it needed
};

// A process's own context and libraries take 0.3 to 1.4 GiB (1,343 MB on a V100 with all kernels loaded, about 500 MB
// on later cards, which load kernels when they are used), and NCCL some more; what is outside beyond 2 GiB is held by
// somebody else.
inline constexpr std::uint64_t kMostOwnContextBytes = 2 * kGiB;
inline constexpr double kNearlyFullShare = 0.02;

// headroom = reserved + free on the device - live - request: what would be left without any holes.
struct OomJudgement {
  OomKind kind = OomKind::kCapacity;
  std::int64_t headroom_bytes = 0;
};
OomJudgement JudgeOom(const OomFigures& figures);
// The judgement in words; one sentence or two.
// What a failed request alone makes likely, at the end of its sentence; a replay may show a setting that gets past it.
inline constexpr char kWithoutHoles[] = "without holes (free pieces)";
inline constexpr char kNoSettingHelps[] = "; no allocator setting can help";
inline constexpr char kNonePacksAsWell[] = ", and no allocator packs as well as that";

std::vector<std::string> OomSentences(const OomJudgement& judgement, const OomFigures& figures);

// A block in use and the free bytes that it keeps from use (accounting.h).
struct HolePin {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t blame_bytes = 0;
  Stream stream{};
  std::string place = {};  // where it was allocated; empty: not known
};

struct OomReport {
  FailedAllocation failed;
  OomFigures figures;
  OomJudgement judgement;
  Accounting parts;                              // of what is reserved
  std::optional<std::uint64_t> outside_bytes;    // total - reserved - free; nullopt: the device counts less than that
  std::uint64_t largest_cached_bytes = 0;        // rounded size that the cache would have served there
  std::uint64_t largest_servable_bytes = 0;      // or the device; under a limit only the cache is sure
  std::uint64_t largest_other_stream_bytes = 0;  // free run that only the stream keeps away
  std::vector<HolePin> pins;                     // the worst three, most blame first, equal ones by address
  std::uint64_t pin_count = 0;                   // of all that have blame, which together is parts.stranded_bytes
};

// `segments` are the state in which the request failed, as CachingAllocator::Segments() has it.
OomReport MakeOomReport(const FailedAllocation& failed, absl::Span<const trace::SnapshotSegment> segments,
                        const policy::Options& options);

// The first line alone, which needs no state.
std::string OomMessage(const FailedAllocation& failed, std::uint64_t reserved_bytes);
// All other lines, at most 10: one more is the caller's to say where it wrote the state.
std::vector<std::string> OomLines(const OomReport& report);

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_OOM_REPORT_H_
