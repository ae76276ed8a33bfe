// What joins the processes of a job: packets of bytes from one to another, whole and in order. MPI makes it
// (mpi_link.h); a test makes its own.
//
// One thread.
#ifndef ASHLAR_ANALYZER_FLEET_LINK_H_
#define ASHLAR_ANALYZER_FLEET_LINK_H_

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

}  // namespace ashlar::fleet

#endif  // ASHLAR_ANALYZER_FLEET_LINK_H_
