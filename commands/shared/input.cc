#include "commands/shared/input.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "allocator/base/units.h"
#include "allocator/trace/request_window.h"
#include "analyzer/formats/utf8.h"
#include "analyzer/replay/recorded_window.h"
#include "commands/shared/traced_run.h"

namespace ashlar::answers {
namespace {

bool Takes(const InputRule& rule, formats::Holds holds) {
  return holds == formats::Holds::kSnapshot || holds == formats::Holds::kRequests ||
         (holds == formats::Holds::kProblem && rule.problems);
}

constexpr absl::string_view kUtf8Mark = "\xef\xbb\xbf";
constexpr std::size_t kMostUtf16Bytes = 64 * kMiB;  // which are held as UTF-8

constexpr absl::string_view kLongUtf16 =
    "this is a text of more than 64 MiB in UTF-16: make it UTF-8 first (iconv -f UTF-16 -t UTF-8)";

constexpr absl::string_view kNoMessage =
    "this text speaks of memory that ran out, but holds no message of it that is known here; give the lines around "
    "\"out of memory\" as the program printed them, or a snapshot: "
    "torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")";

absl::StatusOr<Input> LoadUnmarked(absl::string_view bytes, const InputRule& rule) {
  const formats::Format& format = formats::FormatOf(bytes);
  if (rule.fits) {
    if (absl::Status status = rule.fits(format.kind); !status.ok()) return status;
  }
  if (Takes(rule, format.holds)) {
    formats::ReadContent content = format.read(bytes, rule.limits);
    if (!content.ok()) return content.status();
    return Input(*std::move(content));
  }
  if (rule.messages && format.kind != formats::InputKind::kBinary) {
    std::vector<formats::OomMessage> found = formats::FindOomMessages(bytes);
    if (!found.empty()) return Input(std::make_unique<const formats::Content>(std::move(found)));
  }
  if (rule.messages && format.holds == formats::Holds::kMessages) {
    std::optional<formats::OomMessage> own = formats::FindInOwnWords(bytes);
    if (!own.has_value()) return absl::InvalidArgumentError(kNoMessage);
    return Input(std::make_unique<const formats::Content>(std::vector{*std::move(own)}));
  }
  return absl::InvalidArgumentError(absl::StrCat("this is ", format.name, ", not ", rule.names));
}

}  // namespace

InputRule ExplainedInputs() {
  return {.messages = true,
          .names =
              "a PyTorch memory snapshot, a request trace or a text with an out-of-memory message; record a snapshot "
              "with torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")"};
}

absl::StatusOr<Input> LoadInput(absl::string_view bytes, const InputRule& rule) {
  if (absl::ConsumePrefix(&bytes, kUtf8Mark)) return LoadUnmarked(bytes, rule);
  if (bytes.size() > kMostUtf16Bytes && formats::HasByteOrderMark(bytes)) return absl::InvalidArgumentError(kLongUtf16);
  const std::optional<std::string> text = formats::WithoutByteOrderMark(bytes);
  return LoadUnmarked(text.has_value() ? *text : bytes, rule);
}

namespace {

using timeline::AskedWindow;
using timeline::WindowEnd;
using trace::Op;

absl::Status Wrong(const AskedWindow& window, absl::string_view why) {
  return absl::OutOfRangeError(absl::StrCat("--window ", window.text, ": ", why));
}

absl::StatusOr<std::size_t> PositionOf(const WindowEnd& end, std::size_t count, const AskedWindow& window) {
  if (end.kind == WindowEnd::Kind::kTime) {
    return Wrong(window, "a request trace has no times: give a request or a share (20%)");
  }
  const auto all = static_cast<double>(count);
  const double position = end.kind == WindowEnd::Kind::kShare ? std::floor(end.value * all) : end.value;
  if (position > all) return Wrong(window, absl::StrCat("this trace has ", FormatCount(count), " requests"));
  return static_cast<std::size_t>(position);
}

Input Holding(formats::Content content) { return Input(std::make_unique<const formats::Content>(std::move(content))); }

}  // namespace

absl::StatusOr<trace::RequestTrace> CutRequests(const trace::RequestTrace& requests, const AskedWindow& window) {
  const std::vector<Op>& all = requests.requests;
  std::size_t from = 0, to = all.size();
  if (window.from.has_value()) {
    const absl::StatusOr<std::size_t> at = PositionOf(*window.from, all.size(), window);
    if (!at.ok()) return at.status();
    from = *at;
  }
  if (window.to.has_value()) {
    const absl::StatusOr<std::size_t> at = PositionOf(*window.to, all.size(), window);
    if (!at.ok()) return at.status();
    to = *at;
  }
  if (from >= to) return Wrong(window, "no request lies between the two ends");
  trace::LiveRequests before;
  for (std::size_t i = 0; i < from; ++i) before.Add(all[i]);
  trace::RequestTrace out;
  out.id_count = requests.id_count;
  out.pools = requests.pools;
  out.source = requests.source;
  out.notes = requests.notes;
  out.requests = before.InOrder();
  out.requests.insert(out.requests.end(), all.begin() + static_cast<std::ptrdiff_t>(from),
                      all.begin() + static_cast<std::ptrdiff_t>(to));
  return out;
}

absl::StatusOr<Input> CutInput(Input input, const AskedWindow& window, std::optional<int> device) {
  if (window.IsWhole()) return input;
  if (input.snapshot() != nullptr) {
    const absl::StatusOr<timeline::DeviceTrace> chosen = ChooseDevice(*input.snapshot(), device);
    if (!chosen.ok()) return chosen.status();
    absl::StatusOr<trace::Snapshot> part = replay::CutTrace(*chosen, window);
    if (!part.ok()) return part.status();
    return Holding(*std::move(part));
  }
  if (input.requests() != nullptr) {
    absl::StatusOr<trace::RequestTrace> part = CutRequests(*input.requests(), window);
    if (!part.ok()) return part.status();
    return Holding(*std::move(part));
  }
  return Wrong(window, "this input has no events");
}

}  // namespace ashlar::answers
