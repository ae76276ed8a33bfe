// Random programs: the makers of what tests/allocator/core/program.h runs on the allocator and on the model.
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/rng.h"
#include "tests/allocator/core/program.h"

namespace ashlar::core {
namespace {

using policy::Compat;
using policy::FreeOrder;

template <typename T>
T Pick(Rng& rng, std::initializer_list<T> choices) {
  return choices.begin()[rng.Below(choices.size())];
}

std::uint64_t RandomBytes(Rng& rng, std::uint64_t scale_bytes) {
  switch (rng.Below(10)) {
    case 0:
      return rng.Between(1, 2048);
    case 1:
    case 2:
      return rng.Between(1, kMiB + 2048);
    case 3:  // around the boundaries
      return Pick<std::uint64_t>(rng, {512, 513, kMiB, kMiB + 512, 2 * kMiB, 10 * kMiB, 19 * kMiB, 20 * kMiB, 21 * kMiB,
                                       32 * kMiB, 64 * kMiB}) +
             Pick<std::uint64_t>(rng, {0, 0, 1, 511, 512}) - Pick<std::uint64_t>(rng, {0, 0, 1, 512});
    case 4:  // many of equal size
    case 5:
      return Pick<std::uint64_t>(rng, {1024, 64 * kKiB, kMiB + kMiB / 2, 4 * kMiB, 12 * kMiB, 24 * kMiB});
    case 6:
      return rng.Between(kMiB, 12 * kMiB);
    case 7:
      return rng.Between(1, scale_bytes + 1);
    default:
      return rng.Between(512, 24 * kMiB);
  }
}

std::string RandomConf(Rng& rng, Compat compat) {
  const bool is_late = compat == Compat::kTorch210 || compat == Compat::kTorchLatest;
  std::string conf;
  const auto add = [&conf](const auto&... parts) { absl::StrAppend(&conf, conf.empty() ? "" : ",", parts...); };
  std::uint64_t large = 20;
  const bool is_expandable = compat != Compat::kTorch113 && rng.Below(2) == 0;
  if (is_expandable) add("expandable_segments:True");
  if (is_late && rng.Below(3) == 0) {
    large = Pick<std::uint64_t>(rng, {12, 16, 32, 64});
    if (!is_expandable && rng.Below(4) == 0) large = 11;
    add("large_segment_size_mb:", large);
  }
  const std::uint64_t least = is_late ? large : std::max<std::uint64_t>(large, 21);
  if (rng.Below(2) == 0) add("max_split_size_mb:", least + rng.Below(3) * rng.Below(24));
  if (compat != Compat::kTorch113 && rng.Below(4) == 0) add("max_non_split_rounding_mb:", least + rng.Below(40));
  if (rng.Below(3) == 0) add("garbage_collection_threshold:0.", rng.Between(1, 10));
  if (rng.Below(3) == 0) {
    if (compat == Compat::kTorch113 || rng.Below(2) == 0) {
      add("roundup_power2_divisions:", Pick<int>(rng, {1, 2, 4, 8, 16}));
    } else {
      add("roundup_power2_divisions:[", Pick<int>(rng, {1, 2, 4}), ":", Pick<int>(rng, {0, 2, 8}),
          ",16:", Pick<int>(rng, {1, 4}), ",>:", Pick<int>(rng, {1, 2}), "]");
    }
  }
  if (compat == Compat::kTorch113 && rng.Below(4) == 0) add("roundup_bypass_threshold_mb:", rng.Between(1, 30));
  if (is_late && rng.Below(4) == 0) add("throw_on_cudamalloc_oom:True");
  if (is_late && rng.Below(5) == 0) {
    add("per_process_memory_fraction:", Pick<const char*>(rng, {"1", "0.9", "0.5", "0.3333333"}));
  }
  if (is_expandable && is_late && rng.Below(3) == 0) {
    add("expandable_segments_reserve:", Pick<const char*>(rng, {"0.1", "0.25", "0.5", "3", "0.1G"}));
  }
  if (rng.Below(5) == 0) add("policy:ashlar");
  if (rng.Below(4) == 0) {  // beyond PyTorch
    if (rng.Below(2) == 0) add("search_after_sync:True");
    if (rng.Below(2) == 0) add("sync_just_enough:True");
    if (rng.Below(2) == 0) add("borrow_across_streams:True");
    if (rng.Below(3) == 0) add("borrow_most_waits:", Pick<int>(rng, {1, 10, 300, 1000}));
    if (rng.Below(4) == 0) add("memory_limit_mb:", rng.Between(1, 300));
  }
  return conf;
}

class ProgramMaker {
 public:
  explicit ProgramMaker(std::uint64_t seed) : rng_(seed * 2 + 1) {}

  Program Make() {
    program_.compat = Pick(rng_, {Compat::kTorch113, Compat::kTorch26, Compat::kTorch210, Compat::kTorchLatest});
    if (rng_.Below(3) == 0) {
      program_.free_order =
          Pick(rng_, {FreeOrder::kAddress, FreeOrder::kPerBlockCounter, FreeOrder::kPerSegmentCounter});
    }
    program_.conf = RandomConf(rng_, program_.compat);
    program_.capacity_bytes = Pick<std::uint64_t>(rng_, {40, 100, 200, 400, 2000}) * kMiB + rng_.Below(3) * 777'777;
    program_.events_complete_immediately = rng_.Below(4) == 0;
    program_.descending_addresses = rng_.Below(4) == 0;
    stream_count_ = Pick<std::uint64_t>(rng_, {1, 1, 2, 4});
    has_pools_ = rng_.Below(3) == 0;
    live_target_ = rng_.Between(4, 48);
    const std::size_t count = rng_.Between(20, 220);
    if (rng_.Below(3) == 0) AddFraction();
    while (program_.ops.size() < count) AddOp();
    return program_;
  }

 private:
  std::uint64_t RandomStream() { return rng_.Below(stream_count_) * 0x5555'0000; }
  std::uint64_t RandomPool() { return has_pools_ && rng_.Below(3) == 0 ? rng_.Between(1, 4) : 0; }

  void AddFraction() { Add({Op::kSetFraction, 0, Pick<std::uint64_t>(rng_, {0, 333, 500, 800, 999, 1000}), 0, 0}); }

  void Add(const Op& op) { program_.ops.push_back(op); }

  void AddAlloc() {
    Add({Op::kAlloc, next_id_, RandomBytes(rng_, program_.capacity_bytes), RandomStream(), RandomPool()});
    live_.push_back(next_id_++);
  }

  void AddFree() {
    const std::size_t at = rng_.Below(live_.size());
    Add({Op::kFree, live_[at], 0, 0, 0});
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  void AddOp() {
    const std::uint64_t dice = rng_.Below(100);
    if (dice < 84) {
      const bool is_full = rng_.Below(2 * live_target_) < live_.size();
      if (is_full) return AddFree();
      return AddAlloc();
    }
    if (dice < 91 && !live_.empty()) {
      return Add({Op::kRecord, live_[rng_.Below(live_.size())], 0, RandomStream(), 0});
    }
    if (dice < 94) return Add({Op::kComplete, 0, 0, 0, 0});
    if (dice < 96) return Add({Op::kEmptyCache, 0, 0, 0, 0});
    if (dice < 97 && rng_.Below(4) == 0) return AddFraction();
    if (dice < 98 && has_pools_ && rng_.Below(2) == 0) {
      const bool is_end = rng_.Below(2) == 0;
      const Op::Kind kind = is_end ? Op::kEndPool : Op::kBeginPool;
      return Add({kind, 0, rng_.Below(2), RandomStream(), rng_.Between(1, 4)});
    }
    if (dice < 99 && has_pools_) {
      const bool is_release = rng_.Below(4) == 0;
      Add({is_release ? Op::kReleasePool : Op::kConfigurePool, 0, rng_.Below(4), 0, rng_.Between(1, 4)});
    }
  }

  Rng rng_;
  Program program_;
  std::uint64_t stream_count_ = 1;
  std::uint64_t live_target_ = 0;
  bool has_pools_ = false;
  std::uint32_t next_id_ = 0;
  std::vector<std::uint32_t> live_;
};

}  // namespace

Program RandomProgram(std::uint64_t seed) { return ProgramMaker(seed).Make(); }

}  // namespace ashlar::core
