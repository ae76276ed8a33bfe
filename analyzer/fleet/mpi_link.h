// Joins the processes of a job by MPI, through the module libashlar_mpi.so.
//
//   absl::StatusOr<std::unique_ptr<Link>> link = JoinByMpi("/usr/lib/ashlar/libashlar_mpi.so");
//
// NotFound where the module is not there, Unavailable where it or MPI cannot be opened; each one line. It is opened
// once, after the seats are: MPI does not like to be forked.
#ifndef ASHLAR_ANALYZER_FLEET_MPI_LINK_H_
#define ASHLAR_ANALYZER_FLEET_MPI_LINK_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "analyzer/fleet/link.h"

namespace ashlar::fleet {

absl::StatusOr<std::unique_ptr<Link>> JoinByMpi(const std::string& module);

}  // namespace ashlar::fleet

#endif  // ASHLAR_ANALYZER_FLEET_MPI_LINK_H_
