#include "analyzer/cli/report.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/base/units.h"
#include "analyzer/answers/explain.h"
#include "analyzer/answers/explain_together.h"
#include "analyzer/cli/command.h"
#include "analyzer/cli/load_trace.h"
#include "analyzer/cli/memory_end.h"
#include "analyzer/cli/page_template.h"
#include "analyzer/cli/progress_line.h"
#include "analyzer/cli/size_flag.h"
#include "analyzer/readers/formats.h"
#include "analyzer/report/page/page.h"
#include "analyzer/report/printable.h"

namespace ashlar::cli {
namespace {

struct ReportFlags {
  std::vector<std::string> inputs;
  std::string output;
  std::string device_used;
  ReplayFlags replay;
};

// "dumps/rank3.pickle" is of rank 3, "rank_12.pickle.gz" of rank 12.
std::optional<int> RankInName(const std::string& name) {
  const std::string lower = absl::AsciiStrToLower(name);
  const std::size_t found = lower.rfind("rank");
  if (found == std::string::npos) return std::nullopt;
  std::size_t at = found + 4;
  if (at < lower.size() && (lower[at] == '_' || lower[at] == '-')) ++at;
  std::optional<int> rank;
  for (; at < lower.size() && absl::ascii_isdigit(static_cast<unsigned char>(lower[at])); ++at) {
    const int digit = lower[at] - '0';
    if (rank.value_or(0) > 99'999) return std::nullopt;
    rank = rank.value_or(0) * 10 + digit;
  }
  return rank;
}

std::string ShownName(const std::string& input) {
  if (input == "-") return "standard input";
  return input.substr(input.find_last_of('/') + 1);
}

// The memory of one page is shared by its inputs.
answers::PictureLimits LimitsFor(std::size_t inputs) {
  answers::PictureLimits out;
  if (inputs < 2) return out;
  out.observed_moments = out.observed_moments / inputs + 1;
  out.what_if_moments = out.what_if_moments / inputs + 1;
  return out;
}

// Whether a text may belong to the failure of another input.
absl::StatusOr<bool> HasMessages(const ReportFlags& flags, const answers::ReplaySettings& settings) {
  for (const std::string& input : flags.inputs) {
    if (input == "-") return true;
    const absl::StatusOr<readers::InputBytes> bytes = LoadBytes(input, settings);
    if (!bytes.ok()) return bytes.status();
    const readers::Holds holds = readers::FormatOf(*bytes).holds;
    if (holds == readers::Holds::kMessages || holds == readers::Holds::kNothing) return true;
  }
  return false;
}

class ReportWriter {
 public:
  ReportWriter(const ReportFlags& flags, answers::ExplainOptions options)
      : flags_(flags), options_(std::move(options)), page_(PageTemplate()) {}

  // Inputs that have nothing to say of one another are taken one by one, so that only one of them is in memory.
  absl::Status AddInputs() {
    bool is_together = flags_.inputs.size() > 1;
    if (is_together) {
      const absl::StatusOr<bool> has_messages = HasMessages(flags_, options_.replay);
      if (!has_messages.ok()) return has_messages.status();
      is_together = *has_messages;
    }
    if (is_together) return Add(flags_.inputs);
    for (const std::string& input : flags_.inputs) {
      if (absl::Status status = Add({input}); !status.ok()) return status;
      KeepOfMemory(0);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Finish() && {
    std::vector<std::string> names;
    for (const std::string& input : flags_.inputs) names.push_back(ShownName(input));
    std::string title = names.front();
    if (names.size() > 1) absl::StrAppend(&title, " and ", names.size() - 1, " more");
    return std::move(page_).Finish(
        {.title = std::move(title),
         .made_by = absl::StrCat("ashlar ", ASHLAR_VERSION),
         .command = absl::StrCat("ashlar report ", absl::StrJoin(names, " "), " -o ", ShownName(flags_.output))});
  }

 private:
  absl::Status Add(const std::vector<std::string>& files) {
    std::vector<answers::NamedInput> inputs;
    for (const std::string& file : files) {
      absl::StatusOr<answers::Input> input = LoadToExplain(file, flags_.replay, options_.replay);
      if (!input.ok()) return input.status();
      inputs.push_back({file, *std::move(input)});
    }
    answers::ExplainOptions options = options_;
    if (inputs.size() == 1) options.replay = NamingProgress(files.front(), std::move(options.replay));
    const absl::StatusOr<std::vector<answers::Explanation>> explanations = answers::ExplainTogether(inputs, options);
    if (!explanations.ok()) return explanations.status();
    inputs.clear();
    for (const answers::Explanation& explanation : *explanations) {
      answers::Tell(options.replay, "packing");
      const std::string name = ShownName(explanation.name);
      page_.AddInput({.name = name, .rank = RankInName(name)}, explanation);
    }
    return absl::OkStatus();
  }

  const ReportFlags& flags_;
  answers::ExplainOptions options_;
  report::PageWriter page_;
};

int WritePage(const ReportFlags& flags, const std::string& html) {
  if (flags.output == "-") return Print(html) ? kOk : kUnreadable;
  if (absl::Status status = WriteFile(flags.output, html); !status.ok()) return Fail(kUnreadable, status);
  ProgressLine::End();
  return Print(absl::StrCat(report::Printable(flags.output), "  ", FormatBytes(html.size()), "\n")) ? kOk : kUnreadable;
}

int RunReportCommand(const ReportFlags& flags) {
  absl::StatusOr<answers::ReplaySettings> settings = ReadReplayFlags(flags.replay);
  if (!settings.ok()) return Fail(kUsage, settings.status());
  answers::ExplainOptions options{.replay = *std::move(settings), .picture = LimitsFor(flags.inputs.size())};
  if (absl::Status status = ReadSize("--device-used", flags.device_used, {.begin_bytes = 0}, options.device_used_bytes);
      !status.ok()) {
    return Fail(kUsage, status);
  }
  ProgressLine line;
  options.replay.progress = line.Shower();
  ReportWriter writer(flags, std::move(options));
  if (absl::Status status = writer.AddInputs(); !status.ok()) return FailLoad(status);
  const absl::StatusOr<std::string> html = std::move(writer).Finish();
  if (!html.ok()) return Fail(kUnreadable, html.status());
  line.Show(absl::StrCat("writing ", flags.output));
  return WritePage(flags, *html);
}

}  // namespace

void AddReport(CommandLine& line) {
  Command app = line.AddCommand("report", "a page to look at: memory over time, the segments, what-ifs, causes");
  app.Example("ashlar report snapshot.pickle -o report.html");
  auto flags = std::make_shared<ReportFlags>();
  app.Add(
         "input", flags->inputs,
         "files, or - for standard input: ranks stand side by side; a log and the snapshot of the same failure are one")
      .Required();
  app.Add("-o,--output", flags->output, "the HTML file, or - for standard output").Required().NotEmpty();
  app.Add("--device-used", flags->device_used,
          "memory in use on the device by all processes, as nvidia-smi shows it, such as 14.2GiB");
  AddReplayFlags(app, flags->replay);
  app.OnRun([flags] { return RunReportCommand(*flags); });
}

}  // namespace ashlar::cli
