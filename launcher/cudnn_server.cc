#include "launcher/cudnn_server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "launcher/cudnn_process.h"

namespace ashlar::cli {
namespace {

constexpr std::chrono::seconds kMostOfQuestion{60};  // its library is not asked again then
constexpr std::size_t kMostQuestionBytes = 64 << 20;
constexpr std::size_t kLines = 4;
constexpr int kWaiting = 128;  // connections

// In the server: all that it was asked, and the libraries.
class CudnnAnswers {
 public:
  std::string Of(const std::string& question) {
    const auto known = answers_.find(question);
    if (known != answers_.end()) return known->second;
    const std::vector<std::string> lines = absl::StrSplit(question, '\n');
    if (lines.size() < kLines) return "? 0 the question is cut off";
    const CudnnSource source{lines[0], lines[1], lines[2]};
    CudnnProcess& library = libraries_.try_emplace(source, source).first->second;
    const std::optional<std::string> told = library.Ask(lines[3], kMostOfQuestion);
    const std::string out = told.value_or(absl::StrCat("? ", library.version(), " ", library.why_not()));
    return answers_[question] = out;
  }

 private:
  std::map<CudnnSource, CudnnProcess> libraries_;
  std::map<std::string, std::string> answers_;
};

// What the other side sends until it says that this is all.
std::string ReadQuestion(int from) {
  std::string out;
  char bytes[4096];
  while (out.size() < kMostQuestionBytes) {
    const ssize_t count = read(from, bytes, sizeof(bytes));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    out.append(bytes, static_cast<std::size_t>(count));
  }
  return out;
}

[[noreturn]] void Serve(int listening) {
  setsid();  // what is sent to the program's group, or by its terminal, is not for this process
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int of : {0, 1, 2}) dup2(nowhere, of);
  CudnnAnswers answers;
  for (;;) {
    const int other = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
    if (other < 0 && errno != EINTR && errno != ECONNABORTED) _exit(1);
    if (other < 0) continue;
    const timeval most{.tv_sec = 5, .tv_usec = 0};
    setsockopt(other, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
    setsockopt(other, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
    const std::string line = answers.Of(ReadQuestion(other)) + "\n";
    (void)!send(other, line.data(), line.size(), MSG_NOSIGNAL);
    shutdown(other, SHUT_RDWR);  // a library's process may hold it too
    close(other);
  }
}

absl::Status Unavailable(const std::string& what) {
  return absl::UnavailableError(absl::StrCat("--workspaces cudnn: ", what));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudnnServer>> CudnnServer::Start(const std::string& folder) {
  const std::string path = PathIn(folder);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (path.size() >= sizeof(address.sun_path)) {
    return Unavailable(absl::StrCat("the path of a socket in ", folder, " is too long: set TMPDIR to a shorter one"));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listening < 0 || bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(listening, kWaiting) != 0) {
    const std::string why = std::strerror(errno);
    if (listening >= 0) close(listening);
    return Unavailable(absl::StrCat("no socket could be made in ", folder, ": ", why));
  }
  const pid_t process = fork();
  if (process == 0) Serve(listening);
  close(listening);
  if (process < 0) return Unavailable(absl::StrCat("no process could be made: ", std::strerror(errno)));
  return std::unique_ptr<CudnnServer>(new CudnnServer(process));
}

CudnnServer::~CudnnServer() {
  kill(process_, SIGKILL);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace ashlar::cli
