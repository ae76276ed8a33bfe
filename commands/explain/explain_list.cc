// Several explanations of one text: each that differs, and behind the first verdict a list of what failed, where and
// how often.
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

// A failure in a line of the list, from the fullest form to the shortest.
RowTexts ListedForms(const std::vector<answers::Explanation>& all, const std::vector<std::size_t>& first_alike,
                     std::size_t place) {
  const answers::Explanation& e = all[place];
  const std::string what =
      absl::StrCat("  ", place + 1, "  ", Printable(e.verdict.headline), "; ", analyses::VerdictWords(e.verdict.kind));
  const std::string at =
      e.failure.raised_at.has_value() ? absl::StrCat("; at ", Printable(e.failure.raised_at->line)) : "";
  const std::string alike = first_alike[place] < place ? absl::StrCat("; explained as ", first_alike[place] + 1) : "";
  const std::uint64_t told = e.failure.message->told;
  const std::string times = told > 1 ? absl::StrCat("; told ", FormatCount(told), " times") : "";
  const std::string short_what =
      absl::StrCat("  ", place + 1, "  device ",
                   e.failure.message->device.has_value() ? absl::StrCat(*e.failure.message->device) : "?", ": ",
                   analyses::VerdictWords(e.verdict.kind));
  return {absl::StrCat(what, at, times, alike), absl::StrCat(what, alike), absl::StrCat(short_what, at, alike)};
}

// What happened first, where and how often: behind the verdict on the first of them.
std::string FailuresOfText(const std::vector<answers::Explanation>& all, const std::vector<std::size_t>& first_alike) {
  constexpr std::size_t kMostListed = 16;
  const bool is_messages =
      std::all_of(all.begin(), all.end(), [](const auto& e) { return e.failure.message.has_value(); });
  if (all.size() < 2 || !is_messages) return "";
  std::string out;
  AppendSection(absl::StrCat(FormatCount(all.size()), " FAILURES IN THIS TEXT"), "the answer is of the first", out);
  std::vector<RowTexts> forms(3);
  for (std::size_t i = 0; i < std::min(all.size(), kMostListed); ++i) {
    const RowTexts row = ListedForms(all, first_alike, i);
    for (std::size_t form = 0; form < forms.size(); ++form) forms[form].push_back(row[form]);
  }
  AppendRows(forms, out);
  if (all.size() > kMostListed) absl::StrAppend(&out, "  and ", FormatCount(all.size() - kMostListed), " more\n");
  return out;
}

// Behind the lines of the verdict, which end at the first empty line.
void InsertBehindVerdict(const std::string& list, std::string& text) {
  const std::size_t end = text.find("\n\n");
  text.insert(end == std::string::npos ? text.size() : end + 1, list);
}

}  // namespace

namespace {

std::string PrintEach(const std::vector<answers::Explanation>& explanations,
                      std::string (*text)(const answers::Explanation&)) {
  const std::vector<std::size_t> first_alike = FirstAlike(explanations);
  std::string out;
  for (std::size_t i = 0; i < explanations.size(); ++i) {
    if (first_alike[i] < i) continue;
    std::string one = Fitted(text(explanations[i]), LinesToPaste(explanations[i]));
    if (i == 0) InsertBehindVerdict(FailuresOfText(explanations, first_alike), one);
    absl::StrAppend(&out, out.empty() ? "" : "\n", one);
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
