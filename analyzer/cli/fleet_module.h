// Finds libashlar_mpi.so: the file that ASHLAR_MPI_LIB names; lib/ashlar of the installed program; the build tree that
// the program lies in.
#ifndef ASHLAR_ANALYZER_CLI_FLEET_MODULE_H_
#define ASHLAR_ANALYZER_CLI_FLEET_MODULE_H_

#include <string>

#include "absl/status/statusor.h"

namespace ashlar::cli {

// NotFound, in one line, where it is not there.
absl::StatusOr<std::string> FindMpiModule();

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_FLEET_MODULE_H_
