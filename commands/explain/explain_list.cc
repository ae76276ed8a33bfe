// Several explanations of one text: what happened first, where and how often, then each that differs.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/message/oom_message_verdict.h"
#include "commands/explain/explain_report.h"
#include "commands/shared/layout.h"

namespace ashlar::report {
namespace {

std::vector<std::string> LinesToPaste(const answers::Explanation& explanation) {
  std::vector<std::string> out = explanation.verdict.next.lines;
  for (const whatif::ProgramRemedy& remedy : explanation.why.remedies) {
    for (const std::string& line : remedy.python) out.push_back(std::string(absl::StripLeadingAsciiWhitespace(line)));
  }
  return out;
}

// Whether two failures of a text differ in their figures alone, as those of the ranks of one job do.
bool IsAlike(const answers::Explanation& a, const answers::Explanation& b) {
  if (!a.failure.message.has_value() || !b.failure.message.has_value()) return false;
  if (a.failure.message->family != b.failure.message->family || a.verdict.kind != b.verdict.kind) return false;
  const std::optional<answers::RaisedAt>& at = a.failure.raised_at;
  const std::optional<answers::RaisedAt>& other = b.failure.raised_at;
  return at.has_value() && other.has_value() && at->path == other->path && at->code == other->code;
}

// Of each failure the first that is like it, by its place in `all`.
std::vector<std::size_t> FirstAlike(const std::vector<answers::Explanation>& all) {
  std::vector<std::size_t> out, firsts;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto known =
        std::find_if(firsts.begin(), firsts.end(), [&](std::size_t first) { return IsAlike(all[first], all[i]); });
    out.push_back(known == firsts.end() ? i : *known);
    if (known == firsts.end()) firsts.push_back(i);
  }
  return out;
}

// What happened first, where and how often, before the failures of a text one by one.
std::string FailuresOfText(const std::vector<answers::Explanation>& all, const std::vector<std::size_t>& first_alike) {
  constexpr std::size_t kMostListed = 16;
  const bool is_messages =
      std::all_of(all.begin(), all.end(), [](const auto& e) { return e.failure.message.has_value(); });
  if (all.size() < 2 || !is_messages) return "";
  std::string out = absl::StrCat(FormatCount(all.size()), " FAILURES IN THIS TEXT, in their order\n");
  for (std::size_t i = 0; i < std::min(all.size(), kMostListed); ++i) {
    const answers::Explanation& e = all[i];
    absl::StrAppend(
        &out, "  ", i + 1, "  ", Printable(e.verdict.headline), "; ", analyses::VerdictWords(e.verdict.kind),
        e.failure.raised_at.has_value() ? absl::StrCat("; at ", Printable(e.failure.raised_at->line)) : "",
        e.failure.message->told > 1 ? absl::StrCat("; told ", FormatCount(e.failure.message->told), " times") : "",
        first_alike[i] < i ? absl::StrCat("; explained as ", first_alike[i] + 1) : "", "\n");
  }
  if (all.size() > kMostListed) absl::StrAppend(&out, "  and ", FormatCount(all.size() - kMostListed), " more\n");
  return out;
}

}  // namespace

namespace {

std::string PrintEach(const std::vector<answers::Explanation>& explanations,
                      std::string (*text)(const answers::Explanation&)) {
  const std::vector<std::size_t> first_alike = FirstAlike(explanations);
  std::string out = FailuresOfText(explanations, first_alike);
  for (std::size_t i = 0; i < explanations.size(); ++i) {
    if (first_alike[i] < i) continue;
    if (!out.empty()) out += "\n";
    out += Fitted(text(explanations[i]), LinesToPaste(explanations[i]));
  }
  return out;
}

}  // namespace

std::string PrintExplanations(const std::vector<answers::Explanation>& explanations, bool as_json, bool as_list) {
  return as_json ? ToJson(explanations, as_list) : PrintEach(explanations, ToText);
}

std::string PrintBriefly(const std::vector<answers::Explanation>& explanations) {
  return PrintEach(explanations, ToBriefText);
}

}  // namespace ashlar::report
