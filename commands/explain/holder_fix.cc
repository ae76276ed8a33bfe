#include "commands/explain/holder_fix.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "analyzer/analyses/changes/program_changes.h"

namespace ashlar::answers {
namespace {

// "losses", "self.bank": what may stand left of an assignment.
bool IsVariable(absl::string_view name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '.');
  return std::all_of(parts.begin(), parts.end(), [](absl::string_view part) {
    const auto is_of_name = [](char c) { return absl::ascii_isalnum(c) || c == '_'; };
    return !part.empty() && !absl::ascii_isdigit(part.front()) && std::all_of(part.begin(), part.end(), is_of_name);
  });
}

bool IsOneOf(absl::string_view word, absl::Span<const absl::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// How a value comes into what holds it: "losses.append(VALUE)", "seen[key] = VALUE"; empty: another way.
std::string Keeping(const trace::Holder& holder, absl::string_view variable, absl::string_view value) {
  constexpr std::array<absl::string_view, 2> kAppended = {"list", "deque"};
  constexpr std::array<absl::string_view, 3> kAssigned = {"dict", "OrderedDict", "defaultdict"};
  if (IsOneOf(holder.container, kAppended)) return absl::StrCat(variable, ".append(", value, ")");
  if (IsOneOf(holder.container, kAssigned)) return absl::StrCat(variable, "[key] = ", value);
  return "";
}

std::vector<std::string> OfElements(absl::string_view sentence, const trace::Holder& holder,
                                    absl::string_view variable) {
  using namespace analyses::changes;  // NOLINT: a table of names
  if (sentence == kNumbersNotTensors.sentence) {
    const std::string number = Keeping(holder, variable, "loss.item()");
    if (number.empty()) return {};
    return {absl::StrCat(number, "  # or value.detach(); not: ", Keeping(holder, variable, "loss"))};
  }
  if (sentence == kMoveOffDevice.sentence || sentence == kPredictionsOffDevice.sentence) {
    const std::string kept = Keeping(holder, variable, "output.detach().cpu()");
    return kept.empty() ? std::vector<std::string>() : std::vector<std::string>{kept};
  }
  return {};
}

}  // namespace

std::vector<std::string> NamedLines(absl::string_view sentence, const trace::Holder& holder) {
  using namespace analyses::changes;  // NOLINT: a table of names
  constexpr std::array<absl::string_view, 6> kHeld = {"graph", "local", "global", "attribute", "element", "closure"};
  if (!IsOneOf(holder.kind, kHeld)) return {};
  constexpr absl::string_view kElement = "[]";
  const bool is_element = absl::EndsWith(holder.name, kElement);
  const absl::string_view variable =
      absl::string_view(holder.name).substr(0, holder.name.size() - (is_element ? kElement.size() : 0));
  if (!IsVariable(variable)) return {};
  if (is_element) return OfElements(sentence, holder, variable);
  if (!holder.container.empty()) return {};  // "seen.loss" of a dictionary
  if (sentence == kNumbersNotTensors.sentence) {
    return {absl::StrCat(variable, " += loss.item()  # not: ", variable, " += loss"),
            absl::StrCat(variable, " = ", variable, ".detach()  # where it goes on to the next step")};
  }
  if (sentence == kTensorOnHost.sentence) {
    return {absl::StrCat(variable, " = ", variable, ".cpu().pin_memory()"),
            absl::StrCat("batch = ", variable, "[part].to(\"cuda\", non_blocking=True)")};
  }
  return {};
}

}  // namespace ashlar::answers
