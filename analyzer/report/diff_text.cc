#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "analyzer/report/diff_report.h"
#include "analyzer/report/printable.h"

namespace ashlar::report {
namespace {

using analyses::DiffParts;
using analyses::DiffRow;

constexpr std::size_t kMostRows = 7;  // of each view
constexpr std::size_t kPartWidth = 70;
constexpr std::size_t kInputWidth = 120;

std::string Grown(std::uint64_t a, std::uint64_t b) {
  if (a == b) return "0 B";
  return b > a ? absl::StrCat("+", FormatBytes(b - a)) : absl::StrCat("-", FormatBytes(a - b));
}

void AppendPartPair(const char* name, std::uint64_t a, std::uint64_t b, std::string& out) {
  out += absl::StrFormat("  %-20s %12s %12s %13s\n", name, FormatBytes(a), FormatBytes(b), Grown(a, b));
}

void AppendBothAccountings(const DiffParts& whole_a, const DiffParts& whole_b, std::string& out) {
  const core::Accounting& a = whole_a.bytes;
  const core::Accounting& b = whole_b.bytes;
  out += absl::StrFormat("\n%-22s %12s %12s %13s\n", "WHERE THE MEMORY IS", "A", "B", "B - A");
  if (a.live_bytes.has_value() && b.live_bytes.has_value()) {
    AppendPartPair("live tensors", *a.live_bytes, *b.live_bytes, out);
    AppendPartPair("rounding", *a.rounding_bytes, *b.rounding_bytes, out);
  } else {
    AppendPartPair("live blocks", a.allocated_bytes, b.allocated_bytes, out);
  }
  AppendPartPair("pending frees", a.pending_bytes, b.pending_bytes, out);
  AppendPartPair("stranded", a.stranded_bytes, b.stranded_bytes, out);
  AppendPartPair("whole-free segments", a.whole_free_bytes, b.whole_free_bytes, out);
  AppendPartPair("private pools' holes", a.private_pool_bytes, b.private_pool_bytes, out);
  AppendPartPair("= reserved", a.reserved_bytes, b.reserved_bytes, out);
}

std::string Presence(const DiffRow& row) {
  if (row.a.IsEmpty()) return "only in B";
  if (row.b.IsEmpty()) return "only in A";
  return absl::StrCat(FormatBytes(row.a.bytes.reserved_bytes), " -> ", FormatBytes(row.b.bytes.reserved_bytes));
}

std::string Rows(std::size_t count) { return absl::StrCat(FormatCount(count), count == 1 ? " row" : " rows"); }

// Rows without a difference are not shown but counted.
void AppendView(const char* title, const std::vector<DiffRow>& rows, std::string& out) {
  const std::size_t changed = static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(), [](const DiffRow& row) { return row.GrownBytes() != 0; }));
  absl::StrAppend(&out, "\n", title, "\n");
  const std::size_t shown = std::min(changed, kMostRows);
  for (std::size_t i = 0; i < shown; ++i) {
    out += absl::StrFormat("  %13s  %-26s %s\n", Grown(rows[i].a.bytes.reserved_bytes, rows[i].b.bytes.reserved_bytes),
                           Presence(rows[i]), Shortened(Printable(rows[i].label), kPartWidth));
  }
  std::uint64_t rest_a = 0, rest_b = 0;
  for (std::size_t i = shown; i < rows.size(); ++i) {
    rest_a += rows[i].a.bytes.reserved_bytes;
    rest_b += rows[i].b.bytes.reserved_bytes;
  }
  if (shown < changed) {
    out += absl::StrFormat("  %13s  in %s more (--json has them)\n", Grown(rest_a, rest_b), Rows(changed - shown));
  }
  if (changed < rows.size()) {
    out += absl::StrFormat("  %13s  in %s of equal size\n", "0 B", Rows(rows.size() - changed));
  }
}

void AppendInput(const char* letter, const answers::DiffInput& input, std::string& out) {
  absl::StrAppend(&out, "  ", letter, "  ", Shortened(Printable(input.name), kInputWidth), "\n     ",
                  Shortened(Printable(absl::StrCat(input.source, "; at ", input.moment)), kInputWidth), "\n");
}

}  // namespace

std::string ToText(const answers::DiffAnswer& report) {
  const core::Accounting& a = report.diff.a.bytes;
  const core::Accounting& b = report.diff.b.bytes;
  std::string out = absl::StrCat("DIFF  reserved ", Grown(a.reserved_bytes, b.reserved_bytes), ", allocated ",
                                 Grown(a.allocated_bytes, b.allocated_bytes), "\n");
  AppendInput("A", report.a, out);
  AppendInput("B", report.b, out);
  AppendBothAccountings(report.diff.a, report.diff.b, out);
  const std::string in_use = Grown(a.allocated_bytes + a.pending_bytes, b.allocated_bytes + b.pending_bytes);
  if (report.has_stacks) {
    AppendView(absl::StrCat("BY STACK   (blocks in use; sums to ", in_use, ")").c_str(), report.diff.by_stack, out);
  }
  if (report.has_phases) {
    AppendView(absl::StrCat("BY PHASE   (of the allocation; sums to ", in_use, ")").c_str(), report.diff.by_phase, out);
  }
  AppendView(absl::StrCat("BY SIZE   (blocks in use; sums to ", in_use, ")").c_str(), report.diff.by_size, out);
  AppendView(absl::StrCat("BY SEGMENT   (sums to ", Grown(a.reserved_bytes, b.reserved_bytes), " reserved)").c_str(),
             report.diff.by_segment, out);
  for (const trace::Note& note : report.notes) {
    absl::StrAppend(&out, "note: ", Shortened(Printable(note.message), kInputWidth), "\n");
  }
  return out;
}

}  // namespace ashlar::report
