// Programs under settings that cost more than they save.
#include "tests/analyzer/analyses/causes/cause_cases.h"

namespace ashlar::tests {
namespace {

using SettingsBlocks = std::vector<core::Block*>;

// Every request is just above a power of two, so a whole division of it is lost.
SeededInput RoundedUp(std::uint64_t request_bytes, int count, const char* conf) {
  SeededRun run({.conf = conf, .capacity_bytes = 80 * kGiB});
  run.At("model.py", 12, "__init__");
  for (int i = 0; i < count; ++i) run.Allocate(request_bytes);
  return run.Finish();
}

// A big temporary leaves a block above the split limit, which the smaller requests after it may not have.
SeededInput SplitLimit(const char* conf, std::uint64_t big_bytes, std::uint64_t small_bytes, int count) {
  SeededRun run({.conf = conf, .capacity_bytes = 80 * kGiB});
  run.At("model.py", 51, "mlp");
  run.Free(run.Allocate(big_bytes));
  run.At("model.py", 40, "forward");
  for (int i = 0; i < count; ++i) run.Allocate(small_bytes);
  return run.Finish();
}

}  // namespace

std::vector<SeededCase> SettingsCases() {
  using analyses::CauseKind;
  return {
      {"33 MiB become 48 MiB", CauseKind::kRounding,
       [] { return RoundedUp(33 * kMiB, 20, "roundup_power2_divisions:2"); }},
      {"65 MiB become 80 MiB", CauseKind::kRounding,
       [] { return RoundedUp(65 * kMiB, 20, "roundup_power2_divisions:4"); }},
      {"300 MiB become 320 MiB", CauseKind::kRounding,
       [] { return RoundedUp(300 * kMiB, 20, "roundup_power2_divisions:4"); }},
      {"11.1 MiB in 12 MiB, unsplit", CauseKind::kRounding, [] { return RoundedUp(11 * kMiB + 100 * kKiB, 100, ""); }},
      {"limit 64, 500 MiB unused", CauseKind::kMaxSplitSize,
       [] { return SplitLimit("max_split_size_mb:64", 500 * kMiB, 30 * kMiB, 16); }},
      {"limit 128, 2 GiB unused", CauseKind::kMaxSplitSize,
       [] { return SplitLimit("max_split_size_mb:128", 2 * kGiB, 100 * kMiB, 20); }},
      {"limit 32, 300 MiB unused", CauseKind::kMaxSplitSize,
       [] { return SplitLimit("max_split_size_mb:32", 300 * kMiB, 200 * kMiB, 3); }},
  };
}

}  // namespace ashlar::tests
