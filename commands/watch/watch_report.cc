#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "commands/shared/json_values.h"
#include "commands/shared/layout.h"
#include "commands/watch/watch.h"

namespace ashlar::report {
namespace {

constexpr std::size_t kBeforeWatchBar = 28;  // columns
constexpr std::size_t kMostWatchCells = 60;
constexpr std::array<absl::string_view, 8> kWatchEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
constexpr std::array<absl::string_view, 8> kWatchHeights = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

std::string WatchBar(std::uint64_t bytes, std::uint64_t most, std::size_t cells) {
  if (most == 0) return "";
  const double share = std::min(1.0, static_cast<double>(bytes) / static_cast<double>(most));
  const auto eighths = static_cast<std::size_t>(std::lround(share * static_cast<double>(8 * cells)));
  std::string out;
  for (std::size_t i = 0; i < eighths / 8; ++i) out += "█";
  return absl::StrCat(out, kWatchEighths[eighths % 8]);
}

std::string WatchRow(absl::string_view name, std::uint64_t bytes, std::uint64_t most, std::size_t width) {
  std::string out = absl::StrFormat("  %-13s %11s", name, FormatBytes(bytes));
  if (width > kBeforeWatchBar + 4) {
    absl::StrAppend(&out, " ", WatchBar(bytes, most, std::min(kMostWatchCells, width - kBeforeWatchBar)));
  }
  return out;
}

std::string PerSecond(double rate) {
  if (rate > 0 && rate < 10) return absl::StrFormat("%.1f/s", rate);
  return absl::StrCat(FormatCount(static_cast<std::uint64_t>(std::llround(rate))), "/s");
}

// The last seconds that have room, each as high as what was allocated in it.
std::string WatchCurve(const answers::WatchAnswer& answer, std::size_t width) {
  const std::size_t cells = std::min(answer.minute.size(), width > 4 ? width - 2 : width);
  std::uint64_t most = 1;
  for (const answers::WatchSecond& second : answer.minute) most = std::max(most, second.most_allocated_bytes);
  std::string out;
  for (auto second = answer.minute.end() - static_cast<std::ptrdiff_t>(cells); second != answer.minute.end();
       ++second) {
    const double share = static_cast<double>(second->most_allocated_bytes) / static_cast<double>(most);
    absl::StrAppend(&out, kWatchHeights[static_cast<std::size_t>(std::lround(share * 7))]);
  }
  return out;
}

double SecondsOf(const answers::WatchAnswer& answer) {
  return answer.last_us.has_value() ? static_cast<double>(*answer.last_us - *answer.begin_us) / 1e6 : 0;
}

// Texts of one column a byte, side by side as many as fit.
void AppendPacked(const std::vector<std::string>& texts, std::size_t width, std::string& out) {
  std::size_t column = 0;
  for (const std::string& text : texts) {
    if (text.empty()) continue;
    if (column > 0 && column + 3 + text.size() > width) {
      out += "\n";
      column = 0;
    }
    absl::StrAppend(&out, column == 0 ? "  " : "   ", Shortened(text, width > 2 ? width - 2 : 0));
    column += (column == 0 ? 2 : 3) + text.size();
  }
  out += "\n";
}

}  // namespace

std::string ToText(const answers::WatchAnswer& answer, std::size_t width) {
  const core::Accounting& now = answer.accounting;
  const std::uint64_t most = std::max({now.reserved_bytes, answer.total_bytes.value_or(0), std::uint64_t{1}});
  std::string out = absl::StrCat(MiddleCut(Printable(answer.source), width), "\n");
  if (answer.total_bytes.has_value()) absl::StrAppend(&out, WatchRow("device", *answer.total_bytes, most, width), "\n");
  absl::StrAppend(&out, WatchRow("reserved", now.reserved_bytes, most, width), "\n");
  absl::StrAppend(&out, WatchRow("allocated", now.allocated_bytes, most, width), "\n");
  absl::StrAppend(&out, WatchRow("stranded", now.stranded_bytes, most, width), "\n");
  absl::StrAppend(&out, WatchRow("largest free", answer.largest_free_bytes, most, width), "\n");
  std::vector<std::string> counts;
  if (answer.rates.has_value()) {
    counts = {absl::StrCat("allocs ", PerSecond(answer.rates->allocations)),
              absl::StrCat("frees ", PerSecond(answer.rates->frees)),
              absl::StrCat("device calls ", PerSecond(answer.rates->device_calls))};
  } else {
    counts = {"rates: not in this trace, its events have no time"};
  }
  counts.push_back(absl::StrCat("out of memory ", FormatCount(answer.ooms)));
  AppendPacked(counts, width, out);
  AppendPacked({absl::StrCat("peak allocated ", FormatBytes(answer.peak_allocated_bytes)),
                absl::StrCat(FormatCount(answer.events), " events"), absl::StrFormat("%.1f s", SecondsOf(answer)),
                answer.has_ended ? "ended" : "not ended", answer.stopped},
               width, out);
  if (!answer.minute.empty()) {
    AppendPacked({absl::StrCat("allocated in the last ", answer.minute.size(), " s:")}, width, out);
    absl::StrAppend(&out, width > 4 ? "  " : "", WatchCurve(answer, width), "\n");
  }
  return out;
}

std::string ToLine(const answers::WatchAnswer& answer) {
  const core::Accounting& now = answer.accounting;
  std::string out =
      absl::StrFormat("%.1f s  reserved %s  allocated %s  stranded %s  largest free %s", SecondsOf(answer),
                      FormatBytes(now.reserved_bytes), FormatBytes(now.allocated_bytes),
                      FormatBytes(now.stranded_bytes), FormatBytes(answer.largest_free_bytes));
  if (answer.rates.has_value()) {
    absl::StrAppend(&out, "  allocs ", PerSecond(answer.rates->allocations), "  frees ", PerSecond(answer.rates->frees),
                    "  device calls ", PerSecond(answer.rates->device_calls));
  }
  return absl::StrCat(out, answer.ooms > 0 ? absl::StrCat("  out of memory ", FormatCount(answer.ooms)) : "",
                      answer.has_ended ? "  ended" : "", answer.stopped.empty() ? "" : "  ", answer.stopped, "\n");
}

std::string ToJson(const answers::WatchAnswer& answer) {
  const core::Accounting& now = answer.accounting;
  Json out = {{"source", answer.source},
              {"device_total_bytes", OrNull(answer.total_bytes)},
              {"reserved_bytes", now.reserved_bytes},
              {"allocated_bytes", now.allocated_bytes},
              {"stranded_bytes", now.stranded_bytes},
              {"whole_free_bytes", now.whole_free_bytes},
              {"pending_bytes", now.pending_bytes},
              {"private_pool_bytes", now.private_pool_bytes},
              {"largest_free_bytes", answer.largest_free_bytes},
              {"peak_allocated_bytes", answer.peak_allocated_bytes},
              {"events", answer.events},
              {"ooms", answer.ooms},
              {"begin_us", OrNull(answer.begin_us)},
              {"last_us", OrNull(answer.last_us)},
              {"has_ended", answer.has_ended},
              {"stopped", TextOrNull(answer.stopped)}};
  out["rates"] = nullptr;
  if (answer.rates.has_value()) {
    out["rates"] = {{"allocations_per_second", answer.rates->allocations},
                    {"frees_per_second", answer.rates->frees},
                    {"device_calls_per_second", answer.rates->device_calls}};
  }
  out["minute"] = Json::Array();
  for (const answers::WatchSecond& second : answer.minute) {
    out["minute"].Append({{"second", second.second},
                          {"most_allocated_bytes", second.most_allocated_bytes},
                          {"allocations", second.allocations},
                          {"frees", second.frees},
                          {"device_calls", second.device_calls}});
  }
  return out.ToText();
}

}  // namespace ashlar::report
