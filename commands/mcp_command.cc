#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "commands/commands.h"
#include "commands/mcp/mcp_server.h"
#include "console/command.h"

namespace ashlar::cli {
namespace {

constexpr std::size_t kMostReadBytes = 16 << 20;

// A file without a name, closed in what is started.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("ashlar", MFD_CLOEXEC)) {}
  ~MemoryFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }
  bool Write(const std::string& text) const {
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t written = write(descriptor_, text.data() + done, text.size() - done);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      done += static_cast<std::size_t>(written);
    }
    return lseek(descriptor_, 0, SEEK_SET) == 0;
  }
  std::string Read() const {
    std::string out;
    std::string part(1 << 16, '\0');
    while (out.size() < kMostReadBytes) {
      const ssize_t got = pread(descriptor_, part.data(), part.size(), static_cast<off_t>(out.size()));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      out.append(part, 0, static_cast<std::size_t>(got));
    }
    return out;
  }

 private:
  int descriptor_;
};

ToolEnd NotStarted(const char* what) { return {kUnreadable, "", absl::StrCat(what, ": ", std::strerror(errno), "\n")}; }

// This program itself, with these arguments.
ToolEnd RunSelf(const ToolRun& run) {
  const MemoryFile in;
  const MemoryFile out;
  const MemoryFile err;
  if (in.descriptor() < 0 || out.descriptor() < 0 || err.descriptor() < 0) return NotStarted("no file in memory");
  if (!in.Write(run.input)) return NotStarted("the input cannot be kept");
  std::vector<std::string> words = {"ashlar"};
  words.insert(words.end(), run.arguments.begin(), run.arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) return NotStarted("no process can be made");
  if (child == 0) {
    dup2(in.descriptor(), STDIN_FILENO);
    dup2(out.descriptor(), STDOUT_FILENO);
    dup2(err.descriptor(), STDERR_FILENO);
    execv("/proc/self/exe", pointers.data());
    _exit(kUnreadable);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ToolEnd end;
  end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  end.out = out.Read();
  end.err = err.Read();
  return end;
}

int RunMcp(bool may_run) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::canonical(".", error);
  if (error) return Fail(kUnreadable, absl::UnavailableError(absl::StrCat("this folder: ", error.message())));
  const McpServer server({folder.string(), ASHLAR_VERSION, may_run, RunSelf});
  std::string line;
  while (std::getline(std::cin, line)) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::optional<std::string> answer = server.Answer(line);
    if (answer.has_value() && !Print(absl::StrCat(*answer, "\n"))) return kUnreadable;
  }
  return kOk;
}

}  // namespace

void AddMcp(CommandLine& line) {
  Command app =
      line.AddCommand("mcp", "serves explain, diff and estimate to agents (Model Context Protocol, on stdio)");
  app.Example("claude mcp add ashlar -- ashlar mcp");
  auto may_run = std::make_shared<bool>(false);
  app.Add("--allow-run", *may_run, "agents may run programs too: dry_run and fit");
  app.OnRun([may_run] { return RunMcp(*may_run); });
}

}  // namespace ashlar::cli
