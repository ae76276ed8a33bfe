#include "hollow/api/cudnn/asked_library.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "hollow/api/cudnn/backend_text.h"
#include "hollow/api/real_library.h"
#include "hollow/process/process.h"

namespace ashlar::hollow {
namespace {

constexpr char kVariable[] = "ASHLAR_HOLLOW_CUDNN";
constexpr char kNobody[] = "ashlar did not answer";
// `ashlar` waits less for a library, and asks for one process at a time.
constexpr timeval kMostWaited{.tv_sec = 300, .tv_usec = 0};

// A connection that is closed at its end.
class Connection {
 public:
  explicit Connection(const char* path) : file_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    if (file_ < 0 || std::strlen(path) >= sizeof(address.sun_path)) return;
    std::strcpy(address.sun_path, path);
    setsockopt(file_, SOL_SOCKET, SO_RCVTIMEO, &kMostWaited, sizeof(kMostWaited));
    setsockopt(file_, SOL_SOCKET, SO_SNDTIMEO, &kMostWaited, sizeof(kMostWaited));
    int status = 0;
    do {
      status = connect(file_, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    } while (status != 0 && errno == EINTR);
    is_open_ = status == 0;
  }
  ~Connection() {
    if (file_ >= 0) close(file_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool Send(const std::string& text) const {
    std::size_t sent = 0;
    while (is_open_ && sent < text.size()) {
      const ssize_t count = send(file_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      sent += static_cast<std::size_t>(count);
    }
    return is_open_ && shutdown(file_, SHUT_WR) == 0;
  }

  // All that comes.
  std::string Read() const {
    std::string out;
    char bytes[4096];
    for (;;) {
      const ssize_t count = recv(file_, bytes, sizeof(bytes), 0);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return out;
      out.append(bytes, static_cast<std::size_t>(count));
    }
  }

 private:
  const int file_;
  bool is_open_ = false;
};

// The answer's line without its end; empty: there is none, and why is noted.
std::string Ask(const std::string& command) {
  const char* const path = std::getenv(kVariable);
  if (path == nullptr) return "";
  const int error = errno;  // the program's
  const Connection connection(path);
  std::string line;
  if (connection.Send(RealPath("libcudnn.so.") + "\n" + RealPath("libcublasLt.so.") + "\n" +
                      CudnnDeviceText(TheSettings(), 0) + "\n" + command + "\n")) {
    line = connection.Read();
  }
  errno = error;
  if (!line.empty() && line.back() == '\n') {
    line.pop_back();
  } else {
    line = std::string("? 0 ") + kNobody;
  }
  if (line.front() != '?') return line;
  std::istringstream text(line.substr(1));
  std::uint64_t version = 0;
  std::string why;
  text >> version >> std::ws;
  std::getline(text, why);
  NoteCudnnSilence(why);
  return "";
}

// "3.17" in numbers.
std::vector<std::int32_t> NotesIn(const std::string& text) {
  std::vector<std::int32_t> out;
  std::istringstream numbers(text);
  for (std::string number; std::getline(numbers, number, '.');) {
    out.push_back(static_cast<std::int32_t>(std::strtol(number.c_str(), nullptr, 10)));
  }
  return out;
}

// "NUMBER:ENGINE:BYTES:NOTES:BEHAVIOR".
AskedConfig ConfigIn(const std::string& text) {
  AskedConfig out;
  std::istringstream parts(text);
  std::string part;
  const auto next = [&] { return std::getline(parts, part, ':') ? part : std::string(); };
  out.number = static_cast<int>(std::strtol(next().c_str(), nullptr, 10));
  out.engine = std::strtoll(next().c_str(), nullptr, 10);
  out.workspace_bytes = std::strtoll(next().c_str(), nullptr, 10);
  out.numerical_notes = NotesIn(next());
  out.behavior_notes = NotesIn(next());
  return out;
}

}  // namespace

bool IsCudnnAsked() { return std::getenv(kVariable) != nullptr; }

std::vector<AskedConfig> AskForConfigs(const std::string& question) {
  std::istringstream line(Ask("configs " + question));
  std::string word;
  line >> word;
  std::vector<AskedConfig> out;
  if (word != "*") return out;
  while (line >> word) out.push_back(ConfigIn(word));
  return out;
}

AskedPlan AskForPlan(const std::string& question, int number) {
  std::istringstream line(Ask("plan:" + std::to_string(number) + " " + question));
  std::string word;
  line >> word;
  AskedPlan out{.is_answered = word == "=" || word == "-", .is_plan = word == "="};
  if (out.is_plan) line >> out.workspace_bytes;
  return out;
}

}  // namespace ashlar::hollow
