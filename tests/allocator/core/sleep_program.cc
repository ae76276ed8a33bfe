#include "tests/allocator/core/sleep_program.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/rng.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/inspect.h"
#include "tests/allocator/core/faulty_device.h"
#include "tests/allocator/policy/shrink.h"

namespace ashlar::core {
namespace {

constexpr std::uint64_t kPools = 4;
constexpr std::uint64_t kKeptPool = 3;  // whose free memory is its user's
constexpr std::uint64_t kTagged = 0b0110;
constexpr std::uint64_t kCapacityBytes = 192 * kMiB;

PoolId IdOf(std::uint64_t pool) { return {0, pool}; }

class SleepRun {
 public:
  explicit SleepRun(const std::string& conf)
      : device_({.capacity_bytes = kCapacityBytes, .events_complete_immediately = false}),
        allocator_(&device_,
                   *policy::ParseConf(conf + ",report_leaks:False", policy::Compat::kTorch210, policy::Keys::kAshlar)),
        may_sleep_(allocator_.options().expandable_segments ? ~std::uint64_t{0} : kTagged) {
    allocator_.TagPool(IdOf(1), "a").IgnoreError();
    allocator_.TagPool(IdOf(2), "b").IgnoreError();
    allocator_.ConfigurePool(IdOf(kKeptPool), false, false);
  }

  // "": nothing is wrong.
  std::string Do(const SleepStep& step) {
    switch (step.kind) {
      case SleepStep::kAllocate:
        return Allocate(step);
      case SleepStep::kFree:
        return Free(step.which);
      case SleepStep::kRecord:
        if (!live_.empty()) allocator_.RecordStream(Chosen(step.which).block, Stream{step.stream});
        return "";
      case SleepStep::kComplete:
        device_.CompleteAllWork();
        return "";
      case SleepStep::kEmptyCache:
        allocator_.EmptyCache();
        return "";
      case SleepStep::kSleep:
        return Sleep(step);
      case SleepStep::kWake:
        return Wake(step);
      case SleepStep::kFault:
        device_.FailIn(step.which);
        return "";
    }
    return "";
  }

  // What must hold after any step.
  std::string Difference() {
    if (const absl::Status valid = allocator_.Validate(); !valid.ok()) return std::string(valid.message());
    const std::uint64_t reserved = Inspection(allocator_).heap().reserved_bytes();
    if (device_.used_bytes() != reserved)
      return absl::StrCat("the device has given ", device_.used_bytes(), ", and ", reserved, " are reserved");
    return Contents();
  }

  // All wakes, all is freed, and nothing is left anywhere.
  std::string End() {
    device_.FailNoMore();
    while (!live_.empty() && Asleep()) {
      if (const absl::Status woken = allocator_.Wake({}); woken.ok()) {
        if (std::string wrong = Woken(~std::uint64_t{0}); !wrong.empty()) return wrong;
      } else if (std::string wrong = Free(0); !wrong.empty()) {
        return wrong;
      }
    }
    if (std::string wrong = Contents(); !wrong.empty()) return wrong;
    while (!live_.empty()) {
      if (std::string wrong = Free(0); !wrong.empty()) return wrong;
    }
    if (const absl::Status woken = allocator_.Wake({}); !woken.ok()) return std::string(woken.message());
    allocator_.ReleasePool(IdOf(kKeptPool));
    allocator_.EmptyCache();
    if (device_.used_bytes() != 0) return absl::StrCat(device_.used_bytes(), " bytes of the device are left");
    return device_.host_memories() == 0 ? "" : "memory of the host is left";
  }

  const std::string& failed_call() const { return device_.failed_call(); }

 private:
  struct Live {
    Block* block = nullptr;
    std::uint64_t pool = 0;
    std::uint64_t seed = 0;
  };

  Live& Chosen(std::size_t which) { return live_[which % live_.size()]; }
  bool Asleep() const {
    return std::any_of(asleep_.begin(), asleep_.end(), [](const auto& of) { return of.second != 0; });
  }
  bool IsAsleep(std::uint64_t pool) { return asleep_[pool] != 0; }
  static std::vector<PoolId> IdsOf(std::uint64_t mask) {
    std::vector<PoolId> out;
    for (std::uint64_t pool = 0; pool < kPools; ++pool) {
      if ((mask >> pool & 1) != 0) out.push_back(IdOf(pool));
    }
    return out;
  }

  // The words of a block: its first, one of each `step_bytes`, and its last.
  template <typename Visit>
  static void ForEachWord(const Live& live, std::uint64_t step_bytes, Visit visit) {
    auto* const begin = reinterpret_cast<char*>(static_cast<std::uintptr_t>(live.block->address));
    const std::uint64_t last = live.block->size_bytes - sizeof(std::uint64_t);
    for (std::uint64_t at = 0; at < last; at += step_bytes) visit(begin + at, Rng(live.seed + at).Next());
    visit(begin + last, Rng(live.seed + last).Next());
  }
  // A small block is written and read whole, a large one a word in each page of the host.
  static std::uint64_t StepOf(const Live& live) {
    return live.block->size_bytes <= 128 * kKiB ? sizeof(std::uint64_t) : 4096;
  }
  static void Write(const Live& live) {
    ForEachWord(live, StepOf(live), [](char* at, std::uint64_t word) { std::memcpy(at, &word, sizeof(word)); });
  }
  static bool IsWhole(const Live& live, std::uint64_t step_bytes = 4096) {
    bool is_whole = true;
    ForEachWord(live, step_bytes,
                [&](const char* at, std::uint64_t word) { is_whole &= std::memcmp(at, &word, sizeof(word)) == 0; });
    return is_whole;
  }

  std::string Contents() {
    for (const Live& live : live_) {
      if (!IsAsleep(live.pool) && !IsWhole(live))
        return absl::StrCat("a block of pool ", live.pool, " has other bytes");
    }
    return "";
  }

  std::string Allocate(const SleepStep& step) {
    const absl::StatusOr<Block*> block = allocator_.Allocate(step.bytes, Stream{step.stream}, IdOf(step.pool));
    if (IsAsleep(step.pool)) {
      return absl::IsFailedPrecondition(block.status()) ? "" : "a pool that sleeps has given a block";
    }
    if (!block.ok()) return absl::IsFailedPrecondition(block.status()) ? std::string(block.status().message()) : "";
    live_.push_back({*block, step.pool, ++seeds_});
    Write(live_.back());
    return "";
  }

  std::string Free(std::size_t which) {
    if (live_.empty()) return "";
    Live& chosen = Chosen(which);
    allocator_.Free(chosen.block);
    chosen = live_.back();
    live_.pop_back();
    return "";
  }

  std::string Sleep(SleepStep step) {
    step.pools &= may_sleep_;
    if (step.pools == 0) return "";  // none is named: all are meant
    SleepOptions options{.pools = IdsOf(step.pools), .keep = step.keep, .host_limit_bytes = 2 * kMiB};
    const absl::StatusOr<SleepReport> slept = allocator_.Sleep(options);
    for (std::uint64_t pool = 0; slept.ok() && pool < kPools; ++pool) {
      if ((step.pools >> pool & 1) != 0 && !IsAsleep(pool)) asleep_[pool] = step.keep == Keep::kNothing ? 2 : 1;
    }
    if (!slept.ok()) return absl::IsInternal(slept.status()) || absl::IsUnavailable(slept.status()) ? "" : "why not?";
    return Books();
  }

  std::string Wake(const SleepStep& step) {
    const absl::Status woken = allocator_.Wake({.pools = IdsOf(step.pools)});
    if (woken.ok()) {
      if (std::string wrong = Woken(step.pools); !wrong.empty()) return wrong;
    }
    const bool may_fail = absl::IsInternal(woken) || absl::IsResourceExhausted(woken) || absl::IsUnavailable(woken);
    return woken.ok() || may_fail ? "" : std::string(woken.message());
  }

  // What was kept is there, to the byte; what was not is written anew.
  std::string Woken(std::uint64_t mask) {
    for (std::uint64_t pool = 0; pool < kPools; ++pool) {
      if ((mask >> pool & 1) == 0) continue;
      const int slept = std::exchange(asleep_[pool], 0);
      for (const Live& live : live_) {
        if (slept == 0 || live.pool != pool) continue;
        if (slept == 2) Write(live);
        if (!IsWhole(live, StepOf(live))) return absl::StrCat("a block of pool ", pool, " woke with other bytes");
      }
    }
    return "";
  }

  // After a sleep the device has given the pages with a live byte of what is awake, and no more; but what a user keeps.
  std::string Books() {
    std::set<std::pair<std::uint64_t, std::uint64_t>> pages;  // address, size
    for (const Live& live : live_) {
      if (!IsAsleep(live.pool) && live.pool != kKeptPool) AddPages(*live.block, pages);
    }
    std::uint64_t wanted = 0;
    for (const auto& [address, size_bytes] : pages) wanted += size_bytes;
    for (const trace::SnapshotSegment& segment : allocator_.Segments()) {
      if (segment.pool == IdOf(kKeptPool) && !IsAsleep(kKeptPool)) wanted += segment.size_bytes;
    }
    if (wanted == device_.used_bytes()) return "";
    return absl::StrCat("after a sleep the device has given ", device_.used_bytes(), ", and ", wanted, " are used");
  }
  static void AddPages(const policy::Block& block, std::set<std::pair<std::uint64_t, std::uint64_t>>& out) {
    const policy::Segment& segment = *block.segment;
    if (!segment.is_expandable) out.emplace(segment.address, segment.size_bytes);
    if (!segment.is_expandable) return;
    for (std::uint64_t at = block.address; at < block.End();) {
      std::uint64_t page = segment.address + RoundDown(at - segment.address, segment.page_bytes);
      std::uint64_t size_bytes = segment.page_bytes;
      for (const auto& [large, large_bytes] : segment.large_pages) {
        if (large <= at && at < large + large_bytes) std::tie(page, size_bytes) = std::pair(large, large_bytes);
      }
      out.emplace(page, size_bytes);
      at = page + size_bytes;
    }
  }

  FaultyDevice device_;
  CachingAllocator allocator_;
  const std::uint64_t may_sleep_;  // of the others memory is of cudaMalloc
  std::vector<Live> live_;
  std::map<std::uint64_t, int> asleep_;  // 1: its contents are kept, 2: they are not
  std::uint64_t seeds_ = 0;
};

SleepStep RandomStep(Rng& rng) {
  SleepStep step;
  const std::uint64_t kind = rng.Below(100);
  step.kind = kind < 36   ? SleepStep::kAllocate
              : kind < 60 ? SleepStep::kFree
              : kind < 66 ? SleepStep::kRecord
              : kind < 68 ? SleepStep::kComplete
              : kind < 70 ? SleepStep::kEmptyCache
              : kind < 80 ? SleepStep::kSleep
              : kind < 94 ? SleepStep::kWake
                          : SleepStep::kFault;
  step.bytes = rng.Below(8) == 0 ? rng.Between(kMiB, 9 * kMiB) : rng.Between(1, 96 * kKiB);
  step.stream = rng.Below(3);
  step.pool = rng.Below(kPools);
  step.pools = rng.Between(1, 1 << kPools);
  step.keep = static_cast<Keep>(rng.Below(3));
  step.which = step.kind == SleepStep::kFault ? rng.Below(12) : rng.Below(1000);
  return step;
}

std::string TextOf(const SleepStep& step) {
  static constexpr const char* kKinds[] = {"kAllocate",   "kFree",  "kRecord", "kComplete",
                                           "kEmptyCache", "kSleep", "kWake",   "kFault"};
  static constexpr const char* kKeeps[] = {"kHost", "kNothing", "kFile"};
  return absl::StrCat("    {.kind = SleepStep::", kKinds[step.kind], ", .bytes = ", step.bytes,
                      ", .stream = ", step.stream, ", .pool = ", step.pool, ", .pools = ", step.pools,
                      ", .keep = Keep::", kKeeps[static_cast<int>(step.keep)], ", .which = ", step.which, "},\n");
}

}  // namespace

std::vector<SleepStep> RandomSleepProgram(std::uint64_t seed, std::size_t steps) {
  Rng rng(seed);
  std::vector<SleepStep> out(steps);
  for (SleepStep& step : out) step = RandomStep(rng);
  return out;
}

std::string RunSleepProgram(const std::string& conf, const std::vector<SleepStep>& steps,
                            std::map<std::string, int>* failed) {
  SleepRun run(conf);
  std::string last;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    std::string difference = run.Do(steps[i]);
    if (difference.empty()) difference = run.Difference();
    if (!difference.empty()) return absl::StrCat("step ", i, ": ", difference);
    if (failed != nullptr && run.failed_call() != last) ++(*failed)[last = run.failed_call()];
  }
  return run.End();
}

std::string SmallSleepProgram(const std::string& conf, const std::vector<SleepStep>& steps) {
  const std::vector<SleepStep> small = policy::Shrink(
      steps, [&conf](const std::vector<SleepStep>& part) { return !RunSleepProgram(conf, part).empty(); });
  std::string out = absl::StrCat(RunSleepProgram(conf, small), "\nEXPECT_EQ(RunSleepProgram(\"", conf, "\", {\n");
  for (const SleepStep& step : small) absl::StrAppend(&out, TextOf(step));
  return absl::StrCat(out, "}), \"\");\n");
}

}  // namespace ashlar::core
