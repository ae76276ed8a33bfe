// Programs whose free memory belongs to someone else: another stream, a private pool, the other class of sizes.
#include "tests/analyses/cause_cases.h"

namespace ashlar::tests {
namespace {

// Each bucket is sent on a side stream and freed at once: while the transfer lasts, the next one needs new memory.
SeededInput DelayedFrees(std::uint64_t bucket_bytes, int in_flight) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  const Stream side{7};
  run.At("model.py", 12, "__init__");
  run.Allocate(2 * bucket_bytes);
  for (int step = 0; step < 3; ++step) {
    for (int bucket = 0; bucket < in_flight; ++bucket) {
      run.At("fsdp.py", 88, "all_gather");
      core::Block* block = run.Allocate(bucket_bytes);
      run.RecordStream(block, side);
      run.At("fsdp.py", 91, "compute");
      core::Block* scratch = run.Allocate(bucket_bytes / 8);
      run.Free(block);
      run.Free(scratch);
    }
    run.FinishStream(side);
  }
  return run.Finish();
}

}  // namespace

std::vector<SeededCase> PoolCases() {
  using analyses::CauseKind;
  return {
      {"4 buckets of 100 MiB in flight", CauseKind::kRecordStream, [] { return DelayedFrees(100 * kMiB, 4); }},
      {"8 buckets of 64 MiB in flight", CauseKind::kRecordStream, [] { return DelayedFrees(64 * kMiB, 8); }},
      {"12 buckets of 700 MiB in flight", CauseKind::kRecordStream, [] { return DelayedFrees(700 * kMiB, 12); }},
  };
}

}  // namespace ashlar::tests
