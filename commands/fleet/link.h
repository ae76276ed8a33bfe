// What joins the processes of a job: packets of bytes from one to another, whole and in order. MPI makes it
//; a test makes its own.
//
// One thread.
#ifndef ASHLAR_COMMANDS_FLEET_LINK_H_
#define ASHLAR_COMMANDS_FLEET_LINK_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ashlar::fleet {

struct Packet {
  int from = 0;
  std::string bytes;
};

class Link {
 public:
  virtual ~Link() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual absl::Status Send(int to, const std::string& bytes) = 0;
  // nullopt: none has come.
  virtual absl::StatusOr<std::optional<Packet>> TryReceive() = 0;
  // Waits until every process has closed.
  virtual absl::Status Close() = 0;
};

// Joins the processes of a job by MPI, through the module libashlar_mpi.so.
//
//   absl::StatusOr<std::unique_ptr<Link>> link = JoinByMpi("/usr/lib/ashlar/libashlar_mpi.so");
//
// NotFound where the module is not there, Unavailable where it or MPI cannot be opened; each one line. It is opened
// once, after the workers are: MPI does not like to be forked.

absl::StatusOr<std::unique_ptr<Link>> JoinByMpi(const std::string& module);

// Whether this process is one of several that a launcher started: mpirun of Open MPI or MPICH, srun of Slurm, or
// anything else that speaks PMIx or PMI.
//
//   std::optional<FleetLaunch> launch = FindLaunch();   // mpirun -n 4: {"mpirun", 2, 4} in the third of them
//
// It reads the environment alone. In a batch script or an interactive shell of Slurm, which are no steps of several
// tasks, it finds nothing.
struct FleetLaunch {
  std::string launcher;  // "mpirun (Open MPI)", "srun"
  int rank = 0;
  int size = 1;  // 0: not told
};

// `variable` as getenv: nullptr where it is not set.
std::optional<FleetLaunch> FindLaunch(const std::function<const char*(const char*)>& variable);
std::optional<FleetLaunch> FindLaunch();

}  // namespace ashlar::fleet

#endif  // ASHLAR_COMMANDS_FLEET_LINK_H_
