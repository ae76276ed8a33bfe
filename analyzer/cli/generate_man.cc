#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "analyzer/cli/generate.h"

namespace ashlar::cli {
namespace {

// Text of roff: a hyphen that is to be copied is one, and no line begins a request.
std::string Roff(const std::string& text) {
  std::string out = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  if (!out.empty() && (out.front() == '.' || out.front() == '\'')) out.insert(0, "\\&");
  return absl::StrReplaceAll(out, {{"\n.", "\n\\&."}, {"\n'", "\n\\&'"}});
}

std::string ManValue(const FlagDescription& flag) {
  if (flag.value.empty()) return "";
  const std::string value = flag.choices.empty() ? flag.value : absl::StrJoin(flag.choices, "|");
  return absl::StrCat(flag.may_stand_alone ? " [\\fI" : " \\fI", Roff(value), flag.may_stand_alone ? "\\fR]" : "\\fR",
                      flag.is_list ? " ..." : "");
}

std::string ManEntry(const FlagDescription& flag) {
  if (flag.is_positional) {
    return absl::StrCat(".TP\n\\fI", Roff(flag.names.front()), "\\fR", flag.is_list ? " ..." : "", "\n",
                        Roff(flag.help), "\n");
  }
  const std::string names = absl::StrJoin(flag.names, ", ", [](std::string* out, const std::string& name) {
    absl::StrAppend(out, "\\fB", Roff(name), "\\fR");
  });
  return absl::StrCat(".TP\n", names, ManValue(flag), "\n", Roff(flag.help), "\n");
}

std::string ManFlags(const CommandDescription& command) {
  std::string out;
  std::string heading = "Options";
  for (const FlagDescription& flag : command.flags) {
    if (flag.heading != heading) absl::StrAppend(&out, ".PP\n", Roff(flag.heading), ":\n");
    heading = flag.heading;
    absl::StrAppend(&out, ManEntry(flag));
  }
  return out;
}

std::string ManUsage(const CommandDescription& command) {
  std::string out = absl::StrCat("\\fB", Roff(command.path), "\\fR [\\fIoptions\\fR]");
  for (const FlagDescription& flag : command.flags) {
    if (flag.is_positional)
      absl::StrAppend(&out, " \\fI", Roff(flag.names.front()), "\\fR", flag.is_list ? " ..." : "");
  }
  if (command.takes_program) absl::StrAppend(&out, " \\-\\- \\fIprogram\\fR [\\fIargument\\fR ...]");
  if (!command.commands.empty()) absl::StrAppend(&out, " \\fIcommand\\fR");
  return out;
}

std::string ManSection(const CommandDescription& command) {
  std::string out = absl::StrCat(".SS ", Roff(command.path), "\n", ManUsage(command), "\n.PP\n", Roff(command.summary),
                                 ".\n", ManFlags(command));
  if (!command.example.empty()) {
    absl::StrAppend(&out, ".PP\nExample:\n.PP\n.RS 4\n.nf\n", Roff(command.example), "\n.fi\n.RE\n");
  }
  return out;
}

}  // namespace

std::string ManPage(const CommandDescription& program, const std::string& version) {
  std::string out = absl::StrCat(".TH ", absl::AsciiStrToUpper(program.name), " 1 \"\" \"", program.name, " ", version,
                                 "\" \"User Commands\"\n.SH NAME\n", program.name, " \\- explains GPU memory\n",
                                 ".SH SYNOPSIS\n", ManUsage(program), "\n.SH DESCRIPTION\n", Roff(program.summary),
                                 "\n", ".SH OPTIONS\n", ManFlags(program), ".SH COMMANDS\n");
  for (const CommandDescription* command : EveryCommand(program)) {
    if (command != &program) absl::StrAppend(&out, ManSection(*command));
  }
  return absl::StrCat(out, ".SH EXIT STATUS\n.TP\n0\nfine\n.TP\n1\na check failed\n.TP\n2\nusage\n.TP\n3\n",
                      "an unreadable input\n.PP\nA command that starts a program ends with that program's own.\n");
}

}  // namespace ashlar::cli
