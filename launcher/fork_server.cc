#include "launcher/fork_server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "console/command.h"
#include "launcher/apart.h"
#include "nlohmann/json.hpp"

namespace ashlar::cli {
namespace {

constexpr std::size_t kMostMessage = 1 << 12;
constexpr int kAnswerMilliseconds = 10'000;  // of a fork
constexpr int kGone = SIGKILL;               // the wait status of a process that this signal ended

// Settings of a run that Python's side, or what it imports after the fork, reads anew.
bool IsReadAnew(const std::string& name) { return absl::StartsWith(name, "ASHLAR_"); }

bool SendWith(int link, const std::string& text, const std::array<int, 4>& files) {
  iovec part = {const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(files))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof(room);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(files));
  std::memcpy(CMSG_DATA(header), files.data(), sizeof(files));
  return sendmsg(link, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

std::vector<std::string> ButMemory(const std::string& machine) {
  std::vector<std::string> lines = absl::StrSplit(machine, '\n');
  std::erase_if(lines, [](const std::string& line) { return absl::StartsWith(line, "total_bytes="); });
  return lines;
}

// {"NAME": "value"} of an environment.
std::string EnvironmentText(const std::vector<std::string>& environment) {
  nlohmann::json out = nlohmann::json::object();
  for (const std::string& entry : environment) {
    const std::size_t equals = entry.find('=');
    if (equals != std::string::npos) out[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  return out.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::unique_ptr<ForkServer> ForkServer::Start(const Launch& launch, const std::string& machine,
                                              const ForkImports& imports) {
  absl::StatusOr<std::unique_ptr<RunFolder>> folder = RunFolder::MakeOnDisk();
  if (!folder.ok()) return nullptr;
  std::unique_ptr<ForkServer> out(new ForkServer(launch, machine, *std::move(folder)));
  return out->Begin(imports) ? std::move(out) : nullptr;
}

bool ForkServer::Begin(const ForkImports& imports) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
  link_ = ends[0];
  Launch launch = LaunchApart(launch_, *folder_);
  const std::string list = folder_->path() + "/modules.json";
  launch.environment["ASHLAR_FORK_SERVER"] = absl::StrCat(ends[1]);
  launch.environment["ASHLAR_FORK_MODULES"] = list;
  const nlohmann::json told = {{"modules", imports.modules}, {"using", imports.using_device}};
  absl::Status status = WriteFile(list, told.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
  status.Update(WriteFile(folder_->path() + "/machine", machine_));
  if (status.ok()) {
    const absl::StatusOr<pid_t> process = StartApart(launch, *folder_, ends[1]);
    if (process.ok()) process_ = *process;
  }
  close(ends[1]);
  return process_ > 0;
}

bool ForkServer::IsReadyWithin(double seconds) { return Hear(static_cast<int>(seconds * 1000)) == "ready"; }

ForkServer::~ForkServer() {
  End();
  if (link_ >= 0) close(link_);
}

void ForkServer::End() {
  is_gone_ = true;
  if (process_ == 0) return;
  kill(process_, SIGKILL);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
  process_ = 0;
}

bool ForkServer::CanBegin(const Launch& launch, const std::string& machine) const {
  if (is_gone_ || launch.path != launch_.path || launch.arguments != launch_.arguments) return false;
  if (ButMemory(machine) != ButMemory(machine_)) return false;
  const auto others = [](std::map<std::string, std::string> environment) {
    std::erase_if(environment, [](const auto& entry) { return IsReadAnew(entry.first); });
    return environment;
  };
  return others(launch.environment) == others(launch_.environment);
}

pid_t ForkServer::Fork(const Launch& launch, const RunFolder& folder) {
  const ApartFiles files(folder);
  const std::string request = folder.path() + "/environment.json";
  if (is_gone_ || folder.lock() < 0 || !files.status().ok() ||
      !WriteFile(request, EnvironmentText(EnvironmentWith(launch.environment))).ok() ||
      !SendWith(link_, request, {files.input(), files.output(), files.walls().rules(), folder.lock()})) {
    return 0;
  }
  for (;;) {
    const std::string answer = Hear(kAnswerMilliseconds);
    pid_t process = 0;
    if (absl::StartsWith(answer, "began ") && absl::SimpleAtoi(answer.substr(6), &process)) return process;
    if (answer.empty()) {
      End();
      return 0;
    }
    TakeEnd(answer);
  }
}

std::optional<int> ForkServer::EndOf(pid_t fork) {
  while (!is_gone_ && ended_.count(fork) == 0) {
    const std::string message = Hear(0);
    if (message.empty()) break;
    TakeEnd(message);
  }
  if (const auto found = ended_.find(fork); found != ended_.end()) return found->second;
  return is_gone_ ? std::optional(kGone) : std::nullopt;
}

void ForkServer::TakeEnd(const std::string& message) {
  const std::vector<std::string> words = absl::StrSplit(message, ' ');
  pid_t process = 0;
  int status = 0;
  if (words.size() == 3 && words[0] == "ended" && absl::SimpleAtoi(words[1], &process) &&
      absl::SimpleAtoi(words[2], &status)) {
    ended_[process] = status;
  }
}

std::string ForkServer::Hear(int milliseconds) {
  pollfd link = {link_, POLLIN, 0};
  int came = 0;
  while ((came = poll(&link, 1, milliseconds)) < 0 && errno == EINTR) {
  }
  if (came <= 0) return "";
  std::string out(kMostMessage, '\0');
  const ssize_t size = recv(link_, out.data(), out.size(), 0);
  if (size <= 0) End();
  out.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return out;
}

}  // namespace ashlar::cli
