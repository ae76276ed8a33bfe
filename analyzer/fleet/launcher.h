// Whether this process is one of several that a launcher started: mpirun of Open MPI or MPICH, srun of Slurm, or
// anything else that speaks PMIx or PMI.
//
//   std::optional<Launch> launch = FindLaunch();   // mpirun -n 4: {"mpirun", 2, 4} in the third of them
//
// It reads the environment alone. In a batch script or an interactive shell of Slurm, which are no steps of several
// tasks, it finds nothing.
#ifndef ASHLAR_ANALYZER_FLEET_LAUNCHER_H_
#define ASHLAR_ANALYZER_FLEET_LAUNCHER_H_

#include <functional>
#include <optional>
#include <string>

namespace ashlar::fleet {

struct Launch {
  std::string launcher;  // "mpirun (Open MPI)", "srun"
  int rank = 0;
  int size = 1;  // 0: not told
};

// `variable` as getenv: nullptr where it is not set.
std::optional<Launch> FindLaunch(const std::function<const char*(const char*)>& variable);
std::optional<Launch> FindLaunch();

}  // namespace ashlar::fleet

#endif  // ASHLAR_ANALYZER_FLEET_LAUNCHER_H_
