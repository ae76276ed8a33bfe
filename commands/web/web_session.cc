#include "commands/web/web_session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "allocator/base/units.h"
#include "allocator/policy/options.h"
#include "analyzer/formats/formats.h"
#include "analyzer/formats/input_file.h"
#include "analyzer/formats/unpack.h"
#include "commands/diff/diff.h"
#include "commands/explain/explain_report.h"
#include "commands/explain/page/page.h"
#include "commands/shared/input.h"
#include "commands/shared/layout.h"
#include "commands/sweep/sweep.h"

namespace ashlar::answers {
namespace {

// As the program holds where memory allows it.
constexpr std::uint64_t kWebEvents = 20'000'000;

absl::Status OfKey(absl::string_view key, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(key, ": ", status.message()));
}

absl::Status OfWebInput(const std::string& name, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(name, ": ", status.message()));
}

absl::Status SetBytes(absl::string_view key, const std::string& value, std::uint64_t begin_bytes,
                      std::optional<std::uint64_t>& out) {
  out = std::nullopt;
  if (value.empty()) return absl::OkStatus();
  const absl::StatusOr<std::uint64_t> bytes = ParseBytes(value);
  if (!bytes.ok()) return OfKey(key, bytes.status());
  if (*bytes < begin_bytes || *bytes > kMostCapacityBytes) {
    return absl::InvalidArgumentError(absl::StrCat(key, ": '", value, "' is not between ", FormatBytes(begin_bytes),
                                                   " and ", FormatBytes(kMostCapacityBytes)));
  }
  out = *bytes;
  return absl::OkStatus();
}

template <typename Number>
absl::Status SetNumber(absl::string_view key, const std::string& value, std::optional<Number>& out) {
  out = std::nullopt;
  Number number{};
  if (value.empty()) return absl::OkStatus();
  if (!absl::SimpleAtoi(value, &number) || number < 0) {
    return absl::InvalidArgumentError(absl::StrCat(key, ": '", value, "' is no whole number of 0 or more"));
  }
  out = number;
  return absl::OkStatus();
}

absl::Status SetConf(const std::string& value, replay::ReplayOverrides& out) {
  out.conf = value.empty() ? std::nullopt : std::optional(value);
  const absl::StatusOr<policy::Options> options =
      policy::ParseConf(value, out.compat.value_or(policy::Compat::kTorch210), policy::Keys::kAshlar);
  return options.ok() ? absl::OkStatus() : OfKey("conf", options.status());
}

absl::Status SetCompat(const std::string& value, replay::ReplayOverrides& out) {
  out.compat = std::nullopt;
  if (value.empty()) return absl::OkStatus();
  const absl::StatusOr<policy::Compat> compat = policy::ParseCompat(value);
  if (!compat.ok()) return OfKey("compat", compat.status());
  out.compat = *compat;
  return absl::OkStatus();
}

std::vector<std::string> ConfsOf(const std::string& value) {
  std::vector<std::string> out;
  for (const absl::string_view conf : absl::StrSplit(value, ';', absl::SkipWhitespace())) {
    out.emplace_back(absl::StripAsciiWhitespace(conf));
  }
  return out;
}

// The bytes that a reader gets: unpacked, and of an unknown binary file the beginning, which says what it is.
absl::StatusOr<absl::string_view> OpenHeld(HeldBytes& bytes, std::size_t size, formats::InputBytes& unpacked) {
  const absl::string_view stored(bytes.get(), size);
  if (!formats::IsPacked(stored)) {
    const absl::string_view head = stored.substr(0, formats::kHeadBytes);
    return formats::IsUnknownBinary(head) ? head : stored;
  }
  absl::StatusOr<formats::InputBytes> out =
      formats::UnpackInput(stored, formats::OpenRules{.is_enough = formats::IsUnknownBinary});
  if (!out.ok()) return out.status();
  bytes = nullptr;
  unpacked = *std::move(out);
  return unpacked.view();
}

bool IsTrace(const Input& input) { return input.snapshot() != nullptr || input.requests() != nullptr; }

}  // namespace

absl::Status WebSession::Set(absl::string_view key, const std::string& value) {
  if (key != "pictures" && key != "template" && key != "confs") explanations_.clear();
  if (key == "capacity") return SetBytes(key, value, 1, settings_.capacity_bytes);
  if (key == "device-used") return SetBytes(key, value, 0, device_used_bytes_);
  if (key == "device") return SetNumber(key, value, settings_.device);
  if (key == "max-events") return SetNumber(key, value, max_events_);
  if (key == "conf") return SetConf(value, settings_.overrides);
  if (key == "compat") return SetCompat(value, settings_.overrides);
  if (key == "confs") {
    confs_ = ConfsOf(value);
  } else if (key == "pictures") {
    with_pictures_ = value == "1";
  } else if (key == "template") {
    template_ = value;
  } else {
    return absl::InvalidArgumentError(absl::StrCat("there is no setting '", key, "'"));
  }
  return absl::OkStatus();
}

absl::Status WebSession::Read(const std::string& name, HeldBytes bytes, std::size_t size) {
  explanations_.clear();
  Tell(settings_, absl::StrCat("reading ", name));
  formats::InputBytes unpacked;
  const absl::StatusOr<absl::string_view> view = OpenHeld(bytes, size, unpacked);
  if (!view.ok()) return OfWebInput(name, view.status());
  InputRule rule = ExplainedInputs();
  rule.limits.max_events = max_events_.value_or(kWebEvents);
  absl::StatusOr<Input> input = LoadInput(*view, rule);
  if (!input.ok()) return OfWebInput(name, input.status());
  inputs_.push_back({name, *std::move(input)});
  return absl::OkStatus();
}

absl::StatusOr<std::string> WebSession::Answer(absl::string_view what) {
  if (inputs_.empty()) return absl::InvalidArgumentError("no input was read");
  if (what == "traces") return absl::StrCat(CountTraces());
  if (what == "diff" || what == "diff-json") return PrintDiff(what == "diff-json");
  if (what == "sweep" || what == "sweep-json") return PrintSweep(what == "sweep-json");
  const bool is_page = what == "page";
  if (!is_page && what != "text" && what != "json" && what != "markdown") {
    return absl::InvalidArgumentError(absl::StrCat("there is no answer '", what, "'"));
  }
  if (absl::Status status = Explain(is_page || with_pictures_); !status.ok()) return status;
  if (is_page) return PrintPage();
  if (what == "markdown") return report::ToMarkdown(explanations_);
  return report::PrintExplanations(explanations_, what == "json", inputs_.size() > 1);
}

absl::Status WebSession::Explain(bool with_pictures) {
  if (!explanations_.empty() && (have_pictures_ || !with_pictures)) return absl::OkStatus();
  explanations_.clear();
  ExplainSettings settings{.replay = settings_, .device_used_bytes = device_used_bytes_};
  if (with_pictures) settings.picture = report::PictureLimitsOf(inputs_.size());
  absl::StatusOr<std::vector<Explanation>> explanations = ExplainTogether(inputs_, settings);
  if (!explanations.ok()) return explanations.status();
  explanations_ = *std::move(explanations);
  have_pictures_ = with_pictures;
  return absl::OkStatus();
}

absl::StatusOr<std::string> WebSession::PrintPage() {
  report::PageWriter writer(template_);
  std::vector<std::string> names;
  for (const NamedInput& input : inputs_) names.push_back(input.name);
  for (const Explanation& explanation : explanations_) {
    Tell(settings_, "packing");
    writer.AddInput(report::PageInputOf(explanation.name), explanation);
  }
  report::PageFacts facts{
      .title = report::PageTitle(names), .made_by = absl::StrCat("ashlar ", ASHLAR_VERSION), .command = "in a browser"};
  if (inputs_.size() == 2 && CountTraces() == 2) {
    absl::StatusOr<std::string> diff = PrintDiff(/*as_json=*/true);
    if (!diff.ok()) return diff.status();
    facts.diff = *std::move(diff);
  }
  return std::move(writer).Finish(facts);
}

std::size_t WebSession::CountTraces() const {
  return static_cast<std::size_t>(
      std::count_if(inputs_.begin(), inputs_.end(), [](const NamedInput& input) { return IsTrace(input.input); }));
}

absl::StatusOr<TracedRun> WebSession::Trace(const NamedInput& input) const {
  absl::StatusOr<TracedRun> run = TraceInput(input.input, settings_);
  if (!run.ok()) return OfWebInput(input.name, run.status());
  return run;
}

absl::StatusOr<std::string> WebSession::PrintDiff(bool as_json) {
  if (inputs_.size() != 2 || CountTraces() != 2) {
    return absl::InvalidArgumentError("two snapshots or traces are compared, and no more or fewer");
  }
  const absl::StatusOr<TracedRun> a = Trace(inputs_[0]);
  if (!a.ok()) return a.status();
  const absl::StatusOr<TracedRun> b = Trace(inputs_[1]);
  if (!b.ok()) return b.status();
  Tell(settings_, "comparing the two");
  const absl::StatusOr<DiffAnswer> diff = MakeDiff(inputs_[0].name, *a, inputs_[1].name, *b, DiffMoment::kPeak);
  if (!diff.ok()) return diff.status();
  return as_json ? report::ToJson(*diff) : report::Fitted(report::ToText(*diff), {});
}

absl::StatusOr<std::string> WebSession::PrintSweep(bool as_json) {
  std::vector<WhatIfInput> inputs;
  for (const NamedInput& input : inputs_) {
    if (!IsTrace(input.input)) continue;
    absl::StatusOr<WhatIfInput> taken = SweepInputOf(input.name, input.input, settings_);
    if (!taken.ok()) return OfWebInput(input.name, taken.status());
    inputs.push_back(*std::move(taken));
  }
  if (inputs.empty()) return absl::InvalidArgumentError("a message has no events that settings could be tried on");
  SweepOptions options;
  options.confs = confs_;
  options.progress = [this](std::uint64_t replays) { Tell(settings_, absl::StrCat(FormatCount(replays), " replays")); };
  const absl::StatusOr<SweepAnswer> answer = Sweep(std::move(inputs), options);
  if (!answer.ok()) return answer.status();
  return as_json ? report::ToJson(*answer) : report::Fitted(report::ToText(*answer), {});
}

}  // namespace ashlar::answers
