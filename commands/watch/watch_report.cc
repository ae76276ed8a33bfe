#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "commands/shared/fields.h"
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

template <>
const Fields<answers::WatchRates>& FieldsOf<answers::WatchRates>() {
  static const auto* fields = new Fields<answers::WatchRates>(
      Fields<answers::WatchRates>("rates")
          .Add(
              "allocations_per_second", [](const auto& of) { return of.allocations; }, "Blocks handed out.")
          .AtLeast(0)
          .Add(
              "frees_per_second", [](const auto& of) { return of.frees; }, "Blocks freed by the program.")
          .AtLeast(0)
          .Add(
              "device_calls_per_second", [](const auto& of) { return of.device_calls; },
              "Segments obtained and returned, pages mapped and unmapped.")
          .AtLeast(0));
  return *fields;
}

template <>
const Fields<answers::WatchSecond>& FieldsOf<answers::WatchSecond>() {
  static const auto* fields = new Fields<answers::WatchSecond>(
      Fields<answers::WatchSecond>("second")
          .Add(
              "second", [](const auto& of) { return of.second; }, "Since 1970.")
          .Add(
              "most_allocated_bytes", [](const auto& of) { return of.most_allocated_bytes; },
              "The most that was allocated within it.")
          .Add(
              "allocations", [](const auto& of) { return of.allocations; }, "Blocks handed out within it.")
          .Add(
              "frees", [](const auto& of) { return of.frees; }, "Blocks freed by the program within it.")
          .Add(
              "device_calls", [](const auto& of) { return of.device_calls; },
              "Segments obtained and returned, pages mapped and unmapped."));
  return *fields;
}

template <>
const Fields<answers::WatchAnswer>& FieldsOf<answers::WatchAnswer>() {
  using Answer = answers::WatchAnswer;
  static const auto* fields = new Fields<Answer>(
      Fields<Answer>("watch")
          .Add(
              "source", [](const auto& of) { return of.source; }, "The file.")
          .Add(
              "device_total_bytes", [](const auto& of) { return of.total_bytes; }, "Memory of the device.")
          .Add(
              "reserved_bytes", [](const auto& of) { return of.accounting.reserved_bytes; },
              "All segments that the allocator holds, of all devices.")
          .Add(
              "allocated_bytes", [](const auto& of) { return of.accounting.allocated_bytes; }, "Blocks in use.")
          .Add(
              "stranded_bytes", [](const auto& of) { return of.accounting.stranded_bytes; },
              "Free bytes in segments that hold a block in use.")
          .Add(
              "whole_free_bytes", [](const auto& of) { return of.accounting.whole_free_bytes; },
              "Segments without a block in use.")
          .Add(
              "pending_bytes", [](const auto& of) { return of.accounting.pending_bytes; },
              "Freed, waiting for another stream.")
          .Add(
              "private_pool_bytes", [](const auto& of) { return of.accounting.private_pool_bytes; },
              "Free bytes in private pools.")
          .Add(
              "largest_free_bytes", [](const auto& of) { return of.largest_free_bytes; },
              "The largest free block of the cache.")
          .Add(
              "peak_allocated_bytes", [](const auto& of) { return of.peak_allocated_bytes; },
              "The most that was allocated since the recording began.")
          .Add(
              "events", [](const auto& of) { return of.events; }, "Since the recording began.")
          .Add(
              "ooms", [](const auto& of) { return of.ooms; }, "Out-of-memory events since the recording began.")
          .Add(
              "begin_us", [](const auto& of) { return of.begin_us; }, "Of the first event, microseconds since 1970.")
          .Add(
              "last_us", [](const auto& of) { return of.last_us; }, "Of the last event.")
          .Add(
              "has_ended", [](const auto& of) { return of.has_ended; },
              "Whether the recording has its end: nothing more will come.")
          .Add(
              "stopped", [](const auto& of) { return NonEmpty(of.stopped); },
              "Why nothing more will come though there is no end, such as that nobody writes the file any more.")
          .Add(
              "rates", [](const auto& of) { return of.rates; }, "Over the last five seconds of the recording.")
          .Add(
              "minute", [](const auto& of) { return of.minute; },
              "Each of the recording's last 60 seconds, oldest first."));
  return *fields;
}

std::string ToJson(const answers::WatchAnswer& answer) {
  return FieldsOf<answers::WatchAnswer>().ToJson(answer).ToText();
}

std::string WatchSchema() {
  return SchemaTextOf<answers::WatchAnswer>(
      "watch", "Where a recorded run is, as far as its file says. Null means that the file does not tell.");
}

}  // namespace ashlar::report
