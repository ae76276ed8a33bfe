// The roles of a world of ranks, in the text of a dry run.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "commands/shared/layout.h"
#include "launcher/dry_run_report.h"
#include "launcher/rank_roles.h"

namespace ashlar::cli {
namespace {

constexpr std::size_t kMostRoles = 16;  // of the table; --json has all
constexpr std::size_t kMostWhy = 160;   // of a program's last line

void AddLine(const std::string& text, std::string& out) {
  out += "  ";
  report::AppendWrapped(text, 2, out);
}

std::string BesideText(const libraries::BytesBetween& bytes) {
  if (bytes.most_bytes == bytes.least_bytes) return FormatBytes(bytes.most_bytes);
  return absl::StrCat(FormatBytes(bytes.least_bytes), " to ", FormatBytes(bytes.most_bytes));
}

const char* FitWord(FitState fit) {
  return fit == FitState::kFits ? "fits" : fit == FitState::kDoesNot ? "does not fit" : "not known";
}

void AppendRoles(const RankRuns& ranks, std::string& out) {
  std::vector<report::RowTexts> forms(2);
  const auto add = [&forms](const auto& name, const auto& fit, const auto& peak, const auto& count, const auto& beside,
                            const auto& stands_for) {
    forms[0].push_back(
        absl::StrFormat("  %-36s %-12s %11s  %5s  %-22s %s", name, fit, peak, count, beside, stands_for));
    forms[1].push_back(absl::StrFormat("  %-36s %11s  %s", name, peak, stands_for));
  };
  add("role", "", "peak", "comms", "libraries on top", "stands for ranks");
  for (std::size_t i = 0; i < std::min(ranks.roles.size(), kMostRoles); ++i) {
    const RankRole& role = ranks.roles[i];
    add(RankName(role), FitWord(role.fit), FormatBytes(role.peak_bytes), absl::StrCat(role.communicators),
        BesideText(role.beside), role.stands_for.empty() ? "(compared)" : RangesText(role.stands_for));
  }
  report::AppendRows(forms, out);
  if (ranks.roles.size() > kMostRoles) {
    absl::StrAppend(&out, "  and ", ranks.roles.size() - kMostRoles, " more: --json\n");
  }
}

}  // namespace

std::string RankName(const RankRole& role) { return absl::StrCat("rank ", role.rank, " (", role.what, ")"); }

void AppendRanks(const RankRuns& ranks, std::string& out) {
  const std::string world = absl::StrCat(ranks.ranks, " ranks, ", ranks.per_node, " on a machine");
  if (!ranks.why_none.empty()) {
    report::AppendSection("RANKS", world, out);
    return AddLine(absl::StrCat("one was run: ", ranks.why_none), out);
  }
  report::AppendSection("RANKS", absl::StrCat(world, "; those below were run, each alone: no peer was there"), out);
  AppendRoles(ranks, out);
  for (const RankRole& role : ranks.roles) {
    if (role.why_not.empty()) continue;
    AddLine(absl::StrCat("rank ", role.rank, ": ", report::Shortened(report::Printable(role.why_not), kMostWhy)), out);
  }
  for (const std::string& line : ranks.compared) AddLine(absl::StrCat("compared: ", line), out);
  for (const std::string& line : ranks.assumed) AddLine(absl::StrCat("assumed: ", line), out);
}

}  // namespace ashlar::cli
