#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "analyzer/tuner/look.h"
#include "commands/commands.h"
#include "commands/shared/fields.h"
#include "console/command.h"
#include "console/load_trace.h"

namespace ashlar::cli {
namespace {

struct TuneFlags {
  std::string input;
  double least_gain = 0.05;
  std::optional<std::string> compared;
  std::vector<std::string> passed_over;
  bool may_borrow = false;
  bool json = false;
  std::string json_to;
};

const char* NameOf(tuner::LookFinding finding) {
  switch (finding) {
    case tuner::LookFinding::kNoSteps:
      return "no_steps";
    case tuner::LookFinding::kNotExact:
      return "not_exact";
    case tuner::LookFinding::kNothing:
      return "nothing";
    case tuner::LookFinding::kLive:
      return "live";
    case tuner::LookFinding::kStart:
      return "start";
  }
  return "";
}

// What was asked and what was seen.
struct TuneAnswer {
  tuner::Look look;
  double least_gain = 0;
};

std::optional<tuner::Figures> IfReplayed(const TuneAnswer& answer, const tuner::Figures& figures) {
  return answer.look.steps > 0 ? std::optional(figures) : std::nullopt;
}

std::optional<bool> GainsOverCompared(const TuneAnswer& answer) {
  if (!answer.look.compared.has_value()) return std::nullopt;
  return tuner::Gains(answer.look.now, *answer.look.compared, answer.least_gain);
}

}  // namespace
}  // namespace ashlar::cli

namespace ashlar::report {

template <>
const Fields<tuner::Figures>& FieldsOf<tuner::Figures>() {
  using tuner::Figures;
  static const auto* fields = new Fields<Figures>(
      Fields<Figures>("figures")
          .Add("peak_reserved_bytes", &Figures::peak_reserved_bytes, "From the moment on when the least was reserved.")
          .Add("failures", &Figures::failures, "Requests that ended out of memory.")
          .Add("retries", &Figures::retries, "Requests for which the whole cache was returned to the device."));
  return *fields;
}

template <>
const Fields<tuner::Tried>& FieldsOf<tuner::Tried>() {
  static const auto* fields =
      new Fields<tuner::Tried>(Fields<tuner::Tried>("tried")
                                   .Add("conf", &tuner::Tried::conf, "The whole setting, as ASHLAR_CONF takes it.")
                                   .Add("figures", &tuner::Tried::figures));
  return *fields;
}

template <>
const Fields<cli::TuneAnswer>& FieldsOf<cli::TuneAnswer>() {
  using cli::TuneAnswer;
  static const auto* fields = new Fields<TuneAnswer>(
      Fields<TuneAnswer>("tune")
          .AddWord(
              "finding", [](const auto& of) { return cli::NameOf(of.look.finding); },
              WordsUpTo(tuner::LookFinding::kStart, &cli::NameOf),
              "live: the setting of that name gains enough and can be switched to; start: only one does that a "
              "program must begin with.")
          .Add(
              "reason", [](const auto& of) { return of.look.reason; }, "One line, with the numbers.")
          .Add(
              "steps", [](const auto& of) { return of.look.steps; }, "Whole ones that were replayed.")
          .Add(
              "conf", [](const auto& of) { return of.look.conf; }, "In force in them.")
          .Add("least_reserved_bytes", [](const auto& of) { return of.look.least_bytes; })
          .Add(
              "now", [](const auto& of) { return cli::IfReplayed(of, of.look.now); }, "As recorded.")
          .Add(
              "live", [](const auto& of) { return of.look.live; },
              "The best that can be switched to, from the state in which the steps began.")
          .Add(
              "start_now", [](const auto& of) { return cli::IfReplayed(of, of.look.start_now); },
              "The settings in force, from an empty allocator.")
          .Add(
              "start", [](const auto& of) { return of.look.start; }, "The best of all, from an empty allocator.")
          .Add(
              "compared", [](const auto& of) { return of.look.compared; }, "Under --compare, from the same state.")
          .Add("gains_over_compared", &cli::GainsOverCompared,
               "Whether the steps as recorded gain --least-gain over --compare."));
  return *fields;
}

}  // namespace ashlar::report

namespace ashlar::cli {

std::string TuneSchema() {
  return report::SchemaTextOf<TuneAnswer>(
      "tune",
      "The last whole steps of a recording, replayed under other settings. Null means that it was not replayed.");
}

namespace {

int RunTune(const TuneFlags& flags) {
  if (!(flags.least_gain > 0 && flags.least_gain < 1)) {
    return Fail(kUsage, absl::InvalidArgumentError(
                            absl::StrCat("--least-gain: ", flags.least_gain, " is not between 0 and 1")));
  }
  const absl::StatusOr<formats::InputBytes> bytes = LoadBytes(flags.input, {});
  if (!bytes.ok()) return Fail(kUnreadable, bytes.status());
  const absl::StatusOr<tuner::Look> look = tuner::LookAt(bytes->view(), {.least_gain = flags.least_gain,
                                                                         .may_borrow = flags.may_borrow,
                                                                         .passed_over = flags.passed_over,
                                                                         .compared_conf = flags.compared});
  if (!look.ok()) return FailInput(flags.input, look.status());
  const auto json = [&] { return report::FieldsOf<TuneAnswer>().ToJson({*look, flags.least_gain}).ToText(); };
  if (!WriteJson(flags.json_to, json)) return kUnreadable;
  return Print(flags.json ? json() : absl::StrCat(look->reason, "\n")) ? kOk : kUnreadable;
}

}  // namespace

void AddTune(CommandLine& line) {
  Command app = line.AddCommand("tune", "what a running allocator could switch to, by the last steps of its recording");
  app.Example("ashlar tune ring.ashlar");
  auto flags = std::make_shared<TuneFlags>();
  app.Add("recording", flags->input, "a recording of Ashlar's allocator, or - for standard input").Required();
  app.Add("--least-gain", flags->least_gain, "share of the peak of reserved memory that is worth it (default 0.05)");
  app.Add("--compare", flags->compared, "replay the steps under this whole setting besides");
  app.Add("--pass-over", flags->passed_over, "do not try this whole setting; may be given again");
  app.Add("--may-borrow", flags->may_borrow, "try borrow_across_streams too");
  app.Add("--json", flags->json, "print JSON (ashlar schema tune)");
  AddJsonFile(app, flags->json_to);
  app.OnRun([flags] { return RunTune(*flags); });
}

}  // namespace ashlar::cli
