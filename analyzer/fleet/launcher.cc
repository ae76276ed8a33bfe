#include "analyzer/fleet/launcher.h"

#include <cstdlib>

#include "absl/strings/numbers.h"

namespace ashlar::fleet {
namespace {

struct LauncherVariables {
  const char* launcher;
  const char* rank;
  const char* size;  // nullptr: it has none
};

// mpirun within a job of Slurm sets Slurm's as well: its own come first.
constexpr LauncherVariables kLaunchers[] = {
    {"mpirun (Open MPI)", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
    {"mpiexec (PMI)", "PMI_RANK", "PMI_SIZE"},
    {"a launcher (PMIx)", "PMIX_RANK", nullptr},
};

std::optional<int> NumberOf(const char* text) {
  int out = 0;
  if (text == nullptr || !absl::SimpleAtoi(text, &out) || out < 0) return std::nullopt;
  return out;
}

}  // namespace

std::optional<Launch> FindLaunch(const std::function<const char*(const char*)>& variable) {
  for (const LauncherVariables& names : kLaunchers) {
    const std::optional<int> rank = NumberOf(variable(names.rank));
    if (!rank.has_value()) continue;
    if (names.size == nullptr) return Launch{names.launcher, *rank, 0};
    const std::optional<int> size = NumberOf(variable(names.size));
    if (size.value_or(0) > 1) return Launch{names.launcher, *rank, *size};
  }
  return std::nullopt;
}

std::optional<Launch> FindLaunch() {
  return FindLaunch([](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace ashlar::fleet
