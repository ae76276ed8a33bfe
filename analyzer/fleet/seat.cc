#include "analyzer/fleet/seat.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analyzer/fleet/channel.h"

namespace ashlar::fleet {
namespace {

// The process ends when `parent` does.
void EndWith(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
}

[[noreturn]] void RunWorker(int channel, const Work& work) {
  while (true) {
    const Message message = ReceiveMessage(channel);
    if (message.kind != MessageKind::kTask) break;
    if (!SendMessage(channel, {MessageKind::kResult, work(message.text), message.task}).ok()) break;
  }
  std::fflush(nullptr);
  _exit(0);
}

std::string HowItEnded(int status) {
  if (WIFSIGNALED(status)) return absl::StrCat("signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
  return absl::StrCat("exit code ", WEXITSTATUS(status));
}

[[noreturn]] void RunKeeper(int channel, const Work& work) {
  while (true) {
    const pid_t keeper = getpid();
    const pid_t worker = fork();
    if (worker == 0) {
      EndWith(keeper);
      RunWorker(channel, work);
    }
    if (worker < 0) _exit(1);
    int status = 0;
    while (waitpid(worker, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) _exit(0);
    if (!SendMessage(channel, {MessageKind::kLost, HowItEnded(status)}).ok()) _exit(0);
  }
}

}  // namespace

absl::StatusOr<Seat> Seat::Open(const Work& work) {
  const absl::StatusOr<ChannelPair> pair = OpenChannel();
  if (!pair.ok()) return pair.status();
  std::fflush(nullptr);
  const pid_t parent = getpid();
  const pid_t keeper = fork();
  if (keeper < 0) return absl::UnavailableError(absl::StrCat("no process for a worker: ", std::strerror(errno)));
  if (keeper == 0) {
    close(pair->ours);
    EndWith(parent);
    RunKeeper(pair->theirs, work);
  }
  close(pair->theirs);
  return Seat(pair->ours, keeper);
}

Seat::Seat(Seat&& other) noexcept
    : channel_(std::exchange(other.channel_, -1)), keeper_(std::exchange(other.keeper_, -1)) {}

Seat::~Seat() {
  if (channel_ < 0) return;
  // One that is busy has nobody to hear its result.
  if (!SendMessage(channel_, {MessageKind::kEnd}).ok()) kill(keeper_, SIGKILL);
  close(channel_);
  while (waitpid(keeper_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace ashlar::fleet
