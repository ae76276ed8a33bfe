#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "analyzer/estimate/report/estimate_report.h"
#include "analyzer/report/json_values.h"
#include "analyzer/report/layout.h"
#include "analyzer/report/printable.h"

namespace ashlar::estimate {
namespace {

using report::AppendSection;
using report::AppendWrapped;
using report::Printable;
using report::Shortened;

report::Json QuantilesJson(const Quantiles& of) {
  return {{"least", of.least}, {"median", of.median}, {"p95", of.p95}, {"most", of.most}};
}

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

report::Json ShufflesJson(const ShuffleResult& result) {
  report::Json out = {{"shuffles", result.shuffles},
                      {"steps", result.steps},
                      {"epoch_steps", result.epoch_steps},
                      {"batchings", report::Json::Array()},
                      {"rows", report::Json::Array()}};
  for (const ShuffleBatching& batching : result.batchings) {
    out["batchings"].Append({{"batching", std::string(BatchingName(batching.batching))},
                             {"padded_tokens", QuantilesJson(batching.padded_tokens)},
                             {"peak_requested_bytes", QuantilesJson(batching.requested)}});
  }
  for (const ShuffleRow& row : result.rows) {
    out["rows"].Append(
        {{"batching", std::string(BatchingName(row.batching))},
         {"conf", row.conf},
         {"is_asked", row.is_asked},
         {"memory_fraction", row.needs_fraction ? report::Json(1) : report::Json(nullptr)},
         {"failed", row.failed.has_value() ? report::Json(*row.failed) : report::Json(nullptr)},
         {"failed_step", row.failed_step.has_value() ? QuantilesJson(*row.failed_step) : report::Json(nullptr)},
         {"peak_reserved_bytes", row.reserved.has_value() ? QuantilesJson(*row.reserved) : report::Json(nullptr)}});
  }
  return out;
}

}  // namespace ashlar::estimate
