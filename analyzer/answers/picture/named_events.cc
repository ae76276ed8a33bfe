#include "analyzer/answers/picture/named_events.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace ashlar::answers {
namespace {

using timeline::EventIndex;

// "6,768: 638 MiB" gives 6768 and leaves ": 638 MiB". A comma that no digit follows is the sentence's.
std::optional<EventIndex> TakeNumber(absl::string_view& text) {
  std::string digits;
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    const bool is_group = text[at] == ',' && at + 1 < text.size() && absl::ascii_isdigit(text[at + 1]) && at > 0;
    if (!absl::ascii_isdigit(text[at]) && !is_group) break;
    if (!is_group) digits += text[at];
  }
  EventIndex number = 0;
  if (!absl::SimpleAtoi(digits, &number)) return std::nullopt;
  text.remove_prefix(at);
  return number;
}

}  // namespace

void AddNamedEvents(absl::string_view sentence, std::vector<EventIndex>& out) {
  constexpr absl::string_view kWord = "event";
  for (std::size_t at = sentence.find(kWord); at != absl::string_view::npos; at = sentence.find(kWord, at + 1)) {
    absl::string_view rest = sentence.substr(at + kWord.size());
    absl::ConsumePrefix(&rest, "s");
    if (!absl::ConsumePrefix(&rest, " ")) continue;
    const std::optional<EventIndex> first = TakeNumber(rest);
    if (!first.has_value()) continue;
    out.push_back(*first);
    if (!absl::ConsumePrefix(&rest, " to ") && !absl::ConsumePrefix(&rest, " and ")) continue;
    if (const std::optional<EventIndex> second = TakeNumber(rest); second.has_value()) out.push_back(*second);
  }
}

std::vector<EventIndex> NamedEvents(const Explanation& explanation) {
  std::vector<EventIndex> out;
  AddNamedEvents(explanation.headline, out);
  AddNamedEvents(explanation.moment, out);
  for (const std::string& sentence : explanation.evidence) AddNamedEvents(sentence, out);
  for (const ExplainedCause& cause : explanation.causes) {
    for (const std::string& sentence : cause.finding.evidence) AddNamedEvents(sentence, out);
    for (const std::string& sentence : cause.finding.counter_evidence) AddNamedEvents(sentence, out);
  }
  for (const PinLine& line : explanation.pins.lines) {
    if (line.oldest_event.has_value()) out.push_back(static_cast<EventIndex>(*line.oldest_event));
  }
  if (explanation.failure.has_value()) out.push_back(explanation.failure->request.event);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace ashlar::answers
