// Programs whose free memory lies in holes: behind blocks that stay, or in pieces that the next size does not fit.
#include "tests/analyzer/analyses/causes/cause_cases.h"

namespace ashlar::tests {
namespace {

using HolesBlocks = std::vector<core::Block*>;

// What most of a program does: short-lived blocks that come and go.
void Churn(SeededRun& run, int count) {
  run.At({{"model.py", 40, "forward"}, {"train.py", 60, "train_step"}});
  for (int i = 0; i < count; ++i) run.Free(run.Allocate(4 * kMiB));
}

// Each step leaves a small tensor that stays, in the segment of a big temporary of its own: the holes of the older
// ones are filled at that time.
SeededInput Pinned(std::uint64_t big_bytes, std::uint64_t pin_bytes, std::uint64_t capacity_bytes) {
  SeededRun run({.capacity_bytes = capacity_bytes});
  for (int step = 0; !run.is_out_of_memory(); ++step) {
    run.At({{"model.py", 51, "mlp"}, {"train.py", 60, "train_step"}});
    run.Free(run.Allocate(big_bytes));
    HolesBlocks filling;
    for (int i = 0; i < step; ++i) filling.push_back(run.Allocate(big_bytes - pin_bytes));
    run.At("metrics.py", 17, "log");
    run.Allocate(pin_bytes);
    run.Free(filling);
    Churn(run, 12);
  }
  return run.Finish();
}

// Sequences get longer with every step; activations of the step before are free by then.
SeededInput Growing(std::uint64_t first_bytes, std::uint64_t more_bytes, int layers, int steps) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  run.At("model.py", 12, "__init__");
  for (int layer = 0; layer < layers; ++layer) run.Allocate(50 * kMiB);
  for (int step = 0; step < steps; ++step) {
    HolesBlocks saved;
    run.At({{"model.py", 40, "forward"}, {"train.py", 60, "train_step"}});
    const std::uint64_t bytes = first_bytes + static_cast<std::uint64_t>(step) * more_bytes;
    for (int layer = 0; layer < layers; ++layer) saved.push_back(run.Allocate(bytes));
    run.Free(saved);
  }
  return run.Finish();
}

// Thousands of small tensors of which one of each segment stays, then a request that needs what they hold.
SeededInput SmallScattered(std::uint64_t small_bytes, int segments, std::uint64_t capacity_bytes) {
  SeededRun run({.capacity_bytes = capacity_bytes});
  HolesBlocks blocks;
  const auto per_segment = 2 * kMiB / small_bytes;
  run.At("data.py", 20, "tokenize");
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(segments) * per_segment; ++i) {
    blocks.push_back(run.Allocate(small_bytes));
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i % per_segment != 0) run.Free(blocks[i]);
  }
  run.At("model.py", 40, "forward");
  while (!run.is_out_of_memory()) run.Allocate(30 * kMiB);
  return run.Finish();
}

// Blocks of 1 to 10 MiB that stay, two in each segment of 20 MiB.
SeededInput Medium(std::uint64_t block_bytes, int count) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  run.At("cache.py", 31, "append");
  for (int i = 0; i < count; ++i) run.Allocate(block_bytes);
  run.At("model.py", 40, "forward");
  for (int i = 0; i < 12; ++i) run.Allocate(40 * kMiB);
  return run.Finish();
}

// Every other one stays, and what comes then is larger than what the others left.
SeededInput MediumLeft(std::uint64_t block_bytes, int count, std::uint64_t capacity_bytes) {
  SeededRun run({.capacity_bytes = capacity_bytes});
  HolesBlocks temporary;
  run.At("cache.py", 31, "append");
  for (int i = 0; i < count; ++i) {
    core::Block* block = run.Allocate(block_bytes);
    if (i % 2 == 1) temporary.push_back(block);
  }
  run.Free(temporary);
  run.At("model.py", 40, "forward");
  while (!run.is_out_of_memory()) run.Allocate(40 * kMiB);
  return run.Finish();
}

// Long-lived blocks fill most of each segment, the rest is lost: no small block is to blame, pages would help. What
// was asked for is `asked`, what the platform gave is ordinary segments.
SeededInput Ragged(std::uint64_t big_bytes, std::uint64_t hole_bytes, const char* asked) {
  SeededRun run({.capacity_bytes = 12 * big_bytes});
  run.At("model.py", 51, "mlp");
  HolesBlocks holes;
  for (int i = 0; i < 11; ++i) {
    core::Block* whole = run.Allocate(big_bytes);
    run.Free(whole);
    run.At("cache.py", 31, "append");
    run.Allocate(big_bytes - hole_bytes);
    holes.push_back(run.Allocate(hole_bytes));
  }
  run.Free(holes);
  run.At("model.py", 51, "mlp");
  while (!run.is_out_of_memory()) run.Allocate(2 * hole_bytes);
  SeededInput out = run.Finish();
  out.snapshot.settings->conf = asked;
  out.snapshot.settings->values["PYTORCH_CUDA_ALLOC_CONF"] = asked;
  return out;
}

}  // namespace

std::vector<SeededCase> HoleCases() {
  using analyses::CauseKind;
  return {
      {"2 MiB in 100 MiB", CauseKind::kPinnedSegment, [] { return Pinned(100 * kMiB, 2 * kMiB, 2 * kGiB); }},
      {"8 MiB in 530 MiB", CauseKind::kPinnedSegment, [] { return Pinned(530 * kMiB, 8 * kMiB, 16 * kGiB); }},
      {"200 MiB in 3 GiB", CauseKind::kPinnedSegment, [] { return Pinned(3 * kGiB, 200 * kMiB, 40 * kGiB); }},
      {"lengths grow by a tenth", CauseKind::kGrowingSizes, [] { return Growing(100 * kMiB, 10 * kMiB, 8, 10); }},
      {"lengths double", CauseKind::kGrowingSizes, [] { return Growing(50 * kMiB, 50 * kMiB, 12, 6); }},
      {"lengths grow, one layer", CauseKind::kGrowingSizes, [] { return Growing(400 * kMiB, 30 * kMiB, 2, 12); }},
      {"100 KiB scattered", CauseKind::kSmallLargeSplit, [] { return SmallScattered(100 * kKiB, 200, 2 * kGiB); }},
      {"512 KiB scattered", CauseKind::kSmallLargeSplit, [] { return SmallScattered(512 * kKiB, 300, 1 * kGiB); }},
      {"20 KiB scattered", CauseKind::kSmallLargeSplit, [] { return SmallScattered(20 * kKiB, 100, 1 * kGiB); }},
      {"7 MiB, two a segment", CauseKind::kMediumRequests, [] { return Medium(7 * kMiB, 60); }},
      {"9 MiB, one of two stays", CauseKind::kMediumRequests, [] { return MediumLeft(9 * kMiB, 60, 2 * kGiB); }},
      {"3 MiB, half of them stay", CauseKind::kMediumRequests, [] { return MediumLeft(3 * kMiB, 240, 3 * kGiB); }},
      {"asked for, not there", CauseKind::kNotExpandable,
       [] { return Ragged(100 * kMiB, 30 * kMiB, "expandable_segments:True"); }},
      {"off, holes of 30 in 100 MiB", CauseKind::kNotExpandable, [] { return Ragged(100 * kMiB, 30 * kMiB, ""); }},
      {"off, holes of 400 in 1000 MiB", CauseKind::kNotExpandable, [] { return Ragged(1000 * kMiB, 400 * kMiB, ""); }},
  };
}

}  // namespace ashlar::tests
