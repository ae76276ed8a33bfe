#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "allocator/base/units.h"
#include "analyzer/libraries/owners.h"
#include "commands/explain/explain_report.h"
#include "commands/explain/suggestions.h"
#include "commands/shared/held_text.h"
#include "commands/shared/layout.h"

namespace ashlar::report {
namespace {

constexpr std::size_t kMostBarCells = 36;
constexpr std::size_t kBeforeBar = 38;  // columns
constexpr std::size_t kMostCauses = 3;
constexpr std::size_t kScreenLines = 60;  // of an answer, for which the causes take what the rest leaves
constexpr std::size_t kSectionLines = 2;  // of a section: an empty one, and its title
constexpr std::size_t kCauseIndent = 6;
constexpr std::size_t kActionIndent = 15;
constexpr std::ptrdiff_t kVerdictLines = 2;
constexpr std::size_t kRemarkWidth = 124;
constexpr std::size_t kLabelWidth = 90;
constexpr std::size_t kRowWidth = 130;

// A bar of eighths: full cells, then one partial.
std::string Bar(std::uint64_t bytes, std::uint64_t most) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (most == 0 || bytes == 0) return "";
  const double cells = static_cast<double>(bytes) / static_cast<double>(most) *
                       static_cast<double>(std::min(kMostBarCells, TextWidth() - kBeforeBar));
  auto eighths = static_cast<std::size_t>(std::llround(cells * 8));
  if (eighths == 0) eighths = 1;
  std::string out;
  for (std::size_t i = 0; i < eighths / 8; ++i) out += "█";
  return out + kEighths[eighths % 8];
}

void AppendPart(absl::string_view name, const std::optional<std::uint64_t>& bytes, std::uint64_t most,
                const std::string& remark, std::string& out, const std::string& short_remark = "") {
  if (bytes.value_or(0) == 0) return;
  const std::string bare = absl::StrFormat("  %-20s %11s  %s", name, FormatBytes(*bytes), Bar(*bytes, most));
  const std::string before = absl::StrCat(bare, bare.back() == ' ' ? "" : "  ");
  AppendRows({{absl::StrCat(before, remark)}, {absl::StrCat(before, short_remark)}, {bare}}, out);
}

std::string PinRemark(const answers::Explanation& e) {
  if (!e.memory.pins.stranded_segments.has_value() || *e.memory.pins.stranded_segments == 0) return "";
  return absl::StrCat("free, but in ", FormatCount(*e.memory.pins.stranded_segments), " segments, behind ",
                      FormatCount(*e.memory.pins.pinning_blocks), " blocks in use");
}

void AppendAccounting(const answers::Explanation& e, std::string& out) {
  const answers::OomAccounting& a = e.memory.accounting;
  const bool is_calls = e.memory.at_end.has_value();
  if (is_calls && !a.total_bytes.has_value()) return;  // it would be one part of one
  const std::optional<std::uint64_t> whole = a.total_bytes.has_value() ? a.total_bytes : a.reserved_bytes;
  if (!whole.has_value()) return;
  const bool has_parts = a.allocated_bytes.has_value() || a.stranded_bytes.has_value() || a.outside_bytes.has_value() ||
                         a.free_bytes.has_value();
  AppendSection(absl::StrCat("WHERE ", FormatBytes(*whole), a.total_bytes.has_value() ? "" : " RESERVED", " WENT"),
                absl::StrCat("at ", e.memory.moment), out);
  if (!has_parts) out += "  not in this message\n";
  std::uint64_t most = 0;
  for (const auto& part : {a.live_bytes.has_value() ? a.live_bytes : a.allocated_bytes, a.stranded_bytes,
                           a.whole_free_bytes, a.private_pool_bytes, a.outside_bytes, a.free_bytes}) {
    most = std::max(most, part.value_or(0));
  }
  const bool is_rest_open = !is_calls && a.total_bytes.has_value() && a.reserved_bytes.has_value() &&
                            !a.outside_bytes.has_value() && !a.free_bytes.has_value();
  const std::uint64_t rest = is_rest_open ? *a.total_bytes - std::min(*a.total_bytes, *a.reserved_bytes) : 0;
  // What is used of a device by whomever, where only what is free of it is told.
  const bool is_use_open = !is_calls && a.total_bytes.has_value() && a.free_bytes.has_value() &&
                           !a.reserved_bytes.has_value() && !a.outside_bytes.has_value();
  const std::uint64_t used = is_use_open ? *a.total_bytes - std::min(*a.total_bytes, *a.free_bytes) -
                                               std::min(*a.total_bytes - std::min(*a.total_bytes, *a.free_bytes),
                                                        a.allocated_bytes.value_or(0))
                                         : 0;
  most = std::max({most, rest, used});
  if (a.live_bytes.has_value()) {
    AppendPart(is_calls ? "live allocations" : "live tensors", a.live_bytes, most, "", out);
    AppendPart("rounding", a.rounding_bytes, most, "what blocks span beyond the requests", out);
  } else {
    AppendPart("live blocks", a.allocated_bytes, most, "requests and rounding", out);
  }
  AppendPart("pending frees", a.pending_bytes, most, "freed by the program; another stream may still use them", out);
  AppendPart("stranded", a.stranded_bytes, most, PinRemark(e), out, "free, but in segments still in use");
  AppendPart("whole-free segments", a.whole_free_bytes, most, "cached; the allocator can return them", out);
  AppendPart("private pools' holes", a.private_pool_bytes, most, "free, for CUDA graphs and MemPools alone", out);
  // The context is CUDA's unless the message says whose it is.
  const bool is_other =
      e.failure.message.has_value() && (e.failure.message->family == "pt-xpu" ||
                                        e.failure.message->family == "pt-hip" || e.failure.message->family == "pt-npu");
  AppendPart("outside", a.outside_bytes, most,
             is_other ? "context, other libraries and processes" : "CUDA context, other libraries and processes", out);
  AppendPart(a.allocated_bytes.has_value() ? "others in use" : "in use", used, most, "by whom is not in this message",
             out);
  AppendPart("free on the device", a.free_bytes, most, "", out);
  AppendPart("outside or free", rest, most, "how much of each is not in this trace", out);
  if (e.memory.peak.utilisation.has_value()) {
    out += absl::StrFormat("  utilisation %.1f %%: peak allocated %s of peak reserved %s\n",
                           *e.memory.peak.utilisation * 100, FormatBytes(*e.memory.peak.allocated_bytes),
                           FormatBytes(*e.memory.peak.reserved_bytes));
  }
}

std::string FixRemark(const whatif::FixTest& fix) {
  return absl::StrCat(fix.change, ": peak ", FormatBytes(fix.before.peak_reserved_bytes), " -> ",
                      FormatBytes(fix.after.peak_reserved_bytes),
                      answers::Changed(fix.before.ooms, fix.after.ooms, " failed requests"),
                      answers::Changed(fix.before.retries, fix.after.retries, " retries"),
                      fix.removes_symptom ? ""
                      : fix.shows_symptom ? "; the symptom stays"
                                          : "; proves nothing here");
}

// The remarks on the fixes of the causes shown; one that was told already is not told again.
std::vector<std::string> FixRemarks(const answers::Explanation& e, std::size_t shown) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < shown; ++i) {
    std::string remark = e.why.causes[i].fix.has_value() ? FixRemark(*e.why.causes[i].fix) : "";
    const bool is_told = std::find(out.begin(), out.end(), remark) != out.end();
    out.push_back(is_told ? "" : std::move(remark));
  }
  return out;
}

}  // namespace

namespace {

// What speaks for an action; that nothing does yet is said once, of the first.
std::string ProofOf(const answers::Suggestion& action, bool is_first) {
  const bool is_said = action.proof == answers::Proof::kUnproven && !is_first;
  return is_said ? "" : std::string(answers::ProofWords(action.proof));
}

// " (14.00 GiB, estimated)", " (not tried yet)"; empty: nothing to say.
std::string InBrackets(const std::string& gain, const std::string& proof) {
  if (gain.empty() && proof.empty()) return "";
  return absl::StrCat(" (", gain, gain.empty() || proof.empty() ? "" : ", ", proof, ")");
}

}  // namespace

void AppendActions(const answers::Explanation& e, std::string& out) {
  const std::vector<answers::Suggestion> actions = answers::SuggestionsOf(e);
  if (actions.empty()) return;
  const std::string indent(kActionIndent, ' ');
  const bool is_proven = actions.front().proof != answers::Proof::kUnproven;
  absl::StrAppend(&out, is_proven ? "FIX            " : "TRY FIRST      ");
  bool has_changed = false;  // the program's lines are shown
  for (std::size_t i = 0; i < actions.size(); ++i) {
    const answers::Suggestion& action = actions[i];
    const bool is_change = !action.what.empty();
    const std::string proof = ProofOf(action, i == 0);
    if (i > 0) out += indent;
    if (is_change) {
      AppendWrapped(absl::StrCat(Printable(action.what), InBrackets(action.gain, proof)), kActionIndent, out);
      if (std::exchange(has_changed, true) && is_proven) continue;
    }
    for (std::size_t line = 0; line < action.lines.size(); ++line) {
      absl::StrAppend(&out, line > 0 || is_change ? indent : "", Printable(action.lines[line]), "\n");
    }
    if (is_change) continue;
    out += indent;
    AppendWrapped(absl::StrCat(proof, action.gain.empty() ? "" : absl::StrCat(": ", action.gain)), kActionIndent, out);
  }
}

namespace {

// A line for each cause. The lines that are left on the screen take the first fix, what speaks for each, other fixes.
void AppendCauses(const answers::Explanation& e, std::size_t lines_left, std::string& out) {
  std::size_t found = 0;
  for (const answers::ExplainedCause& cause : e.why.causes) found += cause.finding.finding == analyses::Finding::kFound;
  if (found == 0) return;
  const std::size_t shown = std::min(found, kMostCauses);
  const std::string which = found > shown ? absl::StrCat(shown, " of ", found, " causes; --json has all")
                            : found > 1   ? "first to fix on top; bytes may overlap"
                                          : "the cause found";
  AppendSection("WHY", absl::StrCat(which, "; ashlar guide ", analyses::CauseName(e.why.causes[0].finding.kind)), out);
  lines_left -= std::min(lines_left, kSectionLines + shown);
  std::vector<std::string> fixes = FixRemarks(e, shown);
  std::vector<std::string> evidence;
  if (!fixes.front().empty()) lines_left -= std::min<std::size_t>(lines_left, 1);
  for (std::size_t i = 0; i < shown; ++i) {
    evidence.push_back(lines_left == 0 ? "" : e.why.causes[i].finding.evidence.front());
    lines_left -= std::min<std::size_t>(lines_left, 1);
  }
  // A change of the program says more than all but the first fix.
  if (e.failure.recorded.has_value() && !e.why.remedies.empty()) lines_left = 0;
  for (std::size_t i = 1; i < shown; ++i) {
    if (lines_left == 0) fixes[i].clear();
    lines_left -= fixes[i].empty() ? 0 : 1;
  }
  const auto append_remark = [&out](const std::string& text) {
    const std::size_t room = LabelRoom(kCauseIndent, kRemarkWidth);
    absl::StrAppend(&out, std::string(kCauseIndent, ' '), ShortenedSentence(Printable(text), room), "\n");
  };
  for (std::size_t i = 0; i < shown; ++i) {
    const analyses::CauseFinding& finding = e.why.causes[i].finding;
    const std::string bytes = FormatBytes(finding.bytes);
    const std::string sentence =
        absl::StrCat(analyses::CauseSentence(finding.kind), finding.is_footnote ? " (lets this request pass)" : "");
    AppendRows({{absl::StrFormat("  %11s  %-8s  %s", bytes, analyses::ConfidenceName(finding.confidence), sentence)},
                {absl::StrFormat("  %11s  %s", bytes, sentence)}},
               out);
    if (!evidence[i].empty()) append_remark(evidence[i]);
    if (!fixes[i].empty()) append_remark(absl::StrCat("fix: ", fixes[i]));
  }
}

void AppendLines(const std::vector<analyses::LabelledStack>& lines, std::string& out) {
  for (const analyses::LabelledStack& row : lines) {
    out += absl::StrFormat("  %11s  in %6s blocks  %s\n", FormatBytes(row.bytes), FormatCount(row.blocks),
                           MiddleCut(Printable(row.label), LabelRoom(32, kLabelWidth)));
  }
}

// The path in lines of the report's width, each part whole.
void AppendRaisedAt(const answers::Explanation& e, std::string& out) {
  if (!e.failure.raised_at.has_value()) return;
  AppendSection("WHERE IN THE PROGRAM", "the traceback: the program's own lines, outermost first", out);
  out += "  ";
  AppendWrapped(absl::StrJoin(e.failure.raised_at->path, " > "), 2, out);
  if (!e.failure.raised_at->code.empty()) absl::StrAppend(&out, "    ", Printable(e.failure.raised_at->code), "\n");
}

void AppendStacks(const answers::Explanation& e, std::string& out) {
  if (e.memory.holders.stacks.empty()) return;
  std::string remark = absl::StrCat("live blocks by the line that allocated them, at the same moment",
                                    e.verdict.next.is_of_names ? "; by name: ashlar_gpu.names(FILE)" : "");
  if (e.memory.holders.names.has_value())
    remark = absl::StrCat("live blocks by the line that allocated them, at ", e.memory.moment);
  if (e.memory.at_end.has_value()) {
    remark = absl::StrCat("live allocations by the native line that made them, at ", e.memory.moment);
  }
  AppendSection(e.memory.holders.names.has_value() ? "ALLOCATED BY" : "WHO HOLDS IT", remark, out);
  AppendLines(e.memory.holders.stacks, out);
}

void AppendByLibrary(const answers::Explanation& e, std::string& out) {
  if (!e.memory.by_library.has_value()) return;
  const answers::ByLibrary& whose = *e.memory.by_library;
  if (whose.owners.size() < 2 && !whose.rest_bytes.has_value()) return;
  const bool is_beside = !e.memory.at_end.has_value();  // PyTorch's allocator
  AppendSection("BY LIBRARY",
                is_beside ? "what the process held of the device by the library that asked, as the snapshot was made"
                          : "live allocations by the library that asked the device for them, at the same moment",
                out);
  for (const answers::OwnedBytes& of : whose.owners) {
    out += absl::StrFormat("  %11s  in %6s blocks  %s\n", FormatBytes(of.bytes), FormatCount(of.blocks),
                           MiddleCut(Printable(libraries::OwnerAndFile(of.file)), LabelRoom(32, kLabelWidth)));
  }
  if (!whose.rest_bytes.has_value()) return;
  out += absl::StrFormat("  %11s  beside: ", FormatBytes(*whose.rest_bytes));
  AppendWrapped(absl::StrCat("the context, kernels, what pools hold, other processes: ",
                             is_beside ? "" : "the driver said ", FormatBytes(*whose.in_use_bytes), " in use"),
                15, out);
}

void AppendAtEnd(const answers::Explanation& e, std::string& out) {
  if (!e.memory.at_end.has_value() || e.memory.at_end->blocks == 0) return;
  AppendSection("NOT FREED",
                absl::StrCat(FormatBytes(e.memory.at_end->bytes), " in ", FormatCount(e.memory.at_end->blocks),
                             e.memory.at_end->blocks == 1 ? " allocation" : " allocations", " when the trace ends"),
                out);
  AppendLines(e.memory.at_end->lines, out);
}

void AppendLabels(const answers::Explanation& e, std::string& out) {
  if (e.memory.holders.labels.empty()) return;
  AppendSection("BY METADATA", "live blocks by the texts that the program put on them, at the same moment", out);
  for (const answers::LabelLine& row : e.memory.holders.labels) {
    out += absl::StrFormat("  %11s  in %6s blocks  %s (%s)\n", FormatBytes(row.bytes), FormatCount(row.blocks),
                           Shortened(Printable(row.label), LabelRoom(45, kLabelWidth - 13)),
                           answers::LabelKindName(row.kind));
  }
}

void AppendHost(const answers::Explanation& e, std::string& out) {
  if (!e.memory.host.has_value()) return;
  const answers::HostFigures& host = *e.memory.host;
  const auto peak = [](const std::optional<std::uint64_t>& bytes) {
    return bytes.has_value() ? FormatBytes(*bytes) : std::string("not known");
  };
  AppendSection("PINNED HOST MEMORY", "beside the device's, at the end of the recording", out);
  out += absl::StrFormat("  %11s  held, peak %s\n", FormatBytes(host.held_bytes), peak(host.peak_held_bytes));
  out += absl::StrFormat("  %11s  in use in %s %s, peak %s\n", FormatBytes(host.in_use_bytes), FormatCount(host.blocks),
                         host.blocks == 1 ? "block" : "blocks", peak(host.peak_in_use_bytes));
}

void AppendSizes(const answers::Explanation& e, std::string& out) {
  if (e.memory.holders.sizes.empty()) return;
  AppendSection("WHO HOLDS IT", "live blocks by size and stream, at the same moment: nothing in the input names them",
                out);
  for (const analyses::LiveSize& row : e.memory.holders.sizes) {
    out += absl::StrFormat("  %11s  in %6s blocks  of %s, stream %d\n", FormatBytes(row.bytes), FormatCount(row.blocks),
                           FormatBytes(row.block_bytes), Handle(row.stream));
  }
}

std::string ReplayRemark(const answers::Explanation& e) {
  std::string out = "each row replayed from an empty allocator";
  if (!e.what_ifs.fidelity.has_value()) return out;
  const replay::Fidelity& f = *e.what_ifs.fidelity;
  const double share = f.total == 0 ? 100.0 : 100.0 * static_cast<double>(f.matched) / static_cast<double>(f.total);
  absl::StrAppendFormat(&out, "; fidelity %.2f %%: %s of %s blocks where recorded", share, FormatCount(f.matched),
                        FormatCount(f.total));
  return out;
}

std::string WhatIfLine(const whatif::WhatIfRow& row, const std::string& name) {
  const std::string peak = FormatBytes(row.peak_reserved_bytes);
  const std::string calls = FormatCount(row.driver_calls);
  const std::string outcome = WhatIfOutcome(row);
  const std::string line = absl::StrFormat("  %-34s peak %11s   driver calls %7s   %s", name, peak, calls, outcome);
  if (line.size() <= kRowWidth) return std::string(absl::StripTrailingAsciiWhitespace(line));
  // A long name takes the room of the columns.
  absl::string_view rest = outcome;
  absl::ConsumePrefix(&rest, "gets past; ");
  return absl::StrCat("  ", name, "  peak ", peak, "  ", calls, " calls  ", rest);
}

// Without the calls, and as short as it ends.
std::string ShortWhatIfLine(const whatif::WhatIfRow& row, const std::string& name, std::size_t name_width,
                            const std::string& outcome) {
  return absl::StrFormat("  %-*s %11s  %s", static_cast<int>(name_width), MiddleCut(name, name_width),
                         FormatBytes(row.peak_reserved_bytes), outcome);
}

// "gets past", "2 OOM", "fits".
std::string BareOutcome(const whatif::WhatIfRow& row) {
  const std::string outcome = WhatIfOutcome(row);
  return outcome.substr(0, outcome.find(';'));
}

// The rows with their names; of a narrow terminal without the calls, then without what comes after.
void AppendWhatIfRows(const std::vector<std::pair<std::string, const whatif::WhatIfRow*>>& rows, std::string& out) {
  constexpr std::size_t kMostNameWidth = 30;
  std::size_t width = 0;
  for (const auto& [name, row] : rows) width = std::max(width, std::min(name.size(), kMostNameWidth));
  std::vector<RowTexts> forms(3);
  for (const auto& [name, row] : rows) {
    const char* const mark = row->is_baseline ? "   <- as recorded" : "";
    forms[0].push_back(absl::StrCat(WhatIfLine(*row, name), mark));
    forms[1].push_back(absl::StrCat(ShortWhatIfLine(*row, name, width, WhatIfOutcome(*row)), mark));
    forms[2].push_back(ShortWhatIfLine(*row, name, width, BareOutcome(*row)));
  }
  AppendRows(forms, out);
}

void AppendWhatIf(const answers::Explanation& e, std::string& out) {
  if (e.what_ifs.rows.empty() && (e.what_ifs.advice.sentence.empty() || answers::SaysWhatActionsSay(e))) return;
  AppendSection("WHAT WOULD HAVE HELPED", e.what_ifs.rows.empty() ? "" : ReplayRemark(e), out);
  std::vector<std::pair<std::string, const whatif::WhatIfRow*>> rows;
  for (const whatif::WhatIfRow& row : e.what_ifs.rows) rows.emplace_back(row.conf.empty() ? "default" : row.conf, &row);
  if (e.what_ifs.own.has_value()) {
    rows.emplace_back(absl::StrCat(e.what_ifs.own->row.conf, ", Ashlar's own"), &e.what_ifs.own->row);
  }
  if (!rows.empty()) AppendWhatIfRows(rows, out);
  for (const std::string& sentence :
       {e.what_ifs.advice.sentence, e.what_ifs.own.has_value() ? e.what_ifs.own->sentence : ""}) {
    if (sentence.empty()) continue;
    out += "  ";
    AppendWrapped(sentence, 2, out);
  }
}

void AppendNotes(const answers::Explanation& e, std::string& out) {
  AppendSection("NOTES", "", out);
  const auto add = [&out](const std::string& text) {
    out += "  - ";
    AppendWrapped(text, 4, out);
  };
  add(absl::StrCat("read: ", e.source));
  if (!e.what_ifs.replayed_as.empty()) add(e.what_ifs.replayed_as);
  if (e.what_ifs.fidelity.has_value() && !e.what_ifs.fidelity->IsExact()) {
    add(absl::StrCat("the replay of the recorded settings is not exact (segments ",
                     e.what_ifs.fidelity->segments_matched, " of ", e.what_ifs.fidelity->segments_total,
                     ", final state ",
                     e.what_ifs.fidelity->final_state_matches ? "equal" : e.what_ifs.fidelity->final_state_difference,
                     "): take what-ifs with care"));
  }
  for (const trace::Note& note : e.notes) {
    add(note.count > 1 ? absl::StrCat(note.message, " (", FormatCount(note.count), ")") : note.message);
  }
}

std::string AfterCauses(const answers::Explanation& e) {
  std::string out;
  AppendHeld(e.memory.holders.names, out);
  AppendStacks(e, out);
  AppendLabels(e, out);
  AppendHost(e, out);
  AppendByLibrary(e, out);
  AppendAtEnd(e, out);
  AppendSizes(e, out);
  AppendFailure(e.failure.recorded, out);
  AppendPins(e.memory.pins, out);
  AppendProgram(e.program, out);
  AppendWhatIf(e, out);
  if (!e.verdict.next.sentence.empty() && !e.verdict.next.is_of_names) {
    AppendSection("NEXT", "", out);
    out += "  ";
    AppendWrapped(e.verdict.next.sentence, 2, out);
    for (const std::string& line : e.verdict.next.lines) absl::StrAppend(&out, "    ", line, "\n");
  }
  AppendNotes(e, out);
  return out;
}

std::string KnownVerdict(const answers::Explanation& e) {
  const bool is_sure = e.verdict.is_certain || e.verdict.kind == analyses::OomVerdict::kUnknown;
  return absl::StrCat(analyses::VerdictWords(e.verdict.kind), is_sure ? "" : " (not certain)");
}

// "capacity: even without holes it is short by 2.39 GiB", "fragmentation (not certain): ...".
std::string VerdictSentence(const answers::Explanation& e) {
  const std::string verdict = analyses::VerdictWords(e.verdict.kind);
  const std::string known = KnownVerdict(e);
  if (e.verdict.evidence.empty()) return known;
  absl::string_view first = e.verdict.evidence.front();
  if (!absl::StartsWithIgnoreCase(first, verdict)) return absl::StrCat(known, ": ", first);
  return absl::StrCat(known, first.substr(verdict.size()));
}

bool FitsLines(const std::string& sentence, std::size_t indent, std::ptrdiff_t lines) {
  std::string out;
  AppendWrapped(sentence, indent, out);
  return std::count(out.begin(), out.end(), '\n') <= lines;
}

// What so many lines hold of a sentence, and the rest, so that what to do stands near the top: cut behind a clause that
// stands after the `known` bytes and in no brackets.
std::pair<std::string, std::string> CutToLines(const std::string& sentence, std::size_t known, std::size_t indent,
                                               std::ptrdiff_t lines) {
  if (FitsLines(sentence, indent, lines)) return {sentence, ""};
  for (std::size_t at = sentence.size() - 1; at > known; --at) {
    const std::string head = sentence.substr(0, at);
    const bool is_clause = sentence[at] == ' ' && absl::StrContains(".;:,", sentence.substr(at - 1, 1));
    const bool is_open = std::count(head.begin(), head.end(), '(') > std::count(head.begin(), head.end(), ')');
    if (!is_clause || is_open || !FitsLines(head, indent, lines)) continue;
    std::string rest = sentence.substr(at + 1);
    rest.front() = absl::ascii_toupper(static_cast<unsigned char>(rest.front()));
    return {absl::StrCat(head.substr(0, at - 1), lines > 1 ? "." : ""), rest};
  }
  return {sentence, ""};
}

// The first line. What a narrow terminal does not hold of it goes to `because`.
void AppendHeadline(const std::string& headline, std::vector<std::string>& because, std::string& out) {
  const auto [head, rest] = CutToLines(headline, headline.find("  ") + 2, 0, 1);
  if (rest.empty()) {
    absl::StrAppend(&out, headline, "\n");
    return;
  }
  AppendRows({{headline}, {head}}, out);  // without a terminal the whole one
  if (out.size() == head.size() + 1) because.push_back(rest);
}

// The verdict, what to do, and where the memory went.
std::string BeforeCauses(const answers::Explanation& e) {
  std::string out;
  std::vector<std::string> because;
  const auto [verdict, rest] = CutToLines(VerdictSentence(e), KnownVerdict(e).size() + 2, kActionIndent, kVerdictLines);
  if (!rest.empty()) because.push_back(rest);
  AppendHeadline(Printable(e.verdict.headline), because, out);
  const std::vector<std::string>& evidence = e.verdict.evidence;
  because.insert(because.end(), evidence.begin() + (evidence.empty() ? 0 : 1), evidence.end());
  absl::StrAppend(&out, "VERDICT        ");
  AppendWrapped(verdict, kActionIndent, out);
  AppendActions(e, out);
  if (e.elsewhere.has_value()) {
    out += "WOULD IT FIT   ";
    AppendWrapped(e.elsewhere->sentence, kActionIndent, out);
  }
  for (std::size_t i = 0; i < because.size(); ++i) {
    absl::StrAppend(&out, i == 0 ? "BECAUSE        " : std::string(kActionIndent, ' '));
    AppendWrapped(because[i], kActionIndent, out);
  }
  AppendRaisedAt(e, out);
  AppendAccounting(e, out);
  return out;
}

}  // namespace

std::string ToText(const answers::Explanation& e) {
  std::string out = BeforeCauses(e);
  const std::string rest = AfterCauses(e);
  const auto lines = static_cast<std::size_t>(std::count(out.begin(), out.end(), '\n') +
                                              std::count(rest.begin(), rest.end(), '\n') + 1);
  AppendCauses(e, kScreenLines - std::min(kScreenLines, lines), out);
  return out + rest;
}

std::string ToBriefText(const answers::Explanation& e) {
  std::string out = BeforeCauses(e);
  AppendCauses(e, kScreenLines, out);
  return out;
}

std::string ProjectedText(const whatif::WhatIfRow& row) {
  if (!row.gets_past.value_or(row.is_cut_off && row.ooms == 0)) return "";
  if (!row.projected.has_value()) return "gets past; nothing is known beyond";
  const whatif::ProjectedPart& next = *row.projected;
  if (next.ooms == 0) {
    return absl::StrCat("gets past; ", FormatCounted(next.requests, "request"), " more fit, peak ",
                        FormatBytes(next.peak_reserved_bytes));
  }
  if (next.failed_steps_later == 0) {
    return absl::StrCat("gets past; fails ", FormatCounted(next.failed_after, "request"), " on: needs ",
                        FormatBytes(next.needed_bytes));
  }
  const std::string steps = absl::StrCat("gets past; fails ", FormatCounted(next.failed_steps_later, "step"), " on: ");
  if (next.growth_bytes_per_step == 0) return absl::StrCat(steps, "needs ", FormatBytes(next.needed_bytes));
  return absl::StrCat(steps, "+", FormatBytes(next.growth_bytes_per_step), " a step");
}

std::string WhatIfOutcome(const whatif::WhatIfRow& row) {
  if (!row.feasible.has_value()) return "";
  if (row.ooms > 0) return absl::StrCat(FormatCount(row.ooms), " OOM");
  return row.is_cut_off ? ProjectedText(row) : "fits";
}

}  // namespace ashlar::report
