// Programs under settings that cost more than they save.
#include "tests/analyses/cause_cases.h"

namespace ashlar::tests {
namespace {

// Every request is just above a power of two, so a whole division of it is lost.
SeededInput RoundedUp(std::uint64_t request_bytes, int count, const char* conf) {
  SeededRun run({.conf = conf, .capacity_bytes = 80 * kGiB});
  run.At("model.py", 12, "__init__");
  for (int i = 0; i < count; ++i) run.Allocate(request_bytes);
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
  };
}

}  // namespace ashlar::tests
