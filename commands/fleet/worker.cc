#include "commands/fleet/worker.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

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

absl::StatusOr<Worker> Worker::Open(const Work& work) {
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
  return Worker(pair->ours, keeper);
}

Worker::Worker(Worker&& other) noexcept
    : channel_(std::exchange(other.channel_, -1)), keeper_(std::exchange(other.keeper_, -1)) {}

Worker::~Worker() {
  if (channel_ < 0) return;
  // One that is busy has nobody to hear its result.
  if (!SendMessage(channel_, {MessageKind::kEnd}).ok()) kill(keeper_, SIGKILL);
  close(channel_);
  while (waitpid(keeper_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

namespace {

constexpr std::size_t kPartBytes = 32 * 1024;  // far below what a socket takes at once
constexpr char kMore = '+';
constexpr std::size_t kHeadBytes = 2 + sizeof(std::uint32_t);

// The kind, whether more comes, the task and the text.
bool SendPart(int end, const Message& message, bool is_last, absl::string_view text) {
  std::string part(kHeadBytes, '\0');
  part[0] = static_cast<char>(message.kind);
  part[1] = is_last ? '.' : kMore;
  std::memcpy(part.data() + 2, &message.task, sizeof(message.task));
  part.append(text.data(), text.size());
  ssize_t sent = 0;
  do {
    sent = send(end, part.data(), part.size(), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(part.size());
}

}  // namespace

absl::StatusOr<ChannelPair> OpenChannel() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::UnavailableError(absl::StrCat("no sockets for the processes: ", std::strerror(errno)));
  }
  return ChannelPair{ends[0], ends[1]};
}

absl::Status SendMessage(int end, const Message& message) {
  absl::string_view left = message.text;
  bool is_sent = true;
  do {
    const absl::string_view part = left.substr(0, kPartBytes);
    left.remove_prefix(part.size());
    is_sent = SendPart(end, message, left.empty(), part);
  } while (is_sent && !left.empty());
  if (is_sent) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("a process cannot be reached: ", std::strerror(errno)));
}

bool MessageParts::Receive(int end, Message& message) {
  std::string part(kPartBytes + kHeadBytes, '\0');
  ssize_t size = 0;
  do {
    size = recv(end, part.data(), part.size(), 0);
  } while (size < 0 && errno == EINTR);
  if (size < static_cast<ssize_t>(kHeadBytes)) {
    message = {MessageKind::kGone, ""};
    return true;
  }
  const auto kind = static_cast<MessageKind>(part[0]);
  // Its sender did not come to the end.
  if (kind == MessageKind::kLost) text_.clear();
  text_.append(part, kHeadBytes, static_cast<std::size_t>(size) - kHeadBytes);
  if (part[1] == kMore) return false;
  message = {kind, std::exchange(text_, "")};
  std::memcpy(&message.task, part.data() + 2, sizeof(message.task));
  return true;
}

Message ReceiveMessage(int end) {
  Message out;
  MessageParts parts;
  while (!parts.Receive(end, out)) {
  }
  return out;
}

}  // namespace ashlar::fleet
