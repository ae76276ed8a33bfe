// Answers the processes of a run about the plans of their cuDNN, while they run: each brings the file of its library,
// which is asked in a process of its own (cudnn_process.h), once for the same question of all processes and runs.
//
//   absl::StatusOr<std::unique_ptr<CudnnServer>> server = CudnnServer::Start(folder.path());
//   launch.environment[CudnnServer::kVariable] = CudnnServer::PathIn(folder.path());
//
// hollow/api/cudnn/asked_library.h connects there.
//
// One question a connection: four lines, the library, cuBLASLt, the device and a command, and a line back, that of the
// library or "? VERSION WHY".
#ifndef ASHLAR_LAUNCHER_CUDNN_SERVER_H_
#define ASHLAR_LAUNCHER_CUDNN_SERVER_H_

#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace ashlar::cli {

// A process, which ends with this one or with the object. Make it before a SignalRelay.
class CudnnServer {
 public:
  static constexpr char kVariable[] = "ASHLAR_HOLLOW_CUDNN";

  // Of its socket.
  static std::string PathIn(const std::string& folder) { return folder + "/cudnn"; }
  // Unavailable, and why.
  static absl::StatusOr<std::unique_ptr<CudnnServer>> Start(const std::string& folder);
  ~CudnnServer();
  CudnnServer(const CudnnServer&) = delete;
  CudnnServer& operator=(const CudnnServer&) = delete;

 private:
  explicit CudnnServer(pid_t process) : process_(process) {}

  const pid_t process_;
};

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_CUDNN_SERVER_H_
