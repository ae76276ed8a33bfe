// Several explanations of one text: what happened first, where and how often, then each that differs.
#include <algorithm>
#include <cstddef>
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
  std::vector<std::string> out = explanation.next_lines;
  for (const whatif::ProgramRemedy& remedy : explanation.program_remedies) {
    for (const std::string& line : remedy.python) out.push_back(std::string(absl::StripLeadingAsciiWhitespace(line)));
  }
  return out;
}

// Whether two failures of a text differ in their figures alone, as those of the ranks of one job do.
bool IsAlike(const answers::Explanation& a, const answers::Explanation& b) {
  if (!a.message.has_value() || !b.message.has_value() || a.message->family != b.message->family) return false;
  if (a.verdict != b.verdict || !a.raised_at.has_value() || !b.raised_at.has_value()) return false;
  return a.raised_at->path == b.raised_at->path && a.raised_at->code == b.raised_at->code;
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
  const bool is_messages = std::all_of(all.begin(), all.end(), [](const auto& e) { return e.message.has_value(); });
  if (all.size() < 2 || !is_messages) return "";
  std::string out = absl::StrCat(FormatCount(all.size()), " FAILURES IN THIS TEXT, in their order\n");
  for (std::size_t i = 0; i < std::min(all.size(), kMostListed); ++i) {
    const answers::Explanation& e = all[i];
    absl::StrAppend(&out, "  ", i + 1, "  ", Printable(e.headline), "; ", analyses::VerdictWords(e.verdict),
                    e.raised_at.has_value() ? absl::StrCat("; at ", Printable(e.raised_at->line)) : "",
                    e.message->told > 1 ? absl::StrCat("; told ", FormatCount(e.message->told), " times") : "",
                    first_alike[i] < i ? absl::StrCat("; explained as ", first_alike[i] + 1) : "", "\n");
  }
  if (all.size() > kMostListed) absl::StrAppend(&out, "  and ", FormatCount(all.size() - kMostListed), " more\n");
  return out;
}

}  // namespace

std::string PrintExplanations(const std::vector<answers::Explanation>& explanations, bool as_json, bool as_list) {
  if (as_json) return ToJson(explanations, as_list);
  const std::vector<std::size_t> first_alike = FirstAlike(explanations);
  std::string out = FailuresOfText(explanations, first_alike);
  for (std::size_t i = 0; i < explanations.size(); ++i) {
    if (first_alike[i] < i) continue;
    if (!out.empty()) out += "\n";
    out += Fitted(ToText(explanations[i]), LinesToPaste(explanations[i]));
  }
  return out;
}

}  // namespace ashlar::report
