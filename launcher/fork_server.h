// A process that has imported what each run of a Python program imports, and is forked for each of them: a run begins
// where its imports would have ended.
//
//   std::unique_ptr<ForkServer> server = ForkServer::Start(launch, machine, imports);
//   if (server == nullptr || !server->IsReadyWithin(60)) ...      // each run imports by itself
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

// Of a first run (ashlar_hollow/imported.py).
struct ForkImports {
  std::vector<std::string> modules;       // in the order in which their imports began
  std::vector<std::string> using_device;  // whose imports are left to the forks
};

class ForkServer {
 public:
  // It imports from here on. nullptr: it could not be started.
  static std::unique_ptr<ForkServer> Start(const Launch& launch, const std::string& machine,
                                           const ForkImports& imports);
  ~ForkServer();
  ForkServer(const ForkServer&) = delete;
  ForkServer& operator=(const ForkServer&) = delete;

  // Waits for its imports to end.
  bool IsReadyWithin(double seconds);
  // Whether a run of `launch` can be one of its forks: the same command, in an environment that is other in Ashlar's
  // own settings alone, on a machine that is other in its memory alone.
  bool CanBegin(const Launch& launch, const std::string& machine) const;
  // Where the folders of its forks lie.
  const std::string& place() const { return folder_->path(); }

  // The process of the fork, which runs apart (apart.h); 0 where it cannot.
  pid_t Fork(const Launch& launch, const RunFolder& folder);
  // As waitpid says it, once it has ended; nullopt while it runs. Of a server that is gone all forks are: a signal
  // ended them.
  std::optional<int> EndOf(pid_t fork);

 private:
  ForkServer(Launch launch, std::string machine, std::unique_ptr<RunFolder> folder)
      : launch_(std::move(launch)), machine_(std::move(machine)), folder_(std::move(folder)) {}
  bool Begin(const ForkImports& imports);
  // The next message, where one comes within the time; empty: none, or the server is gone.
  std::string Hear(int milliseconds);
  void TakeEnd(const std::string& message);
  void End();

  const Launch launch_;
  const std::string machine_;
  const std::unique_ptr<RunFolder> folder_;
  pid_t process_ = 0;
  int link_ = -1;
  bool is_gone_ = false;
  std::map<pid_t, int> ended_;
};

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_FORK_SERVER_H_
