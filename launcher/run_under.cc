#include "launcher/run_under.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "allocator/base/units.h"
#include "commands/explain/explain_report.h"
#include "console/command.h"
#include "console/given_command.h"
#include "console/installed_files.h"
#include "console/progress_line.h"
#include "launcher/explain.h"
#include "launcher/launcher.h"
#include "launcher/program.h"
#include "launcher/results.h"
#include "launcher/run_program.h"
#include "launcher/shared_accounting.h"

namespace ashlar::cli {
namespace {

constexpr char kPrefix[] = "served-";

std::optional<serve::ServedCounts> CountsIn(const std::filesystem::path& path) {
  if (!IsLeftFile(path)) return std::nullopt;
  std::ifstream in(path, std::ios::binary);
  char magic[sizeof(serve::kServedMagic)] = {};
  serve::ServedCounts out;
  in.read(magic, sizeof(magic));
  in.read(reinterpret_cast<char*>(&out), sizeof(out));
  if (!in || std::memcmp(magic, serve::kServedMagic, sizeof(magic)) != 0) return std::nullopt;
  return out;
}

bool IsIdle(const serve::ServedCounts& counts) {
  return counts.served_allocations + counts.passed_allocations + counts.has_torch == 0;
}

std::string LineOf(const ServedProcess& of) {
  const serve::ServedCounts& counts = of.counts;
  std::string out = absl::StrCat("ashlar: process ", of.process, ": ");
  if (counts.has_torch != 0 && counts.served_allocations == 0) {
    return absl::StrCat(out, "it has PyTorch and was left to it\n");
  }
  if (counts.served_allocations == 0) {
    return absl::StrCat(out, "served nothing; passed to the driver ",
                        FormatCounted(counts.passed_allocations, "allocation"), "\n");
  }
  absl::StrAppend(&out, "served ", FormatCounted(counts.served_allocations, "allocation"), " and ",
                  FormatCounted(counts.served_frees, "free"), " by ",
                  FormatCounted(counts.device_allocations + counts.device_frees, "call"), " of the device (",
                  FormatCount(counts.device_allocations), " that gave memory, ", FormatCount(counts.device_frees),
                  " that took it back); peak ", FormatBytes(counts.peak_allocated_bytes), " of ",
                  FormatBytes(counts.peak_reserved_bytes), " reserved; not freed ",
                  FormatBytes(counts.allocated_bytes));
  if (counts.passed_allocations > 0) {
    absl::StrAppend(&out, "; passed to the driver ", FormatCounted(counts.passed_allocations, "allocation"));
  }
  if (counts.has_ended == 0) absl::StrAppend(&out, "; it was killed: calls and bytes as of some requests earlier");
  return absl::StrCat(out, "\n");
}

}  // namespace

std::vector<ServedProcess> ReadServed(const std::string& folder) {
  std::vector<ServedProcess> out;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!absl::StartsWith(name, kPrefix)) continue;
    const std::optional<serve::ServedCounts> counts = CountsIn(entry.path());
    if (counts.has_value() && !IsIdle(*counts)) out.push_back({name.substr(sizeof(kPrefix) - 1), *counts});
  }
  std::sort(out.begin(), out.end(), [](const ServedProcess& a, const ServedProcess& b) {
    return a.process.size() != b.process.size() ? a.process.size() < b.process.size() : a.process < b.process;
  });
  return out;
}

std::string ToText(const std::vector<ServedProcess>& served) {
  if (served.empty())
    return "ashlar: nothing was served: no process asked for device memory by calls that are served\n";
  std::string out;
  for (const ServedProcess& process : served) absl::StrAppend(&out, LineOf(process));
  return out;
}

namespace {

void Say(const std::string& text) {
  ProgressLine::End();
  std::fputs(text.c_str(), stderr);
}

// Keeps the history, and explains a request that failed.
int FinishRecord(const UnderFlags& flags, int code, const RunResults& results) {
  const ProcessRun* run = ToExplain(results);
  const std::string output =
      !flags.output.empty() ? flags.output : absl::StrCat(kUsualHistory, run == nullptr ? "" : EndingOf(*run));
  const std::vector<std::string> not_kept = NotKept(results);
  for (const std::string& line : not_kept) Say(absl::StrCat("ashlar: ", line, "\n"));
  const absl::StatusOr<std::string> kept = KeepResults(results, output);
  if (!kept.ok()) {
    if (not_kept.empty() || !absl::IsNotFound(kept.status())) Fail(code, kept.status());
    return code == kOk && !absl::IsNotFound(kept.status()) ? kUnreadable : code;
  }
  for (const std::string& file : results.unreadable) Say(absl::StrCat("ashlar: ", file, "\n"));
  for (const ProcessRun& of : results.runs) {
    if (const std::string whose = OwnersLine(of); !whose.empty()) {
      Say(absl::StrCat("ashlar: device memory by who asked for it, ", whose, "\n"));
    }
  }
  if (run->OutOfMemory() > 0) {
    ProgressLine line;
    const absl::StatusOr<answers::Explanation> explanation = ExplainProcess(*run, ProcessMemory{}, line.Shower());
    if (explanation.ok()) Say(absl::StrCat(run->Name(), ": ", report::ToText(*explanation)));
    if (!explanation.ok()) Fail(code, explanation.status());
  }
  Say(absl::StrCat("ashlar: the history is in ", *kept, "; see it with: ashlar explain ", *kept,
                   *kept == output && results.runs.size() > 1 ? "/FILE" : "", "\n"));
  return code;
}

bool IsOverHollow() {
  const char* run = std::getenv("ASHLAR_HOLLOW_RUN");
  return run != nullptr && *run != '\0';
}

FoundProgram Find(const UnderFlags& flags) {
  const Under under = !flags.serves ? Under::kNothing : IsOverHollow() ? Under::kHollow : Under::kLibrary;
  return FindProgram(flags.program.front(), under);
}

// Of the libraries the recorder stands above: it sees what the program asks for, the other one serves that.
absl::StatusOr<std::map<std::string, std::string>> EnvironmentOf(const UnderFlags& flags, const std::string& folder) {
  std::map<std::string, std::string> out;
  std::string preloaded;
  if (flags.records) {
    const absl::StatusOr<std::string> python = FindPythonFolder();
    if (!python.ok()) return python.status();
    out["ASHLAR_RECORD"] = folder;
    out["PYTHONPATH"] = Prepended("PYTHONPATH", *python);
    preloaded = FindRecordLibrary();
    if (flags.history.has_value()) out["ASHLAR_HISTORY"] = absl::StrCat(*flags.history);
    PutNames(flags.names, out);
  }
  if (flags.serves) {
    const absl::StatusOr<std::string> library = FindServeLibrary();
    if (!library.ok()) return library.status();
    out["ASHLAR_SERVED"] = folder;
    preloaded = Preloaded(preloaded, *library);
    if (flags.conf.has_value()) out["ASHLAR_CONF"] = *flags.conf;
  }
  if (!preloaded.empty()) out["LD_PRELOAD"] = Prepended("LD_PRELOAD", preloaded);
  return out;
}

}  // namespace

int RunUnder(const UnderFlags& flags) {
  if (absl::Status status = CheckNames(flags.names); !status.ok()) return Fail(kUsage, status);
  if (absl::Status status = NeedsProgram(flags.command, flags.program); !status.ok()) return Fail(kUsage, status);
  const FoundProgram found = Find(flags);
  if (!found.why_not.empty()) return Fail(found.exit_code, absl::InvalidArgumentError(found.why_not));
  const absl::StatusOr<std::unique_ptr<RunFolder>> folder = RunFolder::Make();
  if (!folder.ok()) return Fail(kUnreadable, folder.status());
  SignalRelay relay((*folder)->path());
  absl::StatusOr<std::map<std::string, std::string>> environment = EnvironmentOf(flags, (*folder)->path());
  if (!environment.ok()) return Fail(kUnreadable, environment.status());
  const absl::StatusOr<int> code = RunProgram({found.path, flags.program, *std::move(environment)}, **folder, relay);
  if (!code.ok()) return Fail(kUnreadable, code.status());
  if (flags.serves) Say(ToText(ReadServed((*folder)->path())));
  return flags.records ? FinishRecord(flags, *code, ReadResults((*folder)->path())) : *code;
}

void AddRecord(CommandLine& line, std::vector<std::string> program) {
  Command app = line.AddCommand("record", "run a program and keep its memory history");
  app.Example("ashlar record -o run.pickle -- python train.py");
  auto flags = std::make_shared<UnderFlags>();
  flags->command = "record";
  flags->program = std::move(program);
  app.TakesProgram(flags->program);
  flags->records = true;
  app.Add("--history", flags->history, "events that PyTorch records at most (default 1,000,000)");
  AddNamesFlags(app, flags->names);
  app.Add("-o,--output", flags->output,
          absl::StrCat("a file of one process, a folder of several (default ", kUsualHistory, ".pickle of PyTorch, ",
                       kUsualHistory, ".ashlar of a native program)"))
      .Takes("FILE")
      .NotEmpty();
  app.OnRun([flags] { return RunUnder(*flags); });
}

namespace {

int RunUnderChecked(const UnderFlags& flags) {
  if (!flags.records && !flags.serves) {
    return Fail(kUsage, absl::InvalidArgumentError("run-under: give --record, --serve or both"));
  }
  if (flags.conf.has_value() && !flags.serves) {
    return Fail(kUsage, absl::InvalidArgumentError("run-under: --conf is of --serve, which is not given"));
  }
  if (flags.conf.has_value()) {
    const absl::StatusOr<policy::Options> options =
        policy::ParseConf(*flags.conf, policy::Compat::kTorch210, policy::Keys::kAshlar);
    if (!options.ok()) return Fail(kUsage, OfFlag("--conf", options.status()));
    if (options->borrow_across_streams) {
      return Fail(kUsage,
                  absl::InvalidArgumentError("run-under: --conf: borrow_across_streams is for programs that name "
                                             "the stream of each request: leave it out"));
    }
  }
  if (!flags.output.empty() && !flags.records) {
    return Fail(kUsage, absl::InvalidArgumentError("run-under: -o is of --record, which is not given"));
  }
  return RunUnder(flags);
}

}  // namespace

void AddRunUnder(CommandLine& line, std::vector<std::string> program) {
  Command app = line.AddCommand("run-under", "run a program on our allocator, unchanged");
  app.Example("ashlar run-under --serve -- ./simulate");
  auto flags = std::make_shared<UnderFlags>();
  flags->command = "run-under --serve";
  flags->program = std::move(program);
  app.TakesProgram(flags->program);
  app.Add("--serve", flags->serves, "cudaMalloc, cudaFree and their like are served from a cache");
  app.Add("--conf", flags->conf, "settings of the cache (ashlar guide settings), instead of ASHLAR_CONF").Takes("CONF");
  app.Add("--record", flags->records, "keeps the history of what the program allocates, as ashlar record does");
  app.Add("-o,--output", flags->output,
          absl::StrCat("of --record: a file of one process, a folder of several (default ", kUsualHistory, ".ashlar)"))
      .Takes("FILE")
      .NotEmpty();
  app.OnRun([flags] { return RunUnderChecked(*flags); });
}

}  // namespace ashlar::cli
