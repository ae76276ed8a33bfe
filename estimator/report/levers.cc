#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "allocator/base/units.h"
#include "commands/shared/layout.h"
#include "estimator/report/estimate_report.h"

namespace ashlar::estimate {
namespace {

using report::AppendSection;
using report::AppendWrapped;
using report::Shortened;

// With a star what takes more in memory without end than there is, and yet runs in it.
std::string FitsText(const Measured& measured, const std::optional<std::uint64_t>& capacity) {
  if (!measured.fits.has_value()) return "";
  if (!*measured.fits) return "no";
  return capacity.has_value() && measured.device_bytes > *capacity ? "fits*" : "fits";
}

std::string OnDevice(std::uint64_t device_bytes, std::uint64_t capacity_bytes) {
  const std::string bytes = FormatBytes(device_bytes);
  if (device_bytes <= capacity_bytes) return absl::StrCat(bytes, " on the device");
  return absl::StrCat("all of it on the device, its cache returned for room (", bytes, " in memory without end)");
}

std::string Saved(std::int64_t bytes) {
  if (bytes == 0) return "0 B";
  return absl::StrCat(bytes < 0 ? "-" : "", FormatBytes(static_cast<std::uint64_t>(std::abs(bytes))));
}

void AppendBatch(const char* what, const LargestBatch& largest, std::uint64_t capacity_bytes, std::string& out) {
  std::string text = absl::StrCat("largest batch ", what, ": ");
  if (largest.batch == 0) {
    text += "none, not even 1";
  } else {
    absl::StrAppend(&text, largest.is_bounded ? "" : "more than ", largest.batch, ", ",
                    OnDevice(largest.device_bytes, capacity_bytes));
  }
  absl::StrAppend(&text, "; ", largest.tried, " batches tried, ");
  if (largest.exceptions.empty()) {
    text += "none larger fits and none smaller fails";
  } else {
    absl::StrAppend(&text, "against that order: ", absl::StrJoin(largest.exceptions, ", "));
  }
  out += "  ";
  AppendWrapped(text, 2, out);
}

std::string NamesOf(const LeverSet& set) {
  return absl::StrJoin(set.levers, ", ",
                       [](std::string* text, const Lever* lever) { absl::StrAppend(text, lever->change.name); });
}

}  // namespace

void AppendLevers(const Estimate& of, const LeverResult& result, std::string& out) {
  AppendSection("LEVERS",
                absl::StrCat("each alone, a dry run of its own; without any ", FormatBytes(result.asked.device_bytes),
                             " on the device"),
                out);
  out += absl::StrFormat("  %11s %11s %-5s %-40s %s\n", "saves", "leaves", "", "lever", "costs");
  for (const LeverRow& row : result.rows) {
    out +=
        absl::StrFormat("  %11s %11s %-5s %-40s %s\n", Saved(row.saved_bytes), FormatBytes(row.measured.device_bytes),
                        FitsText(row.measured, of.capacity_bytes), Shortened(std::string(row.lever->change.name), 40),
                        Shortened(std::string(row.lever->change.costs), 57));
  }
  const auto is_tight = [&](const LeverRow& row) { return FitsText(row.measured, of.capacity_bytes) == "fits*"; };
  if (std::any_of(result.rows.begin(), result.rows.end(), is_tight)) {
    out += "  * by returning its cache: less is live at once than the device has\n";
  }
  if (result.skipped.empty()) return;
  out += "  ";
  AppendWrapped(absl::StrCat("not for this run: ", absl::StrJoin(result.skipped, ", ",
                                                                 [](std::string* text, const auto& skipped) {
                                                                   absl::StrAppend(text, skipped.lever->change.name);
                                                                 })),
                2, out);
}

void AppendFit(const Fit& fit, std::string& out) {
  AppendSection("FIT",
                absl::StrCat("into ", FormatBytes(fit.capacity_bytes), ", with the driver's addresses in either order"),
                out);
  const bool fits = fit.asked.fits == true;
  std::string text = absl::StrCat(
      "as asked it ", fits ? "fits: " : "does not fit: ", FormatBytes(fit.asked.device_bytes), " on the device");
  if (fit.asked.device_bytes > fit.capacity_bytes) {
    absl::StrAppend(&text, " in memory without end, ", FormatBytes(fit.asked.device_bytes - fit.capacity_bytes),
                    " more", fits ? "; returning its cache makes room" : " than there is");
  } else {
    absl::StrAppend(&text, ", ", FormatBytes(fit.capacity_bytes - fit.asked.device_bytes), " to spare");
  }
  out += "  ";
  AppendWrapped(text, 2, out);
  AppendBatch("as asked", fit.largest, fit.capacity_bytes, out);
  if (fits) return;
  if (!fit.cheapest.has_value()) {
    text = absl::StrCat("nothing fits, of ", fit.sets_tried, " sets of levers that were tried");
    if (fit.least.has_value()) {
      absl::StrAppend(&text, ": least needs ", NamesOf(*fit.least), ", ", FormatBytes(fit.least->measured.device_bytes),
                      ", short by ",
                      FormatBytes(fit.least->measured.device_bytes -
                                  std::min(fit.capacity_bytes, fit.least->measured.device_bytes)));
    }
    out += "  ";
    AppendWrapped(text, 2, out);
    return;
  }
  out += "  ";
  AppendWrapped(absl::StrCat("cheapest that fits: ", NamesOf(*fit.cheapest), ": ",
                             OnDevice(fit.cheapest->measured.device_bytes, fit.capacity_bytes), "; price ",
                             fit.cheapest->price, ", ", fit.sets_tried, " sets tried"),
                2, out);
  for (std::size_t i = 0; i < fit.cheapest->levers.size(); ++i) {
    out += absl::StrFormat("    %-42s %s\n", fit.cheapest->flags[i], fit.cheapest->levers[i]->change.costs);
  }
  AppendBatch("with these", *fit.largest_cheapest, fit.capacity_bytes, out);
}

namespace {

using report::Printable;

std::string SettingsText(const ShuffleRow& row) {
  return absl::StrCat(row.conf.empty() ? "default" : Printable(row.conf), row.needs_fraction ? " *" : "");
}

std::string StepText(const std::optional<Quantiles>& step) {
  if (!step.has_value()) return "";
  if (step->least == step->most) return absl::StrCat(step->least);
  return absl::StrCat(step->median, " (", step->least, " to ", step->most, ")");
}

std::string RowText(const ShuffleRow& row, std::int64_t shuffles) {
  std::string failed;
  if (row.failed.has_value()) {
    failed = absl::StrFormat("%.0f %%", 100 * static_cast<double>(*row.failed) / static_cast<double>(shuffles));
  }
  std::string out = absl::StrFormat("  %-8s %-36s %6s  %-13s", BatchingName(row.batching),
                                    Shortened(SettingsText(row), 36), failed, StepText(row.failed_step));
  if (row.reserved.has_value()) {
    for (const std::uint64_t bytes :
         {row.reserved->least, row.reserved->median, row.reserved->p95, row.reserved->most}) {
      out += absl::StrFormat(" %11s", FormatBytes(bytes));
    }
  }
  if (row.is_asked) out += "  <-";
  return out + "\n";
}

// The least failures, then the lowest peak that 95 of 100 stay below.
const ShuffleRow& BestOf(const ShuffleResult& result) {
  const auto key = [](const ShuffleRow& row) {
    return std::pair(row.failed.value_or(0), row.reserved.has_value() ? row.reserved->p95 : UINT64_MAX);
  };
  return *std::min_element(result.rows.begin(), result.rows.end(),
                           [&](const ShuffleRow& a, const ShuffleRow& b) { return key(a) < key(b); });
}

}  // namespace

void AppendShuffles(const Estimate& of, const ShuffleResult& result, std::string& out) {
  std::string remark = absl::StrCat(result.shuffles, " orders of ", FormatCount(of.lengths->samples.size()),
                                    " samples; of each the first ", result.steps, " of an epoch's ",
                                    FormatCount(static_cast<std::uint64_t>(result.epoch_steps)), " steps");
  AppendSection("SHUFFLES", remark, out);
  if (of.run.capacity_bytes.has_value()) {
    absl::StrAppend(&out, "  ", FormatBytes(*of.run.capacity_bytes),
                    " for the allocator: ", FormatBytes(*of.capacity_bytes), " less ",
                    FormatBytes(of.context_bytes + of.driver_bytes), " outside of it\n");
  }
  for (const ShuffleBatching& batching : result.batchings) {
    out += absl::StrFormat(
        "  %-8s longest batch %llu to %llu tokens (median %llu), peak requested %s to %s (median %s)\n",
        BatchingName(batching.batching), static_cast<unsigned long long>(batching.padded_tokens.least),
        static_cast<unsigned long long>(batching.padded_tokens.most),
        static_cast<unsigned long long>(batching.padded_tokens.median), FormatBytes(batching.requested.least),
        FormatBytes(batching.requested.most), FormatBytes(batching.requested.median));
  }
  absl::StrAppendFormat(&out, "\n  %-8s %-36s %6s  %-13s %s\n", "batching", "settings",
                        of.run.capacity_bytes.has_value() ? "fail" : "",
                        of.run.capacity_bytes.has_value() ? "in step" : "",
                        "peak reserved, memory without end: least, median, 95 %, most");
  bool needs_fraction = false;
  const ShuffleRow* before = nullptr;
  for (const ShuffleRow& row : result.rows) {
    if (before != nullptr && before->batching != row.batching) out += "\n";
    before = &row;
    needs_fraction = needs_fraction || row.needs_fraction;
    out += RowText(row, result.shuffles);
  }
  if (needs_fraction) out += "  * does nothing without a memory fraction: replayed with one of 1\n";
  const ShuffleRow& best = BestOf(result);
  out += "\n  ";
  std::string text = absl::StrCat(BatchingName(best.batching), " batches under ",
                                  best.conf.empty() ? "the default settings" : Printable(best.conf));
  if (best.failed.has_value()) {
    absl::StrAppend(&text, " fail least: in ", *best.failed, " of ", result.shuffles, " shuffles");
  } else {
    text = absl::StrCat("the lowest peaks: ", text, "; with --device or --capacity failures are counted");
  }
  AppendWrapped(text, 2, out);
}

}  // namespace ashlar::estimate
