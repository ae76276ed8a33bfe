// Programs whose free memory belongs to someone else, another stream or a private pool, or is in use no longer and not
// yet free.
#include "tests/analyzer/analyses/causes/cause_cases.h"

namespace ashlar::tests {
namespace {

using PoolsBlocks = std::vector<core::Block*>;

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

// The streams take turns: what one frees the next cannot have.
SeededInput StreamsTakeTurns(int streams, std::uint64_t block_bytes, int blocks) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  run.At("model.py", 12, "__init__");
  run.Allocate(block_bytes);
  for (int turn = 0; turn < streams; ++turn) {
    PoolsBlocks taken;
    run.At("prefetch.py", 55, "load");
    for (int i = 0; i < blocks; ++i) {
      taken.push_back(run.Allocate(block_bytes, Stream{static_cast<std::uint64_t>(turn)}));
    }
    run.Free(taken);
  }
  return run.Finish();
}

// A captured graph keeps its pool; outside of it the memory is missed.
SeededInput GraphKeepsPool(std::uint64_t pool_bytes, std::uint64_t request_bytes, std::uint64_t capacity_bytes) {
  SeededRun run({.capacity_bytes = capacity_bytes, .has_pool_ids = true});
  const PoolId graph{0, 1};
  PoolsBlocks captured;
  run.At("graphs.py", 30, "capture");
  for (std::uint64_t taken = 0; taken < pool_bytes; taken += request_bytes) {
    captured.push_back(run.Allocate(request_bytes, {}, graph));
  }
  run.Free(captured);
  run.At("model.py", 40, "forward");
  while (!run.is_out_of_memory()) run.Allocate(request_bytes);
  return run.Finish();
}

// A nearly full device whose cache never fits: each round asks for somewhat more at once than the cached blocks hold,
// so all of them go back first.
SeededInput Retries(std::uint64_t capacity_bytes, std::uint64_t first_bytes, std::uint64_t more_bytes, int rounds) {
  SeededRun run({.capacity_bytes = capacity_bytes});
  std::uint64_t bytes = first_bytes;
  for (int round = 0; round < rounds; ++round, bytes += more_bytes) {
    PoolsBlocks taken;
    run.At("train.py", 60, "step");
    for (std::uint64_t sum = bytes; sum <= capacity_bytes * 3 / 4; sum += bytes) taken.push_back(run.Allocate(bytes));
    run.Free(taken);
    run.Wait(40'000);
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
      {"2 streams take turns", CauseKind::kStreamsDoNotShare, [] { return StreamsTakeTurns(2, 200 * kMiB, 5); }},
      {"4 streams take turns", CauseKind::kStreamsDoNotShare, [] { return StreamsTakeTurns(4, 64 * kMiB, 8); }},
      {"8 streams take turns", CauseKind::kStreamsDoNotShare, [] { return StreamsTakeTurns(8, 1 * kGiB, 2); }},
      {"a graph keeps 400 MiB", CauseKind::kPrivatePools,
       [] { return GraphKeepsPool(400 * kMiB, 40 * kMiB, 2 * kGiB); }},
      {"a graph keeps 6 GiB", CauseKind::kPrivatePools, [] { return GraphKeepsPool(6 * kGiB, 200 * kMiB, 16 * kGiB); }},
      {"a graph keeps half the device", CauseKind::kPrivatePools,
       [] { return GraphKeepsPool(4 * kGiB, 512 * kMiB, 8 * kGiB); }},
      {"200 MiB and more, 4 GiB", CauseKind::kRetryStorm, [] { return Retries(4 * kGiB, 200 * kMiB, 10 * kMiB, 6); }},
      {"1 GiB and more, 24 GiB", CauseKind::kRetryStorm, [] { return Retries(24 * kGiB, 1 * kGiB, 64 * kMiB, 8); }},
      {"64 MiB and more, 1 GiB", CauseKind::kRetryStorm, [] { return Retries(1 * kGiB, 64 * kMiB, 4 * kMiB, 12); }},
  };
}

}  // namespace ashlar::tests
