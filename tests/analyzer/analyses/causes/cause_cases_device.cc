// Programs that need more than the device has, or more than others leave of it.
#include "tests/analyzer/analyses/causes/cause_cases.h"

namespace ashlar::tests {
namespace {

// Layers and their activations fill the device to the last segment; no holes to speak of.
SeededInput Overfull(std::uint64_t capacity_bytes, std::uint64_t layer_bytes) {
  SeededRun run({.capacity_bytes = capacity_bytes});
  run.At("model.py", 12, "__init__");
  for (int layer = 0; layer < 8; ++layer) run.Allocate(layer_bytes);
  run.At("model.py", 40, "forward");
  while (!run.is_out_of_memory()) run.Allocate(layer_bytes / 2);
  return run.Finish();
}

// The same on a device of which others hold a part.
SeededInput OverfullBeside(std::uint64_t total_bytes, std::uint64_t outside_bytes,
                           std::vector<analyses::RankPeak> ranks) {
  SeededInput out = Overfull(total_bytes - outside_bytes, 300 * kMiB);
  out.total_bytes = total_bytes;
  out.ranks = std::move(ranks);
  return out;
}

// A fine program on a device that nvidia-smi shows to be full.
SeededInput FineBeside(std::uint64_t used_bytes) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  run.At("model.py", 12, "__init__");
  for (int layer = 0; layer < 20; ++layer) run.Allocate(200 * kMiB);
  SeededInput out = run.Finish();
  out.device_used_bytes = used_bytes;
  return out;
}

std::vector<analyses::RankPeak> DeviceRanks(int count) {
  std::vector<analyses::RankPeak> out;
  for (int rank = 0; rank < count; ++rank) out.push_back({rank, 10 * kGiB, 11 * kGiB});
  return out;
}

// One workspace for each stream that ever multiplied.
SeededInput Workspaces(int streams, std::uint64_t workspace_bytes) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  run.At("model.py", 12, "__init__");
  for (int layer = 0; layer < 8; ++layer) run.Allocate(64 * kMiB);
  run.At({{"CublasHandlePool.cpp", 0, "at::cuda::getCurrentCUDABlasHandle()"}, {"model.py", 44, "matmul"}});
  for (int stream = 0; stream < streams; ++stream) {
    run.Allocate(workspace_bytes, Stream{static_cast<std::uint64_t>(stream)});
  }
  return run.Finish();
}

}  // namespace

std::vector<SeededCase> DeviceCases() {
  using analyses::CauseKind;
  return {
      {"activations fill 2 GiB", CauseKind::kCapacity, [] { return Overfull(2 * kGiB, 128 * kMiB); }},
      {"activations fill 16 GiB", CauseKind::kCapacity, [] { return Overfull(16 * kGiB, 600 * kMiB); }},
      {"activations fill 80 GiB", CauseKind::kCapacity, [] { return Overfull(80 * kGiB, 3000 * kMiB); }},
      {"others hold 6 of 16 GiB", CauseKind::kOtherProcess, [] { return OverfullBeside(16 * kGiB, 6 * kGiB, {}); }},
      {"others hold 30 of 80 GiB", CauseKind::kOtherProcess, [] { return OverfullBeside(80 * kGiB, 30 * kGiB, {}); }},
      {"nvidia-smi shows 20 GiB more", CauseKind::kOtherProcess, [] { return FineBeside(24 * kGiB); }},
      {"4 ranks on a device of 24 GiB", CauseKind::kOtherRanksContexts,
       [] { return OverfullBeside(24 * kGiB, 3 * kGiB, DeviceRanks(4)); }},
      {"8 ranks on a device of 40 GiB", CauseKind::kOtherRanksContexts,
       [] { return OverfullBeside(40 * kGiB, 7 * kGiB, DeviceRanks(8)); }},
      {"8 ranks on a device of 24 GiB", CauseKind::kOtherRanksContexts,
       [] { return OverfullBeside(24 * kGiB, 5 * kGiB, DeviceRanks(8)); }},
      {"12 workspaces of 8 MiB", CauseKind::kWorkspaces, [] { return Workspaces(12, 8 * kMiB); }},
      {"8 workspaces of 64 MiB", CauseKind::kWorkspaces, [] { return Workspaces(8, 64 * kMiB); }},
      {"1.6 of 8 GiB outside", CauseKind::kWorkspaces, [] { return OverfullBeside(8 * kGiB, 1600 * kMiB, {}); }},
  };
}

}  // namespace ashlar::tests
