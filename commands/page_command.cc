#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "commands/commands.h"
#include "commands/explain/page/page_file.h"
#include "commands/shared/layout.h"
#include "console/command.h"
#include "console/installed_files.h"

namespace ashlar::cli {
namespace {

struct PageFlags {
  bool opens = false;
  std::string output;
};

int RunPage(const PageFlags& flags) {
  const absl::StatusOr<std::string> file = FindWebPage();
  if (!file.ok()) return Fail(kUnreadable, file.status());
  if (!flags.output.empty()) {
    const absl::StatusOr<std::string> html = ReadSmallInput(*file);
    if (!html.ok()) return Fail(kUnreadable, html.status());
    if (flags.output == "-") return Print(*html) ? kOk : kUnreadable;
    if (absl::Status status = WriteFile(flags.output, *html); !status.ok()) return Fail(kUnreadable, status);
  }
  const std::string shown = flags.output.empty() ? *file : flags.output;
  if (flags.opens) ShowPageFile(shown);
  return Print(absl::StrCat(report::Printable(shown), "\n")) ? kOk : kUnreadable;
}

}  // namespace

void AddPage(CommandLine& line) {
  Command app = line.AddCommand("page", "the analyzer in a browser: one HTML file, which uploads nothing");
  app.Example("ashlar page --open");
  auto flags = std::make_shared<PageFlags>();
  app.Add("--open", flags->opens, "shows it in a browser; without this flag, where it lies is printed");
  app.Add("-o,--output", flags->output, "copies it to this file, to be given to others; or - for standard output")
      .Takes("FILE")
      .NotEmpty();
  app.OnRun([flags] { return RunPage(*flags); });
}

}  // namespace ashlar::cli
