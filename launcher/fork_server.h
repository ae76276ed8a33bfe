// A process that has imported what each run of a Python program imports, and is forked for each of them: a run begins
// where its imports would have ended.
//
//   std::unique_ptr<ForkServer> server = ForkServer::Start(launch, machine, modules, /*most_seconds=*/60);
//   if (server == nullptr) ...                                   // it could not: each run imports by itself
//   RunAgain(reruns, {.at_once = 2, .most_seconds = 90, .server = server.get()}, relay, progress);
//
// The Python side is ashlar_hollow/fork_server.py. Whether a fork does what a run by itself does is for the caller to
// see: by a run of the program as it is. One thread at a time.
#ifndef ASHLAR_LAUNCHER_FORK_SERVER_H_
#define ASHLAR_LAUNCHER_FORK_SERVER_H_

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/run_folder.h"
#include "launcher/run_program.h"

namespace ashlar::cli {

class ForkServer {
 public:
  // nullptr where it does not come to be ready within the time.
  static std::unique_ptr<ForkServer> Start(const Launch& launch, const std::string& machine,
                                           const std::vector<std::string>& modules, double most_seconds);
  ~ForkServer();
  ForkServer(const ForkServer&) = delete;
  ForkServer& operator=(const ForkServer&) = delete;

  // Whether a run of `launch` can be one of its forks: the same command, in an environment that is other in Ashlar's
  // own settings alone.
  bool CanBegin(const Launch& launch) const;
  // Where the folders of its forks lie.
  const std::string& place() const { return folder_->path(); }

  // The process of the fork, which runs apart (apart.h); 0 where it cannot.
  pid_t Fork(const Launch& launch, const RunFolder& folder);
  // As waitpid says it, once it has ended; nullopt while it runs. Of a server that is gone all forks are: a signal
  // ended them.
  std::optional<int> EndOf(pid_t fork);

 private:
  ForkServer(Launch launch, std::unique_ptr<RunFolder> folder)
      : launch_(std::move(launch)), folder_(std::move(folder)) {}
  bool Begin(const std::string& machine, const std::vector<std::string>& modules, double most_seconds);
  // The next message, where one comes within the time; empty: none, or the server is gone.
  std::string Hear(int milliseconds);
  void TakeEnd(const std::string& message);
  void End();

  const Launch launch_;
  const std::unique_ptr<RunFolder> folder_;
  pid_t process_ = 0;
  int link_ = -1;
  bool is_gone_ = false;
  std::map<pid_t, int> ended_;
};

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_FORK_SERVER_H_
