// Programs that need more than the device has.
#include "tests/analyses/cause_cases.h"

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

}  // namespace

std::vector<SeededCase> DeviceCases() {
  using analyses::CauseKind;
  return {
      {"activations fill 2 GiB", CauseKind::kCapacity, [] { return Overfull(2 * kGiB, 128 * kMiB); }},
      {"activations fill 16 GiB", CauseKind::kCapacity, [] { return Overfull(16 * kGiB, 600 * kMiB); }},
      {"activations fill 80 GiB", CauseKind::kCapacity, [] { return Overfull(80 * kGiB, 3000 * kMiB); }},
  };
}

}  // namespace ashlar::tests
