#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "allocator/base/units.h"
#include "analyzer/estimate/report/estimate_report.h"
#include "analyzer/report/json_values.h"
#include "analyzer/report/layout.h"
#include "analyzer/report/printable.h"

namespace ashlar::estimate {
namespace {

using report::AppendSection;
using report::AppendWrapped;
using report::OrNull;
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
  return absl::StrJoin(set.levers, ", ", [](std::string* text, const Lever* lever) { text->append(lever->name); });
}

report::Json BatchJson(const LargestBatch& largest) {
  return {{"batch", largest.batch},
          {"device_bytes", largest.device_bytes},
          {"tried", largest.tried},
          {"is_bounded", largest.is_bounded},
          {"exceptions", largest.exceptions}};
}

report::Json SetJson(const std::optional<LeverSet>& set) {
  if (!set.has_value()) return nullptr;
  report::Json out = {{"levers", report::Json::Array()},
                      {"flags", set->flags},
                      {"price", set->price},
                      {"device_bytes", set->measured.device_bytes}};
  for (const Lever* lever : set->levers) out["levers"].Append(lever->name);
  return out;
}

}  // namespace

void AppendLevers(const Estimate& of, const LeverResult& result, std::string& out) {
  AppendSection("LEVERS",
                absl::StrCat("each alone, a dry run of its own; without any ", FormatBytes(result.asked.device_bytes),
                             " on the device"),
                out);
  out += absl::StrFormat("  %11s %11s %-5s %-40s %s\n", "saves", "leaves", "", "lever", "costs");
  for (const LeverRow& row : result.rows) {
    out += absl::StrFormat("  %11s %11s %-5s %-40s %s\n", Saved(row.saved_bytes),
                           FormatBytes(row.measured.device_bytes), FitsText(row.measured, of.capacity_bytes),
                           Shortened(row.lever->name, 40), Shortened(row.lever->costs, 57));
  }
  const auto is_tight = [&](const LeverRow& row) { return FitsText(row.measured, of.capacity_bytes) == "fits*"; };
  if (std::any_of(result.rows.begin(), result.rows.end(), is_tight)) {
    out += "  * by returning its cache: less is live at once than the device has\n";
  }
  if (result.skipped.empty()) return;
  out += "  ";
  AppendWrapped(absl::StrCat("not for this run: ", absl::StrJoin(result.skipped, ", ",
                                                                 [](std::string* text, const auto& skipped) {
                                                                   text->append(skipped.lever->name);
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
    out += absl::StrFormat("    %-42s %s\n", fit.cheapest->flags[i], fit.cheapest->levers[i]->costs);
  }
  AppendBatch("with these", *fit.largest_cheapest, fit.capacity_bytes, out);
}

report::Json LeversJson(const LeverResult& result) {
  report::Json out = {{"device_bytes", result.asked.device_bytes},
                      {"fits", OrNull(result.asked.fits)},
                      {"rows", report::Json::Array()},
                      {"skipped", report::Json::Array()}};
  for (const LeverRow& row : result.rows) {
    out["rows"].Append({{"lever", row.lever->name},
                        {"flags", row.flags},
                        {"costs", row.lever->costs},
                        {"price", row.lever->price > 0 ? report::Json(row.lever->price) : report::Json(nullptr)},
                        {"saved_bytes", row.saved_bytes},
                        {"device_bytes", row.measured.device_bytes},
                        {"fits", OrNull(row.measured.fits)}});
  }
  for (const LeverSkipped& skipped : result.skipped) {
    out["skipped"].Append({{"lever", skipped.lever->name}, {"why", skipped.why}});
  }
  return out;
}

report::Json FitJson(const Fit& fit) {
  return {{"capacity_bytes", fit.capacity_bytes},
          {"fits", fit.asked.fits == true},
          {"device_bytes", fit.asked.device_bytes},
          {"largest_batch", BatchJson(fit.largest)},
          {"cheapest", SetJson(fit.cheapest)},
          {"largest_batch_of_cheapest",
           fit.largest_cheapest.has_value() ? BatchJson(*fit.largest_cheapest) : report::Json(nullptr)},
          {"least", SetJson(fit.least)},
          {"sets_tried", fit.sets_tried}};
}

}  // namespace ashlar::estimate
