#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/formats/formats.h"
#include "analyzer/formats/input_file.h"
#include "commands/commands.h"
#include "commands/diff/diff.h"
#include "commands/explain/explain.h"
#include "commands/explain/explain_together.h"
#include "commands/explain/page/page.h"
#include "commands/explain/page/page_file.h"
#include "commands/explain/page/page_template.h"
#include "commands/shared/json_values.h"
#include "commands/shared/layout.h"
#include "commands/shared/traced_run.h"
#include "console/command.h"
#include "console/load_trace.h"
#include "console/memory_end.h"
#include "console/output_file.h"
#include "console/progress_line.h"

namespace ashlar::cli {
namespace {

struct ReportFlags {
  std::vector<std::string> inputs;
  std::string output;
  std::string device_used;
  ReplayFlags replay;
};

using SharedBytes = std::shared_ptr<const formats::InputBytes>;

// The bytes of the inputs. A pipe and standard input give theirs once: they are kept, and so is a single input.
class ReportBytes {
 public:
  explicit ReportBytes(const std::vector<std::string>& inputs) : is_single_(inputs.size() == 1) {}

  absl::StatusOr<SharedBytes> Of(const std::string& input, const answers::ReplaySettings& settings) {
    if (const auto known = kept_.find(input); known != kept_.end()) return known->second;
    absl::StatusOr<formats::InputBytes> bytes = LoadBytes(input, settings);
    if (!bytes.ok()) return bytes.status();
    auto out = std::make_shared<const formats::InputBytes>(*std::move(bytes));
    std::error_code error;
    if (is_single_ || input == "-" || !std::filesystem::is_regular_file(input, error)) kept_[input] = out;
    return out;
  }
  void Forget() { kept_.clear(); }

 private:
  bool is_single_;
  std::map<std::string, SharedBytes> kept_;
};

// The answer of `ashlar fleet --json`, which has a page of its own.
bool IsFleet(absl::string_view bytes) {
  return formats::Sniff(bytes) == formats::InputKind::kJson && report::HasJsonKeys(bytes, {"ranks", "heat"});
}

class ReportWriter {
 public:
  ReportWriter(const ReportFlags& flags, answers::ExplainSettings options)
      : flags_(flags), options_(std::move(options)), bytes_(flags.inputs), page_(PageTemplate()) {}

  // Inputs that have nothing to say of one another are taken one by one, so that only one of them is in memory.
  absl::Status AddInputs() {
    bool is_together = flags_.inputs.size() > 1;
    if (!is_together) {
      const absl::StatusOr<bool> is_fleet = TakeFleet(flags_.inputs.front());
      if (!is_fleet.ok()) return is_fleet.status();
      if (*is_fleet) return absl::OkStatus();
    } else {
      const absl::StatusOr<bool> has_messages = HasMessages();
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
    report::PageFacts facts{.title = report::PageTitle(flags_.inputs)};
    if (absl::Status status = AddDiff(facts); !status.ok()) return status;
    facts.fleet = std::move(fleet_);
    return FinishPage(std::move(page_), std::move(facts));
  }

 private:
  // Whether a text may belong to the failure of another input.
  absl::StatusOr<bool> HasMessages() {
    for (const std::string& input : flags_.inputs) {
      const absl::StatusOr<SharedBytes> bytes = bytes_.Of(input, options_.replay);
      if (!bytes.ok()) return bytes.status();
      const formats::Holds holds = formats::FormatOf(**bytes).holds;
      if (holds == formats::Holds::kMessages || holds == formats::Holds::kNothing) return true;
    }
    return false;
  }

  absl::StatusOr<answers::Input> Load(const std::string& file) {
    const absl::StatusOr<SharedBytes> bytes = bytes_.Of(file, options_.replay);
    if (!bytes.ok()) return bytes.status();
    if (flags_.inputs.size() == 1) {
      bytes_.Forget();
    } else if (IsFleet(**bytes)) {
      return OfInput(file, absl::OutOfRangeError("the answer of ashlar fleet has a page of its own: name it alone"));
    }
    return ToExplain(file, **bytes, flags_.replay, options_.replay);
  }

  absl::Status Add(const std::vector<std::string>& files) {
    std::vector<answers::NamedInput> inputs;
    for (const std::string& file : files) {
      absl::StatusOr<answers::Input> input = Load(file);
      if (!input.ok()) return input.status();
      inputs.push_back({file, *std::move(input)});
    }
    answers::ExplainSettings options = options_;
    if (inputs.size() == 1) options.replay = NamingProgress(files.front(), std::move(options.replay));
    const absl::StatusOr<std::vector<answers::Explanation>> explanations = answers::ExplainTogether(inputs, options);
    if (!explanations.ok()) return explanations.status();
    inputs.clear();
    for (const answers::Explanation& explanation : *explanations) {
      answers::Tell(options.replay, "packing");
      page_.AddInput(report::PageInputOf(explanation.name), explanation);
      traces_ += explanation.picture != nullptr ? 1 : 0;
    }
    return absl::OkStatus();
  }

  // What grew between two traces: what `ashlar diff` says.
  absl::Status AddDiff(report::PageFacts& facts) {
    if (traces_ != 2 || flags_.inputs.size() != 2) return absl::OkStatus();
    answers::Tell(options_.replay, "comparing the two");
    std::vector<answers::TracedRun> runs;
    for (const std::string& input : flags_.inputs) {
      const absl::StatusOr<answers::Input> loaded = Load(input);
      if (!loaded.ok()) return loaded.status();
      absl::StatusOr<answers::TracedRun> run = answers::TraceInput(*loaded, options_.replay);
      if (!run.ok()) return OfInput(input, run.status());
      runs.push_back(*std::move(run));
    }
    const absl::StatusOr<answers::DiffAnswer> diff =
        answers::MakeDiff(flags_.inputs[0], runs[0], flags_.inputs[1], runs[1], answers::DiffMoment::kPeak);
    if (!diff.ok()) return diff.status();
    facts.diff = report::ToJson(*diff);
    return absl::OkStatus();
  }

  absl::StatusOr<bool> TakeFleet(const std::string& input) {
    const absl::StatusOr<SharedBytes> bytes = bytes_.Of(input, options_.replay);
    if (!bytes.ok()) return bytes.status();
    if (!IsFleet(**bytes)) return false;
    fleet_ = std::string((*bytes)->view());
    return true;
  }

  const ReportFlags& flags_;
  answers::ExplainSettings options_;
  ReportBytes bytes_;
  report::PageWriter page_;
  std::size_t traces_ = 0;  // of the inputs
  std::string fleet_;
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
  answers::ExplainSettings options{.replay = *std::move(settings),
                                   .picture = report::PictureLimitsOf(flags.inputs.size())};
  options.other_device = answers::TakeOtherDevice(options.replay);
  if (absl::Status status = ReadSize("--device-used", flags.device_used, InUseSizes(), options.device_used_bytes);
      !status.ok()) {
    return Fail(kUsage, status);
  }
  if (absl::Status status = NoInputIsWritten(flags.inputs, {{"-o", flags.output}}); !status.ok()) {
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
  app.Add("-o,--output", flags->output, "the HTML file, or - for standard output").Takes("FILE").Required().NotEmpty();
  app.Add("--device-used", flags->device_used,
          "memory in use on the device by all processes, as nvidia-smi shows it, such as 14.2GiB")
      .Takes("SIZE");
  AddReplayFlags(app, flags->replay);
  app.OnRun([flags] { return RunReportCommand(*flags); });
}

}  // namespace ashlar::cli
