#include "commands/fit/fit_words.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "allocator/base/units.h"
#include "commands/shared/layout.h"

namespace ashlar::report {
namespace {

using answers::FitAnswer;
using answers::FitCache;
using answers::FitCard;
using answers::FitChange;
using answers::FitRow;
using answers::FitSetting;
using answers::FitSpeed;
using answers::FitValues;
using answers::FitVerdict;
using answers::FitWork;

constexpr std::size_t kMostNames = 4;

std::string CardText(const FitAnswer& a) { return absl::StrCat(a.card, " of ", FormatBytes(a.total_bytes)); }

std::string SpareText(const FitAnswer& a, const FitRow& row) {
  if (!row.device_bytes.has_value() || *row.device_bytes > a.total_bytes) return "";
  return absl::StrCat(", ", FormatBytes(a.total_bytes - *row.device_bytes), " to spare");
}

const FitRow* RowOfValue(const FitValues& of, std::optional<std::uint64_t> value) {
  for (const FitValues::Value& one : of.values) {
    if (one.value == value) return &one.row;
  }
  return nullptr;
}

std::string FoundText(const FitValues& of) {
  switch (of.goal) {
    case FitValues::Goal::kLargest:
      return absl::StrCat(of.name, " ", *of.found, " is the largest that fits on ");
    case FitValues::Goal::kLongest:
      return absl::StrCat(of.name, " ", *of.found, " is the longest that fits on ");
    case FitValues::Goal::kFewest:
      break;
  }
  return absl::StrCat(*of.found, *of.found == 1 ? " is enough of " : " are enough of ");
}

std::string ValuesHeadline(const FitAnswer& a) {
  const FitValues& of = *a.varied;
  if (!of.found.has_value()) return absl::StrCat("no ", of.name, " that was tried fits on ", CardText(a));
  const FitRow& row = *RowOfValue(of, of.found);
  const FitRow* next = RowOfValue(of, of.next);
  const char* none = of.goal == FitValues::Goal::kFewest ? "no smaller one was run" : "no larger one was run";
  return absl::StrCat(
      FoundText(of), CardText(a), ": peak reserved ", FitPeakText(row), SpareText(a, row), "; ",
      next == nullptr ? none
                      : absl::StrCat(*of.next, " ", next->why_not.empty() ? FitVerdictText(*next) : "tells nothing"));
}

std::string OfCard(const FitCard& of) {
  if (of.card.empty()) return "no card of the table has room for it";
  return absl::StrCat(of.card, " of ", FormatBytes(of.total_bytes), of.is_proven ? "" : " by its peak");
}

std::string CardsHeadline(const FitAnswer& a) {
  const FitCard &first = a.cards->front(), &last = a.cards->back();
  std::string out = absl::StrCat("the least card: ", OfCard(first), " ", FitRowName(first.row));
  if (a.cards->size() > 1 && last.row.why_not.empty()) {
    absl::StrAppend(&out, "; ", OfCard(last), " with ", FitRowName(last.row));
  }
  return out;
}

std::string TimesText(std::uint64_t now, std::uint64_t before) {
  return before == 0 ? "" : absl::StrFormat(": x %.2f", static_cast<double>(now) / static_cast<double>(before));
}

std::string MillisecondsText(double seconds) { return absl::StrFormat("%.3g ms", seconds * 1e3); }

// What a step of the set computes and moves, beside the program as it is.
void AddPrices(const FitAnswer& a, std::vector<std::string>& out) {
  if (!a.set.has_value() || !a.set->work.has_value() || !a.base.work.has_value()) return;
  const FitWork &now = *a.set->work, &before = *a.base.work;
  out.push_back(absl::StrFormat("a step computes %.3g floating-point operations, where it is %.3g as it is%s",
                                static_cast<double>(now.operations), static_cast<double>(before.operations),
                                TimesText(now.operations, before.operations)));
  out.push_back(absl::StrCat("a step moves ", FormatBytes(now.bus_bytes), " between host and device, where it is ",
                             FormatBytes(before.bus_bytes), " as it is"));
  if (!a.speed.has_value()) return;
  const FitSpeed& speed = *a.speed;
  out.push_back(
      absl::StrFormat("estimated: by the figures of the card (%.1f TFLOP/s, %.1f in 16 bits, %.0f GB/s) a step takes "
                      "%s at least, where "
                      "it is %s as it is",
                      static_cast<double>(speed.operations) / 1e12, static_cast<double>(speed.narrow_operations) / 1e12,
                      static_cast<double>(speed.memory_bytes) / 1e9, MillisecondsText(RooflineSeconds(now, speed)),
                      MillisecondsText(RooflineSeconds(before, speed))));
}

// Of an engine that ran on the card: as it is, or with the set.
void AddCache(const FitAnswer& a, std::vector<std::string>& out) {
  const FitRow* row = a.set.has_value() ? &*a.set : &a.base;
  if (a.varied.has_value()) row = RowOfValue(*a.varied, a.varied->found);
  if (row == nullptr || !row->cache.has_value() || row->cache->longest_request == 0) return;
  const FitCache& cache = *row->cache;
  out.push_back(absl::StrFormat(
      "on the card vLLM has room for %s tokens: %.1f requests of %s, its longest, of the %s that it takes at once",
      FormatCount(cache.tokens), static_cast<double>(cache.tokens) / static_cast<double>(cache.longest_request),
      FormatCount(cache.longest_request), FormatCount(cache.most_requests)));
}

void AddUntried(const FitAnswer& a, std::vector<std::string>& out) {
  std::vector<std::string> parts;
  if (a.untried_changes > 0) parts.push_back(FormatCounted(a.untried_changes, "change"));
  if (a.untried > 0) parts.push_back(FormatCounted(a.untried, "dearer set"));
  if (!parts.empty()) {
    out.push_back(absl::StrCat(absl::StrJoin(parts, " and "), a.untried_changes + a.untried == 1 ? " was" : " were",
                               " not tried: the time was up; --budget gives more"));
  }
  if (a.pruned > 0) {
    out.push_back(absl::StrCat(FormatCount(a.pruned),
                               " sets were not run, as they cannot fit: the parameters, gradients and states that they "
                               "leave as they are take more than the card has"));
  }
}

void AddAllowed(const FitAnswer& a, std::vector<std::string>& out) {
  std::vector<std::string> kinds;
  for (const FitChange& change : a.changes) {
    if (!change.applies || a.IsAllowed(change)) continue;
    if (std::find(kinds.begin(), kinds.end(), change.alters) == kinds.end()) kinds.push_back(change.alters);
  }
  if (!kinds.empty() && a.base.verdict != FitVerdict::kFits) {
    out.push_back(absl::StrCat("what alters results is in no set; --allow ", absl::StrJoin(kinds, ","), " lets it in"));
  }
}

void AddNotDone(const char* what, const std::vector<std::string>& all, std::vector<std::string>& out) {
  if (all.empty()) return;
  const std::size_t shown = std::min(kMostNames, all.size());
  std::vector<std::string> names(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(shown));
  for (std::string& name : names) name = Printable(name);
  out.push_back(absl::StrCat(what, " by the runs that followed: ", absl::StrJoin(names, ", "),
                             all.size() > shown ? absl::StrCat(" and ", all.size() - shown, " more") : ""));
}

void AddWorst(const FitAnswer& a, std::vector<std::string>& out) {
  if (a.has_worst_first) {
    out.push_back(absl::StrCat(
        "lengths vary: runs begin with the longest samples in one batch, so that the verdict is that of any order",
        a.own_order_bytes.has_value() ? absl::StrCat("; this order takes ", FormatBytes(*a.own_order_bytes)) : ""));
  }
  if (!a.why_no_worst.empty()) {
    out.push_back(
        absl::StrCat("lengths vary, and the verdict is that of this order alone: ", Printable(a.why_no_worst)));
  }
}

}  // namespace

std::string FitNames(const std::vector<std::string>& changes) {
  return changes.empty() ? "as it is" : absl::StrJoin(changes, ", ");
}

std::string FitRowName(const FitRow& row) { return FitNames(row.changes); }

std::string FitWorkText(const FitAnswer& a, const FitRow& row) {
  if (!row.work.has_value() || !a.base.work.has_value() || a.base.work->operations == 0) return "";
  return absl::StrFormat("x %.2f",
                         static_cast<double>(row.work->operations) / static_cast<double>(a.base.work->operations));
}

std::string FitSettingText(const FitSetting& of) {
  if (!of.why_not.empty()) return "-";
  if (of.is_own) return "policy:ashlar";
  return of.conf.empty() ? "as it is" : of.conf;
}

std::string FitVerdictText(const FitRow& row) {
  switch (row.verdict) {
    case FitVerdict::kFits:
      return "fits";
    case FitVerdict::kFails:
      if (row.is_over_host) return "fails: the host";
      return row.failed_step.has_value() ? absl::StrCat("fails at step ", *row.failed_step) : "fails";
    case FitVerdict::kNotKnown:
      break;
  }
  return "not known";
}

std::string FitPeakText(const FitRow& row) {
  return row.peak_reserved_bytes.has_value() ? FormatBytes(*row.peak_reserved_bytes) : "-";
}

std::string FitSavedText(const FitAnswer& a, const FitRow& row) {
  if (row.changes.empty() || !row.peak_reserved_bytes.has_value() || !a.base.peak_reserved_bytes.has_value()) return "";
  const double before = static_cast<double>(*a.base.peak_reserved_bytes);
  const double now = static_cast<double>(*row.peak_reserved_bytes);
  return before == 0 ? "" : absl::StrCat(std::llround(100 * (before - now) / before), " %");
}

std::string FitCostsText(const FitAnswer& a, const FitRow& row) {
  std::vector<std::string> costs;
  for (const std::string& name : row.changes) {
    const FitChange& change = a.ChangeNamed(name);
    if (change.costs != "none") costs.push_back(change.costs);
    if (!change.alters.empty()) costs.push_back(absl::StrCat("alters results (--allow ", change.alters, ")"));
  }
  if (row.host_bytes > 0) {
    costs.push_back(
        absl::StrCat(FormatBytes(row.host_bytes), " on the host",
                     row.is_over_host ? absl::StrCat(", which has ", FormatBytes(a.host_memory_bytes)) : ""));
  }
  const bool is_known = row.work.has_value() && a.base.work.has_value();
  if (is_known && row.work->bus_bytes > a.base.work->bus_bytes) {
    costs.push_back(
        absl::StrCat(FormatBytes(row.work->bus_bytes - a.base.work->bus_bytes), " more over the bus in a step"));
  }
  return costs.empty() ? "none" : absl::StrJoin(costs, "; ");
}

std::string FitPlaceText(const FitAnswer& a, const FitRow& row) {
  return row.changes.size() == 1 ? a.ChangeNamed(row.changes.front()).where : "";
}

std::string FitHeadline(const FitAnswer& a) {
  if (a.varied.has_value()) return ValuesHeadline(a);
  if (a.cards.has_value()) return CardsHeadline(a);
  const std::string on = absl::StrCat(" on ", CardText(a));
  if (a.base.verdict == FitVerdict::kFits) {
    return absl::StrCat("fits", on, " as it is", a.has_worst_first ? ", in any order of its samples" : "",
                        ": peak reserved ", FitPeakText(a.base), SpareText(a, a.base));
  }
  const std::string fails = absl::StrCat(FitVerdictText(a.base), on, " as it is, which takes ", FitPeakText(a.base));
  if (a.set.has_value()) {
    return absl::StrCat(fails, "; fits with ", FitRowName(*a.set), ": peak reserved ", FitPeakText(*a.set),
                        SpareText(a, *a.set));
  }
  return absl::StrCat(fails, "; no set that was tried fits");
}

std::vector<std::string> FitRemarks(const FitAnswer& a) {
  std::vector<std::string> out;
  AddWorst(a, out);
  if (!a.with.empty()) out.push_back(absl::StrCat("each run has ", absl::StrJoin(a.with, ", ")));
  if (a.varied.has_value()) {
    if (a.varied->is_over) out.push_back("the time was up before the search was at its end: --budget gives more");
    if (!a.varied->where.empty()) out.push_back(absl::StrCat("the batch is made at ", a.varied->where));
    AddCache(a, out);
    if (!a.workspaces.empty()) out.push_back(a.workspaces);
    AddNotDone("not written", a.kept_away, out);
    AddNotDone("not connected to", a.not_sent, out);
    return out;
  }
  if (a.stop_step.has_value() && a.base.verdict != FitVerdict::kFits) {
    out.push_back(absl::StrCat("rows end after step ", *a.stop_step, " of ", FormatCount(a.steps),
                               ": what comes later needed no more in the program as it is"));
  }
  if (!a.workspaces.empty()) out.push_back(a.workspaces);
  if (a.leaves_draws) {
    out.push_back(
        "rows leave large random numbers on the host out: without them the program as it is asked for the same memory "
        "at each step");
  }
  AddCache(a, out);
  AddPrices(a, out);
  AddUntried(a, out);
  AddAllowed(a, out);
  AddNotDone("not written", a.kept_away, out);
  AddNotDone("not connected to", a.not_sent, out);
  return out;
}

}  // namespace ashlar::report
