#include "commands/explain/page/page_file.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "commands/explain/page/page_template.h"
#include "commands/shared/layout.h"
#include "console/command.h"
#include "console/given_command.h"
#include "console/progress_line.h"

namespace ashlar::cli {
namespace {

std::string EnvironmentText(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

absl::StatusOr<std::string> PrivateFolder() {
  std::string name = EnvironmentText("TMPDIR");
  absl::StrAppend(&name, name.empty() ? "/tmp" : "", "/ashlar-XXXXXX");
  if (mkdtemp(name.data()) != nullptr) return name;
  return absl::UnavailableError(absl::StrCat("cannot make a folder ", name, ": ", std::strerror(errno)));
}

// What shows a page here; empty: nothing.
std::string Opener() {
  const std::string browser = EnvironmentText("BROWSER");
  if (!browser.empty()) return browser.substr(0, browser.find(':'));
  const bool has_desktop = !EnvironmentText("DISPLAY").empty() || !EnvironmentText("WAYLAND_DISPLAY").empty();
  return has_desktop ? "xdg-open" : "";
}

// In a session of its own, without this terminal.
bool Starts(const std::string& program, const std::string& file) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  std::string name = program;
  std::string argument = file;
  char* const arguments[] = {name.data(), argument.data(), nullptr};
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, program.c_str(), &actions, &attributes, arguments, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error == 0;
}

}  // namespace

absl::StatusOr<std::string> FinishPage(report::PageWriter writer, report::PageFacts facts) {
  facts.made_by = absl::StrCat("ashlar ", ASHLAR_VERSION);
  facts.command = GivenCommand();
  return std::move(writer).Finish(facts);
}

absl::StatusOr<std::string> PageOf(const std::vector<answers::Explanation>& explanations, report::PageFacts facts) {
  report::PageWriter writer(PageTemplate());
  for (const answers::Explanation& explanation : explanations) {
    writer.AddInput(report::PageInputOf(explanation.name.empty() ? facts.title : explanation.name), explanation);
  }
  return FinishPage(std::move(writer), std::move(facts));
}

absl::Status OpenPage(const std::string& html) {
  const absl::StatusOr<std::string> folder = PrivateFolder();
  if (!folder.ok()) return folder.status();
  const std::string file = absl::StrCat(*folder, "/report.html");
  if (absl::Status status = WriteFile(file, html); !status.ok()) return status;
  ShowPageFile(file);
  return absl::OkStatus();
}

void ShowPageFile(const std::string& file) {
  const std::string opener = Opener();
  const bool is_open = !opener.empty() && Starts(opener, file);
  ProgressLine::End();
  std::fprintf(stderr, "%s: %s\n", is_open ? "page opened" : "page written, open it in a browser",
               report::Printable(file).c_str());
}

}  // namespace ashlar::cli
