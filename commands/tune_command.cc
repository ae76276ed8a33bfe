#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "analyzer/tuner/look.h"
#include "commands/commands.h"
#include "console/command.h"
#include "console/load_trace.h"

namespace ashlar::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

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

OrderedJson JsonOf(const tuner::Figures& figures) {
  return {{"peak_reserved_bytes", figures.peak_reserved_bytes},
          {"failures", figures.failures},
          {"retries", figures.retries}};
}

OrderedJson JsonOf(const std::optional<tuner::Tried>& tried) {
  if (!tried.has_value()) return nullptr;
  return {{"conf", tried->conf}, {"figures", JsonOf(tried->figures)}};
}

std::string ToJson(const tuner::Look& look, double least_gain) {
  const bool has_replayed = look.steps > 0;
  const auto figures = [&](const tuner::Figures& of) { return has_replayed ? JsonOf(of) : OrderedJson(nullptr); };
  const OrderedJson out = {{"finding", NameOf(look.finding)},
                           {"reason", look.reason},
                           {"steps", look.steps},
                           {"conf", look.conf},
                           {"least_reserved_bytes", look.least_bytes},
                           {"now", figures(look.now)},
                           {"live", JsonOf(look.live)},
                           {"start_now", figures(look.start_now)},
                           {"start", JsonOf(look.start)},
                           {"compared", look.compared.has_value() ? JsonOf(*look.compared) : OrderedJson(nullptr)},
                           {"gains_over_compared", look.compared.has_value()
                                                       ? OrderedJson(tuner::Gains(look.now, *look.compared, least_gain))
                                                       : OrderedJson(nullptr)}};
  return out.dump(2, ' ', /*ensure_ascii=*/true, OrderedJson::error_handler_t::replace) + "\n";
}

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
  if (!WriteJson(flags.json_to, [&] { return ToJson(*look, flags.least_gain); })) return kUnreadable;
  return Print(flags.json ? ToJson(*look, flags.least_gain) : absl::StrCat(look->reason, "\n")) ? kOk : kUnreadable;
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
