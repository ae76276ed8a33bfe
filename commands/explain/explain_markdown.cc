#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/base/units.h"
#include "commands/explain/explain_report.h"
#include "commands/explain/suggestions.h"
#include "commands/shared/held_text.h"
#include "commands/shared/layout.h"
#include "commands/shared/markdown.h"

namespace ashlar::report {
namespace {

constexpr std::size_t kMostMarkdownCauses = 3;
constexpr std::size_t kMostMarkdownNames = 10;

// A fence longer than any in the lines.
void AppendFence(absl::string_view language, const std::vector<std::string>& lines, std::string& out) {
  if (lines.empty()) return;
  std::string fence = "```";
  for (const std::string& line : lines) {
    while (absl::StrContains(line, fence)) fence += "`";
  }
  absl::StrAppend(&out, "\n", fence, language, "\n");
  for (const std::string& line : lines) absl::StrAppend(&out, Printable(line), "\n");
  absl::StrAppend(&out, fence, "\n");
}

void AppendVerdict(const answers::Explanation& e, std::string& out) {
  absl::StrAppend(&out, "### ", MarkdownText(e.verdict.headline), "\n\n");
  const std::string verdict = analyses::VerdictWords(e.verdict.kind);
  const bool is_sure = e.verdict.is_certain || e.verdict.kind == analyses::OomVerdict::kUnknown;
  absl::StrAppend(&out, "**Verdict: ", MarkdownText(verdict), is_sure ? "**" : "** (not certain)", "\n");
  for (const std::string& sentence : e.verdict.evidence) absl::StrAppend(&out, "- ", MarkdownText(sentence), "\n");
  if (e.elsewhere.has_value()) absl::StrAppend(&out, "\n**Would it fit?** ", MarkdownText(e.elsewhere->sentence), "\n");
}

void AppendWhatToDo(const answers::Explanation& e, std::string& out) {
  const std::vector<answers::Suggestion> actions = answers::SuggestionsOf(e);
  if (actions.empty()) return;
  const bool is_proven = actions.front().proof != answers::Proof::kUnproven;
  absl::StrAppend(&out, "\n**",
                  is_proven ? "Fix**" : absl::StrCat("Try first** (", answers::ProofWords(actions.front().proof), ")"),
                  "\n");
  for (const answers::Suggestion& action : actions) {
    const bool is_said = action.proof == answers::Proof::kUnproven;  // by the title
    const std::string proof = is_said ? "" : std::string(answers::ProofName(action.proof));
    const std::string gain = absl::StrCat(proof, proof.empty() || action.gain.empty() ? "" : ": ", action.gain);
    const std::string remark = gain.empty() ? "" : absl::StrCat("(", gain, ")");
    const std::string what = absl::StrCat(action.what, action.what.empty() || remark.empty() ? "" : " ", remark);
    if (!what.empty()) absl::StrAppend(&out, "\n", MarkdownText(what), "\n");
    AppendFence("", action.lines, out);
  }
}

void AppendRaised(const answers::Explanation& e, std::string& out) {
  if (!e.failure.raised_at.has_value()) return;
  absl::StrAppend(&out, "\n**Raised at** ", MarkdownText(absl::StrJoin(e.failure.raised_at->path, " > ")), "\n");
  if (!e.failure.raised_at->code.empty()) AppendFence("python", {e.failure.raised_at->code}, out);
}

void AppendWhere(const answers::Explanation& e, std::string& out) {
  const answers::OomAccounting& a = e.memory.accounting;
  std::vector<MarkdownCells> rows;
  const auto add = [&rows](absl::string_view name, const std::optional<std::uint64_t>& bytes) {
    if (bytes.value_or(0) > 0) rows.push_back({std::string(name), FormatBytes(*bytes)});
  };
  if (a.live_bytes.has_value()) {
    add("live tensors", a.live_bytes);
    add("rounding", a.rounding_bytes);
  } else {
    add("live blocks", a.allocated_bytes);
  }
  add("pending frees", a.pending_bytes);
  add("stranded", a.stranded_bytes);
  add("whole-free segments", a.whole_free_bytes);
  add("private pools' holes", a.private_pool_bytes);
  add("outside PyTorch's allocator", a.outside_bytes);
  add("free on the device", a.free_bytes);
  add("= the device", a.total_bytes);
  AppendMarkdownTable("Where the memory went", absl::StrCat(" (at ", MarkdownText(e.memory.moment), ")"),
                      {"part", "bytes"}, {"---", "---:"}, rows, out);
}

void AppendWhy(const answers::Explanation& e, std::string& out) {
  std::vector<MarkdownCells> rows;
  for (const answers::ExplainedCause& cause : e.why.causes) {
    if (cause.finding.finding != analyses::Finding::kFound || rows.size() == kMostMarkdownCauses) break;
    rows.push_back({FormatBytes(cause.finding.bytes), std::string(analyses::ConfidenceName(cause.finding.confidence)),
                    MarkdownText(absl::StrCat(analyses::CauseSentence(cause.finding.kind), ": ",
                                              cause.finding.evidence.empty() ? "" : cause.finding.evidence.front()))});
  }
  AppendMarkdownTable("Why", "", {"bytes", "", "cause"}, {"---:", "---", "---"}, rows, out);
}

void AppendNames(const answers::Explanation& e, std::string& out) {
  if (!e.memory.holders.names.has_value()) return;
  std::vector<MarkdownCells> rows;
  for (const analyses::HeldRow& row : e.memory.holders.names->rows) {
    if (rows.size() == kMostMarkdownNames) break;
    rows.push_back({FormatBytes(row.bytes), FormatCount(row.blocks),
                    MarkdownText(absl::StrCat(HolderText(row.holder), GrowthText(row.growth)))});
  }
  AppendMarkdownTable("Who holds it", absl::StrCat(" (at ", MarkdownText(e.memory.holders.names->when), ")"),
                      {"bytes", "blocks", "name"}, {"---:", "---:", "---"}, rows, out);
}

void AppendHolders(const answers::Explanation& e, std::string& out) {
  std::vector<MarkdownCells> rows;
  for (const analyses::LabelledStack& stack : e.memory.holders.stacks) {
    rows.push_back({FormatBytes(stack.bytes), FormatCount(stack.blocks), MarkdownText(stack.label)});
  }
  AppendMarkdownTable(e.memory.holders.names.has_value() ? "Allocated by" : "Who holds it", "",
                      {"bytes", "blocks", "line"}, {"---:", "---:", "---"}, rows, out);
}

void AppendByLibraryTable(const answers::Explanation& e, std::string& out) {
  if (!e.memory.by_library.has_value() || e.memory.by_library->owners.size() < 2) return;
  std::vector<MarkdownCells> rows;
  for (const answers::OwnedBytes& of : e.memory.by_library->owners) {
    rows.push_back({FormatBytes(of.bytes), FormatCount(of.blocks), MarkdownText(of.owner)});
  }
  if (e.memory.by_library->rest_bytes.has_value()) {
    rows.push_back({FormatBytes(*e.memory.by_library->rest_bytes), "", "beside: the context, kernels, others"});
  }
  AppendMarkdownTable("By library", "", {"bytes", "blocks", "library"}, {"---:", "---:", "---"}, rows, out);
}

void AppendSettings(const answers::Explanation& e, std::string& out) {
  std::vector<MarkdownCells> rows;
  for (const whatif::WhatIfRow& row : e.what_ifs.rows) {
    const std::string conf =
        absl::StrCat(row.conf.empty() ? "default" : row.conf, row.is_baseline ? " (recorded)" : "");
    rows.push_back(
        {MarkdownText(conf), FormatBytes(row.peak_reserved_bytes), FormatCount(row.driver_calls), WhatIfOutcome(row)});
  }
  AppendMarkdownTable("What would have helped", "", {"settings", "peak", "driver calls", ""},
                      {"---", "---:", "---:", "---"}, rows, out);
  const bool is_said = answers::SaysWhatActionsSay(e);
  if (!is_said && !e.what_ifs.advice.sentence.empty())
    absl::StrAppend(&out, "\n", MarkdownText(e.what_ifs.advice.sentence), "\n");
  if (!e.what_ifs.own.has_value() || e.what_ifs.own->sentence.empty()) return;
  absl::StrAppend(&out, "\n", MarkdownText(e.what_ifs.own->sentence), "\n");
}

void AppendFolded(const answers::Explanation& e, std::string& out) {
  absl::StrAppend(&out, "\n<details><summary>Notes</summary>\n\n- read: ", MarkdownText(e.source), "\n");
  if (!e.what_ifs.replayed_as.empty()) absl::StrAppend(&out, "- ", MarkdownText(e.what_ifs.replayed_as), "\n");
  for (const trace::Note& note : e.notes) {
    absl::StrAppend(&out, "- ", MarkdownText(note.message), note.count > 1 ? absl::StrCat(" (", note.count, ")") : "",
                    "\n");
  }
  out += "\n</details>\n";
}

}  // namespace

std::string ToMarkdown(const std::vector<answers::Explanation>& explanations) {
  std::string out;
  for (const answers::Explanation& e : explanations) {
    if (!out.empty()) out += "\n---\n\n";
    AppendVerdict(e, out);
    AppendWhatToDo(e, out);
    AppendRaised(e, out);
    AppendWhere(e, out);
    AppendWhy(e, out);
    AppendNames(e, out);
    AppendHolders(e, out);
    AppendByLibraryTable(e, out);
    AppendSettings(e, out);
    if (!e.verdict.next.sentence.empty())
      absl::StrAppend(&out, "\n**Next** ", MarkdownText(e.verdict.next.sentence), "\n");
    AppendFence(e.verdict.next.is_command ? "sh" : "python", e.verdict.next.lines, out);
    AppendFolded(e, out);
  }
  return out;
}

}  // namespace ashlar::report
