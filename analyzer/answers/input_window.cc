#include "analyzer/answers/input_window.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "allocator/trace/request_window.h"
#include "analyzer/answers/traced_run.h"
#include "analyzer/replay/recorded_window.h"

namespace ashlar::answers {
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

Input Holding(readers::Content content) { return Input(std::make_unique<const readers::Content>(std::move(content))); }

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
    const absl::StatusOr<int> chosen = ChooseDevice(*input.snapshot(), device);
    if (!chosen.ok()) return chosen.status();
    absl::StatusOr<trace::Snapshot> part = replay::CutTrace(*input.snapshot(), *chosen, window);
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
