// What grew between two inputs, for people: one screen of text, or Markdown to paste into an issue.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "commands/diff/diff.h"
#include "commands/shared/held_text.h"
#include "commands/shared/layout.h"
#include "commands/shared/markdown.h"

namespace ashlar::report {
namespace {

using analyses::DiffRow;
using analyses::NameDiffRow;

constexpr std::size_t kMostRows = 7;  // of each view
constexpr std::size_t kPartWidth = 70;
constexpr std::size_t kInputWidth = 120;

std::string Grown(std::uint64_t a, std::uint64_t b) {
  if (a == b) return "0 B";
  return b > a ? absl::StrCat("+", FormatBytes(b - a)) : absl::StrCat("-", FormatBytes(a - b));
}

// A row of any view.
struct ViewRow {
  std::string label;
  std::string blocks;  // "3 -> 15 blocks"; empty: the view does not show them
  std::uint64_t a_bytes = 0, b_bytes = 0;
  bool is_in_a = false, is_in_b = false;
};

struct DiffView {
  std::string title;
  std::string remark;
  std::vector<ViewRow> rows;  // those that differ most first

  std::size_t Changed() const {
    return static_cast<std::size_t>(
        std::count_if(rows.begin(), rows.end(), [](const ViewRow& row) { return row.a_bytes != row.b_bytes; }));
  }
};

DiffView ViewOf(const char* title, const std::string& remark, const std::vector<DiffRow>& rows) {
  DiffView out{title, remark, {}};
  for (const DiffRow& row : rows) {
    out.rows.push_back(
        {row.label, "", row.a.bytes.reserved_bytes, row.b.bytes.reserved_bytes, !row.a.IsEmpty(), !row.b.IsEmpty()});
  }
  return out;
}

std::string FromTo(const std::string& a, const std::string& b) { return a == b ? b : absl::StrCat(a, " -> ", b); }

std::string NamedShare(const analyses::HeldByName& held) {
  const double share =
      held.live_bytes == 0 ? 100 : 100 * static_cast<double>(held.named_bytes) / static_cast<double>(held.live_bytes);
  return absl::StrFormat("%.1f %%", share);
}

DiffView NameView(const answers::DiffAnswer& report) {
  const analyses::HeldByName& a = *report.a.held;
  const analyses::HeldByName& b = *report.b.held;
  DiffView out{"BY NAME",
               absl::StrCat("live tensors by who holds them; sums to ", Grown(a.live_bytes, b.live_bytes),
                            "; A has names of ", NamedShare(a), ", B of ", NamedShare(b)),
               {}};
  for (const NameDiffRow& row : *report.by_name) {
    out.rows.push_back({HolderText(row.holder),
                        absl::StrCat(FromTo(FormatCount(row.a.blocks), FormatCount(row.b.blocks)), " blocks"),
                        row.a.bytes, row.b.bytes, row.a.blocks > 0, row.b.blocks > 0});
  }
  return out;
}

std::vector<DiffView> ViewsOf(const answers::DiffAnswer& report) {
  const core::Accounting& a = report.diff.a.bytes;
  const core::Accounting& b = report.diff.b.bytes;
  const std::string in_use =
      absl::StrCat("sums to ", Grown(a.allocated_bytes + a.pending_bytes, b.allocated_bytes + b.pending_bytes));
  std::vector<DiffView> out;
  if (report.by_name.has_value()) out.push_back(NameView(report));
  if (report.has_stacks) {
    out.push_back(ViewOf("BY STACK", absl::StrCat("blocks in use; ", in_use), report.diff.by_stack));
  }
  if (report.has_phases) {
    out.push_back(ViewOf("BY PHASE", absl::StrCat("of the allocation; ", in_use), report.diff.by_phase));
  }
  out.push_back(ViewOf("BY SIZE", absl::StrCat("blocks in use; ", in_use), report.diff.by_size));
  out.push_back(ViewOf("BY SEGMENT", absl::StrCat("sums to ", Grown(a.reserved_bytes, b.reserved_bytes), " reserved"),
                       report.diff.by_segment));
  return out;
}

struct PartPair {
  const char* name;
  std::uint64_t a, b;
};

std::vector<PartPair> BothAccountings(const answers::DiffAnswer& report) {
  const core::Accounting& a = report.diff.a.bytes;
  const core::Accounting& b = report.diff.b.bytes;
  std::vector<PartPair> out;
  if (a.live_bytes.has_value() && b.live_bytes.has_value()) {
    out.push_back({"live tensors", *a.live_bytes, *b.live_bytes});
    out.push_back({"rounding", *a.rounding_bytes, *b.rounding_bytes});
  } else {
    out.push_back({"live blocks", a.allocated_bytes, b.allocated_bytes});
  }
  out.push_back({"pending frees", a.pending_bytes, b.pending_bytes});
  out.push_back({"stranded", a.stranded_bytes, b.stranded_bytes});
  out.push_back({"whole-free segments", a.whole_free_bytes, b.whole_free_bytes});
  out.push_back({"private pools' holes", a.private_pool_bytes, b.private_pool_bytes});
  out.push_back({"= reserved", a.reserved_bytes, b.reserved_bytes});
  return out;
}

std::string Presence(const ViewRow& row) {
  if (!row.is_in_a) return "only in B";
  if (!row.is_in_b) return "only in A";
  return absl::StrCat(FormatBytes(row.a_bytes), " -> ", FormatBytes(row.b_bytes));
}

std::string Rows(std::size_t count) { return absl::StrCat(FormatCount(count), count == 1 ? " row" : " rows"); }

// What the rows from `shown` on sum to.
std::string GrownFrom(const DiffView& view, std::size_t shown) {
  std::uint64_t a = 0, b = 0;
  for (std::size_t i = shown; i < view.rows.size(); ++i) {
    a += view.rows[i].a_bytes;
    b += view.rows[i].b_bytes;
  }
  return Grown(a, b);
}

// A row in three forms: of a narrow terminal without the count of blocks, then without what was and is.
RowTexts ViewRowForms(const ViewRow& row) {
  constexpr std::size_t kBeforeLabel = 44, kBeforeOnlyLabel = 17;
  const std::string blocks = row.blocks.empty() ? "" : absl::StrCat(", ", row.blocks);
  const std::string label = Printable(row.label);
  const std::string grown = absl::StrFormat("  %13s  ", Grown(row.a_bytes, row.b_bytes));
  const std::string both = absl::StrFormat("%s%-26s ", grown, Presence(row));
  return {absl::StrCat(both, Shortened(label, kPartWidth - std::min(kPartWidth, blocks.size())), blocks),
          absl::StrCat(both, MiddleCut(label, LabelRoom(kBeforeLabel, kPartWidth))),
          absl::StrCat(grown, MiddleCut(label, LabelRoom(kBeforeOnlyLabel, kPartWidth)))};
}

// Rows without a difference are not shown but counted.
void AppendDiffView(const DiffView& view, std::string& out) {
  const std::size_t changed = view.Changed();
  AppendSection(view.title, view.remark, out);
  const std::size_t shown = std::min(changed, kMostRows);
  std::vector<RowTexts> forms(3);
  for (std::size_t i = 0; i < shown; ++i) {
    const RowTexts row = ViewRowForms(view.rows[i]);
    for (std::size_t form = 0; form < forms.size(); ++form) forms[form].push_back(row[form]);
  }
  AppendRows(forms, out);
  if (shown < changed) {
    out += absl::StrFormat("  %13s  in %s more (--json has them)\n", GrownFrom(view, shown), Rows(changed - shown));
  }
  if (changed < view.rows.size()) {
    out += absl::StrFormat("  %13s  in %s of equal size\n", "0 B", Rows(view.rows.size() - changed));
  }
}

void AppendInput(const char* letter, const answers::DiffInput& input, std::string& out) {
  absl::StrAppend(&out, "  ", letter, "  ", Shortened(Printable(input.name), kInputWidth), "\n     ",
                  Shortened(Printable(absl::StrCat(input.source, "; at ", input.moment)), kInputWidth), "\n");
}

// Of a narrow terminal without A.
void AppendParts(const answers::DiffAnswer& report, std::string& out) {
  std::vector<RowTexts> forms(2);
  const auto add = [&](const std::string& name, const std::string& a, const std::string& b, const std::string& grown) {
    forms[0].push_back(absl::StrFormat("%-22s %12s %12s %13s", name, a, b, grown));
    forms[1].push_back(absl::StrFormat("%-22s %12s %13s", name, b, grown));
  };
  add("WHERE THE MEMORY IS", "A", "B", "B - A");
  for (const PartPair& part : BothAccountings(report)) {
    add(absl::StrCat("  ", part.name), FormatBytes(part.a), FormatBytes(part.b), Grown(part.a, part.b));
  }
  AppendRows(forms, out);
}

std::string Headline(const answers::DiffAnswer& report) {
  const core::Accounting& a = report.diff.a.bytes;
  const core::Accounting& b = report.diff.b.bytes;
  return absl::StrCat("reserved ", Grown(a.reserved_bytes, b.reserved_bytes), ", allocated ",
                      Grown(a.allocated_bytes, b.allocated_bytes));
}

}  // namespace

std::string ToText(const answers::DiffAnswer& report) {
  std::string out = absl::StrCat("DIFF  ", Headline(report), "\n");
  AppendInput("A", report.a, out);
  AppendInput("B", report.b, out);
  out += "\n";
  AppendParts(report, out);
  for (const DiffView& view : ViewsOf(report)) AppendDiffView(view, out);
  for (const trace::Note& note : report.notes) {
    absl::StrAppend(&out, "note: ", Shortened(Printable(note.message), kInputWidth), "\n");
  }
  return out;
}

std::string ToMarkdown(const answers::DiffAnswer& report) {
  std::string out = absl::StrCat("### ", MarkdownText(Headline(report)), "\n\n");
  for (const auto& [letter, input] : {std::pair("A", &report.a), std::pair("B", &report.b)}) {
    absl::StrAppend(&out, "- **", letter, "** ",
                    MarkdownText(absl::StrCat(input->name, ": ", input->source, "; at ", input->moment)), "\n");
  }
  std::vector<MarkdownCells> parts;
  for (const PartPair& part : BothAccountings(report)) {
    parts.push_back({part.name, FormatBytes(part.a), FormatBytes(part.b), Grown(part.a, part.b)});
  }
  AppendMarkdownTable("Where the memory is", "", {"part", "A", "B", "B - A"}, {"---", "---:", "---:", "---:"}, parts,
                      out);
  for (const DiffView& view : ViewsOf(report)) {
    std::vector<MarkdownCells> rows;
    const std::size_t shown = std::min(view.Changed(), kMostRows);
    for (std::size_t i = 0; i < shown; ++i) {
      const ViewRow& row = view.rows[i];
      rows.push_back({Grown(row.a_bytes, row.b_bytes), Presence(row), row.blocks, MarkdownText(row.label)});
    }
    if (shown < view.rows.size()) {
      rows.push_back({GrownFrom(view, shown), "", "", absl::StrCat("in ", Rows(view.rows.size() - shown), " more")});
    }
    AppendMarkdownTable(view.title, absl::StrCat(" (", MarkdownText(view.remark), ")"), {"B - A", "A -> B", "", ""},
                        {"---:", "---", "---", "---"}, rows, out);
  }
  for (const trace::Note& note : report.notes) absl::StrAppend(&out, "\n", MarkdownText(note.message), "\n");
  return out;
}

}  // namespace ashlar::report
