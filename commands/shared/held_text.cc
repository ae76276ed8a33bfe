#include "commands/shared/held_text.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "allocator/base/units.h"
#include "commands/shared/layout.h"

namespace ashlar::report {
namespace {

constexpr std::size_t kMostHeldRows = 8;
constexpr std::size_t kHeldWidth = 104;

struct KindWords {
  absl::string_view kind;
  absl::string_view words;  // behind the name
};

// Kinds whose name says it by itself are left out.
constexpr std::array<KindWords, 11> kKindWords = {{
    {"parameter", "parameter"},
    {"buffer", "buffer"},
    {"gradient", "gradient"},
    {"optimizer_state", "optimizer state"},
    {"graph", "its graph"},
    {"closure", "closure"},
    {"traceback", "held by a traceback"},
    {"generator", "of a generator"},
    {"hook", "held by a hook"},
    {"cycle", "gc.collect() frees it"},
    {"unseen", "by C++, or an expression"},
}};

std::string WordsOf(const trace::Holder& holder) {
  if (!holder.variables.empty()) {
    return absl::StrCat(holder.kind == "traceback" ? "frames of its error: " : "functions over ",
                        Printable(absl::StrJoin(holder.variables, ", ")));
  }
  if (holder.kind == "graph" && holder.nodes > 0) return absl::StrCat("graph of ", FormatCount(holder.nodes), " nodes");
  const auto* const found = std::find_if(kKindWords.begin(), kKindWords.end(),
                                         [&holder](const KindWords& one) { return one.kind == holder.kind; });
  return found == kKindWords.end() ? "" : std::string(found->words);
}

bool HasVariable(const trace::Holder& holder) {
  constexpr std::array<absl::string_view, 6> kWithout = {"not_found", "unseen",     "workspace",
                                                         "temporary", "graph_pool", "bucket"};
  return std::find(kWithout.begin(), kWithout.end(), holder.kind) == kWithout.end();
}

}  // namespace

std::string HolderText(const trace::Holder& holder) {
  std::string out = Printable(holder.name);
  if (const std::string words = WordsOf(holder); !words.empty()) absl::StrAppend(&out, " (", words, ")");
  if (holder.file.empty()) return out;
  absl::StrAppend(&out, HasVariable(holder) ? " in " : ", allocated at ",
                  Printable(holder.file.substr(holder.file.rfind('/') + 1)));
  if (holder.line > 0) absl::StrAppend(&out, ":", holder.line);
  if (!holder.function.empty() && holder.function != "<module>") absl::StrAppend(&out, " ", Printable(holder.function));
  return out;
}

std::string GrowthText(const std::optional<analyses::HolderGrowth>& growth) {
  if (!growth.has_value()) return "";
  return absl::StrCat(", ", FormatBytes(growth->bytes_per_step), " a step since step ", growth->since_step);
}

void AppendHeld(const std::optional<analyses::HeldByName>& held, std::string& out) {
  if (!held.has_value() || held->rows.empty()) return;
  const double share = held->live_bytes == 0
                           ? 100
                           : 100 * static_cast<double>(held->named_bytes) / static_cast<double>(held->live_bytes);
  AppendSection("WHO HOLDS IT",
                absl::StrFormat("by its name in the program, at %s; %.1f %% of %s", held->when, share,
                                FormatBytes(held->live_bytes)),
                out);
  const std::size_t shown = held->rows.size() <= kMostHeldRows + 1 ? held->rows.size() : kMostHeldRows;
  std::vector<RowTexts> forms(2);
  for (std::size_t i = 0; i < shown; ++i) {
    const analyses::HeldRow& row = held->rows[i];
    const std::string growth = GrowthText(row.growth);
    const std::string bytes = absl::StrFormat("  %11s  ", FormatBytes(row.bytes));
    const std::string name = HolderText(row.holder);
    forms[0].push_back(absl::StrCat(bytes, absl::StrFormat("in %6s blocks  ", FormatCount(row.blocks)),
                                    MiddleCut(name, LabelRoom(32 + growth.size(), kHeldWidth)), growth));
    forms[1].push_back(absl::StrCat(bytes, MiddleCut(name, LabelRoom(15 + growth.size(), kHeldWidth)), growth));
  }
  AppendRows(forms, out);
  if (shown < held->rows.size()) {
    std::uint64_t bytes = 0;
    std::uint64_t blocks = 0;
    for (std::size_t i = shown; i < held->rows.size(); ++i) {
      bytes += held->rows[i].bytes;
      blocks += held->rows[i].blocks;
    }
    out += absl::StrFormat("  %11s  in %6s blocks  %s more names\n", FormatBytes(bytes), FormatCount(blocks),
                           FormatCount(held->rows.size() - shown));
  }
  if (!held->bound.empty()) {
    absl::StrAppend(&out, "  some names are missing: the look at the program's objects met its bound of ", held->bound,
                    "; --names allows it more time\n");
  }
}

}  // namespace ashlar::report
