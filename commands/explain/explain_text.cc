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
#include "commands/explain/explain_report.h"
#include "commands/shared/layout.h"

namespace ashlar::report {
namespace {

constexpr std::size_t kMostBarCells = 36;
constexpr std::size_t kBeforeBar = 38;  // columns
constexpr std::size_t kMostCauses = 3;
constexpr std::size_t kScreenLines = 60;  // of an answer, for which the causes take what the rest leaves
constexpr std::size_t kSectionLines = 2;  // of a section: an empty one, and its title
constexpr std::size_t kCauseIndent = 6;
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
                const std::string& remark, std::string& out) {
  if (bytes.value_or(0) == 0) return;
  std::string line = absl::StrFormat("  %-20s %11s  %s", name, FormatBytes(*bytes), Bar(*bytes, most));
  if (!remark.empty()) absl::StrAppend(&line, line.back() == ' ' ? "" : "  ", remark);
  absl::StrAppend(&out, absl::StripTrailingAsciiWhitespace(line), "\n");
}

std::string PinRemark(const answers::Explanation& e) {
  if (!e.stranded_segments.has_value() || *e.stranded_segments == 0) return "";
  return absl::StrCat("in ", FormatCount(*e.stranded_segments), " segments, behind ", FormatCount(*e.pinning_blocks),
                      " blocks in use");
}

void AppendAccounting(const answers::Explanation& e, std::string& out) {
  const answers::OomAccounting& a = e.accounting;
  const bool is_calls = e.at_end.has_value();
  if (is_calls && !a.total_bytes.has_value()) return;  // it would be one part of one
  const std::optional<std::uint64_t> whole = a.total_bytes.has_value() ? a.total_bytes : a.reserved_bytes;
  if (!whole.has_value()) return;
  const bool has_parts = a.allocated_bytes.has_value() || a.stranded_bytes.has_value() || a.outside_bytes.has_value() ||
                         a.free_bytes.has_value();
  AppendSection(absl::StrCat("WHERE ", FormatBytes(*whole), a.total_bytes.has_value() ? "" : " RESERVED", " WENT"),
                absl::StrCat("at ", e.moment), out);
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
  AppendPart("pending frees", a.pending_bytes, most, "", out);
  AppendPart("stranded", a.stranded_bytes, most, PinRemark(e), out);
  AppendPart("whole-free segments", a.whole_free_bytes, most, "cached; the allocator can return them", out);
  AppendPart("private pools' holes", a.private_pool_bytes, most, "", out);
  // The context is CUDA's unless the message says whose it is.
  const bool is_other = e.message.has_value() && (e.message->family == "pt-xpu" || e.message->family == "pt-hip" ||
                                                  e.message->family == "pt-npu");
  AppendPart("outside", a.outside_bytes, most,
             is_other ? "context, other libraries and processes" : "CUDA context, other libraries and processes", out);
  AppendPart(a.allocated_bytes.has_value() ? "others in use" : "in use", used, most, "by whom is not in this message",
             out);
  AppendPart("free on the device", a.free_bytes, most, "", out);
  AppendPart("outside or free", rest, most, "how much of each is not in this trace", out);
  if (e.peak.utilisation.has_value()) {
    out += absl::StrFormat("  utilisation %.1f %%: peak allocated %s of peak reserved %s\n", *e.peak.utilisation * 100,
                           FormatBytes(*e.peak.allocated_bytes), FormatBytes(*e.peak.reserved_bytes));
  }
}

std::string FixRemark(const whatif::FixTest& fix) {
  const auto change = [](std::uint64_t before, std::uint64_t after, const char* what) {
    return before == after ? "" : absl::StrCat(", ", FormatCount(before), " -> ", FormatCount(after), what);
  };
  return absl::StrCat(fix.change, ": peak ", FormatBytes(fix.before.peak_reserved_bytes), " -> ",
                      FormatBytes(fix.after.peak_reserved_bytes),
                      change(fix.before.ooms, fix.after.ooms, " failed requests"),
                      change(fix.before.retries, fix.after.retries, " retries"),
                      fix.removes_symptom ? ""
                      : fix.shows_symptom ? "; the symptom stays"
                                          : "; proves nothing here");
}

// The remarks on the fixes of the causes shown; one that was told already is not told again.
std::vector<std::string> FixRemarks(const answers::Explanation& e, std::size_t shown) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < shown; ++i) {
    std::string remark = e.causes[i].fix.has_value() ? FixRemark(*e.causes[i].fix) : "";
    const bool is_told = std::find(out.begin(), out.end(), remark) != out.end();
    out.push_back(is_told ? "" : std::move(remark));
  }
  return out;
}

// The one with most bytes.
void AppendProgramRemedy(const answers::Explanation& e, std::string& out) {
  if (e.program_remedies.empty()) return;
  const whatif::ProgramRemedy& remedy = e.program_remedies.front();
  const std::size_t more = e.program_remedies.size() - 1;
  AppendSection("IN THE PROGRAM",
                absl::StrCat("against ", analyses::CauseName(remedy.cause),
                             more == 0 ? "" : absl::StrCat("; --json has ", more, " more")),
                out);
  const std::string replayed = remedy.is_proven
                                   ? absl::StrCat(" (replayed: ", FormatBytes(*remedy.replayed_bytes), " off the peak)")
                                   : " (estimated)";
  absl::StrAppend(&out, absl::StrFormat("  %11s  ", FormatBytes(remedy.bytes)), remedy.sentence, replayed, "\n");
  for (const std::string& line : remedy.python) absl::StrAppend(&out, std::string(15, ' '), line, "\n");
}

// A line for each cause. The lines that are left on the screen take the first fix, what speaks for each, other fixes.
void AppendCauses(const answers::Explanation& e, std::size_t lines_left, std::string& out) {
  std::size_t found = 0;
  for (const answers::ExplainedCause& cause : e.causes) found += cause.finding.finding == analyses::Finding::kFound;
  if (found == 0) return;
  const std::size_t shown = std::min(found, kMostCauses);
  AppendSection("WHY",
                found > shown ? absl::StrCat("the first ", shown, " of ", found, " causes found; --json has them all")
                              : "causes found, the one to fix first",
                out);
  lines_left -= std::min(lines_left, kSectionLines + shown);
  std::vector<std::string> fixes = FixRemarks(e, shown);
  std::vector<std::string> evidence;
  if (!fixes.front().empty()) lines_left -= std::min<std::size_t>(lines_left, 1);
  for (std::size_t i = 0; i < shown; ++i) {
    evidence.push_back(lines_left == 0 ? "" : e.causes[i].finding.evidence.front());
    lines_left -= std::min<std::size_t>(lines_left, 1);
  }
  // A change of the program that follows says more than all but the first fix.
  if (e.failure.has_value() && !e.program_remedies.empty()) lines_left = 0;
  for (std::size_t i = 1; i < shown; ++i) {
    if (lines_left == 0) fixes[i].clear();
    lines_left -= fixes[i].empty() ? 0 : 1;
  }
  const auto append_remark = [&out](const std::string& text) {
    absl::StrAppend(&out, std::string(kCauseIndent, ' '), ShortenedSentence(Printable(text), kRemarkWidth), "\n");
  };
  for (std::size_t i = 0; i < shown; ++i) {
    const analyses::CauseFinding& finding = e.causes[i].finding;
    out += absl::StrFormat("  %11s  %-8s  %s%s\n", FormatBytes(finding.bytes),
                           analyses::ConfidenceName(finding.confidence), analyses::CauseSentence(finding.kind),
                           finding.is_footnote ? " (lets this request pass)" : "");
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
  if (!e.raised_at.has_value()) return;
  AppendSection("WHERE IN THE PROGRAM", "the traceback: the program's own lines, outermost first", out);
  out += "  ";
  AppendWrapped(absl::StrJoin(e.raised_at->path, " > "), 2, out);
  if (!e.raised_at->code.empty()) absl::StrAppend(&out, "    ", Printable(e.raised_at->code), "\n");
}

void AppendStacks(const answers::Explanation& e, std::string& out) {
  if (e.stacks.empty()) return;
  const std::string of_calls = absl::StrCat("live allocations by the native line that made them, at ", e.moment);
  AppendSection("WHO HOLDS IT",
                e.at_end.has_value() ? of_calls : "live blocks by the line that allocated them, at the same moment",
                out);
  AppendLines(e.stacks, out);
}

void AppendAtEnd(const answers::Explanation& e, std::string& out) {
  if (!e.at_end.has_value() || e.at_end->blocks == 0) return;
  AppendSection("NOT FREED",
                absl::StrCat(FormatBytes(e.at_end->bytes), " in ", FormatCount(e.at_end->blocks),
                             e.at_end->blocks == 1 ? " allocation" : " allocations", " when the trace ends"),
                out);
  AppendLines(e.at_end->lines, out);
}

void AppendLabels(const answers::Explanation& e, std::string& out) {
  if (e.labels.empty()) return;
  AppendSection("BY METADATA", "live blocks by the texts that the program put on them, at the same moment", out);
  for (const answers::LabelLine& row : e.labels) {
    out += absl::StrFormat("  %11s  in %6s blocks  %s (%s)\n", FormatBytes(row.bytes), FormatCount(row.blocks),
                           Shortened(Printable(row.label), kLabelWidth - 13), answers::LabelKindName(row.kind));
  }
}

void AppendHost(const answers::Explanation& e, std::string& out) {
  if (!e.host.has_value()) return;
  const answers::HostFigures& host = *e.host;
  const auto peak = [](const std::optional<std::uint64_t>& bytes) {
    return bytes.has_value() ? FormatBytes(*bytes) : std::string("not known");
  };
  AppendSection("PINNED HOST MEMORY", "beside the device's, at the end of the recording", out);
  out += absl::StrFormat("  %11s  held, peak %s\n", FormatBytes(host.held_bytes), peak(host.peak_held_bytes));
  out += absl::StrFormat("  %11s  in use in %s %s, peak %s\n", FormatBytes(host.in_use_bytes), FormatCount(host.blocks),
                         host.blocks == 1 ? "block" : "blocks", peak(host.peak_in_use_bytes));
}

void AppendSizes(const answers::Explanation& e, std::string& out) {
  if (e.sizes.empty()) return;
  AppendSection("WHO HOLDS IT", "live blocks by size and stream, at the same moment: nothing in the input names them",
                out);
  for (const analyses::LiveSize& row : e.sizes) {
    out += absl::StrFormat("  %11s  in %6s blocks  of %s, stream %d\n", FormatBytes(row.bytes), FormatCount(row.blocks),
                           FormatBytes(row.block_bytes), Handle(row.stream));
  }
}

std::string ReplayRemark(const answers::Explanation& e) {
  if (!e.fidelity.has_value()) return "each row replayed from an empty allocator";
  const replay::Fidelity& f = *e.fidelity;
  const double share = f.total == 0 ? 100.0 : 100.0 * static_cast<double>(f.matched) / static_cast<double>(f.total);
  return absl::StrFormat("each row replayed from an empty allocator; baseline fidelity %.2f %%: %s of %s addresses",
                         share, FormatCount(f.matched), FormatCount(f.total));
}

std::string Outcome(const whatif::WhatIfRow& row) {
  if (!row.feasible.has_value()) return "";
  if (row.ooms > 0) return absl::StrCat(FormatCount(row.ooms), " OOM");
  return row.is_cut_off ? ProjectedText(row) : "fits";
}

std::string WhatIfLine(const whatif::WhatIfRow& row, const std::string& name) {
  const std::string peak = FormatBytes(row.peak_reserved_bytes);
  const std::string calls = FormatCount(row.driver_calls);
  std::string outcome = Outcome(row);
  const std::string line = absl::StrFormat("  %-34s peak %11s   driver calls %7s   %s", name, peak, calls, outcome);
  if (line.size() <= kRowWidth) return std::string(absl::StripTrailingAsciiWhitespace(line));
  // A long name takes the room of the columns.
  absl::string_view rest = outcome;
  absl::ConsumePrefix(&rest, "gets past; ");
  return absl::StrCat("  ", name, "  peak ", peak, "  ", calls, " calls  ", rest);
}

void AppendWhatIf(const answers::Explanation& e, std::string& out) {
  if (e.what_if.empty() && e.advice.sentence.empty()) return;
  AppendSection("WHAT WOULD HAVE HELPED", e.what_if.empty() ? "" : ReplayRemark(e), out);
  for (const whatif::WhatIfRow& row : e.what_if) {
    std::string line = WhatIfLine(row, row.conf.empty() ? "default" : row.conf);
    if (row.is_baseline) absl::StrAppend(&line, "   <- as recorded");
    absl::StrAppend(&out, line, "\n");
  }
  if (e.own.has_value()) {
    absl::StrAppend(&out, WhatIfLine(e.own->row, absl::StrCat(e.own->row.conf, ", Ashlar's own")), "\n");
  }
  for (const std::string& sentence : {e.advice.sentence, e.own.has_value() ? e.own->sentence : ""}) {
    if (sentence.empty()) continue;
    out += "  ";
    AppendWrapped(sentence, 2, out);
  }
  if (e.own.has_value() && e.own->run.has_value()) absl::StrAppend(&out, "\nRUN    ", *e.own->run, "\n");
  if (e.advice.paste.has_value()) absl::StrAppend(&out, "\nPASTE  ", *e.advice.paste, "\n");
}

void AppendNotes(const answers::Explanation& e, std::string& out) {
  AppendSection("NOTES", "", out);
  const auto add = [&out](const std::string& text) {
    out += "  - ";
    AppendWrapped(text, 4, out);
  };
  add(absl::StrCat("read: ", e.source));
  if (!e.replayed_as.empty()) add(e.replayed_as);
  if (e.fidelity.has_value() && !e.fidelity->IsExact()) {
    add(absl::StrCat("the replay of the recorded settings is not exact (segments ", e.fidelity->segments_matched,
                     " of ", e.fidelity->segments_total, ", final state ",
                     e.fidelity->final_state_matches ? "equal" : e.fidelity->final_state_difference,
                     "): take what-ifs with care"));
  }
  for (const trace::Note& note : e.notes) {
    add(note.count > 1 ? absl::StrCat(note.message, " (", FormatCount(note.count), ")") : note.message);
  }
}

std::string AfterCauses(const answers::Explanation& e) {
  std::string out;
  AppendProgramRemedy(e, out);
  AppendStacks(e, out);
  AppendLabels(e, out);
  AppendHost(e, out);
  AppendAtEnd(e, out);
  AppendSizes(e, out);
  AppendFailure(e.failure, out);
  AppendPins(e.pins, out);
  AppendProgram(e.program, out);
  AppendWhatIf(e, out);
  if (!e.next_step.empty()) {
    AppendSection("NEXT", "", out);
    out += "  ";
    AppendWrapped(e.next_step, 2, out);
    for (const std::string& line : e.next_lines) absl::StrAppend(&out, "    ", line, "\n");
  }
  AppendNotes(e, out);
  return out;
}

}  // namespace

std::string ToText(const answers::Explanation& e) {
  std::string out = absl::StrCat(Printable(e.headline), "\n");
  const std::string verdict = analyses::VerdictWords(e.verdict);
  absl::StrAppend(&out, "VERDICT        ");
  bool is_first = true;
  for (std::string sentence : e.evidence) {
    if (is_first && !absl::StartsWithIgnoreCase(sentence, verdict)) sentence = absl::StrCat(verdict, ": ", sentence);
    if (is_first) sentence[0] = absl::ascii_tolower(static_cast<unsigned char>(sentence[0]));
    if (!is_first) out += std::string(15, ' ');
    AppendWrapped(sentence, 15, out);
    is_first = false;
  }
  if (e.evidence.empty()) absl::StrAppend(&out, verdict, "\n");
  if (!e.verdict_certain) out += std::string(15, ' ') + "not certain: see the notes\n";
  AppendRaisedAt(e, out);
  AppendAccounting(e, out);
  const std::string rest = AfterCauses(e);
  const auto lines = static_cast<std::size_t>(std::count(out.begin(), out.end(), '\n') +
                                              std::count(rest.begin(), rest.end(), '\n') + 1);
  AppendCauses(e, kScreenLines - std::min(kScreenLines, lines), out);
  return out + rest;
}

namespace {

constexpr std::size_t kPinColumns = 79;  // of a line of 130, what is left for a label and since when its blocks live
constexpr std::size_t kPhaseWidth = 20;
constexpr std::size_t kMostRemarkBeforeLabel = 70;  // a longer one has the line for itself
constexpr std::size_t kReleaseLabelWidth = 40;
constexpr std::size_t kRemarkColumns = 90;  // of a line of 130, what is left for a remark

void AppendRow(const char* name, std::uint64_t bytes, const std::string& remark, std::string& out) {
  out += absl::StrFormat("  %-24s %11s  %s\n", name, FormatBytes(bytes), remark);
}

std::string Blocks(std::uint64_t count, const char* kind) {
  return absl::StrCat(FormatCount(count), " ", kind, count == 1 ? "block" : "blocks");
}

// Rungs that every reader should see, and those that had something to give.
bool IsWorthALine(const analyses::LadderRung& rung) {
  if (rung.name == "search again") return rung.would_serve;
  return rung.bytes > 0 || rung.name == "reuse a cached block" || rung.name == "obtain a new segment" ||
         rung.name == "release the whole cache";
}

void AppendElsewhere(const analyses::FailedRequest& failed, std::string& out) {
  if (failed.free_in_other_streams_bytes >= failed.request_bytes) {
    AppendRow("free for another stream", failed.free_in_other_streams_bytes,
              "one run, large enough: streams do not share", out);
  }
  if (failed.free_in_other_pools_bytes >= failed.request_bytes) {
    AppendRow("free in another pool", failed.free_in_other_pools_bytes, "one run, large enough: pools do not share",
              out);
  }
}

std::string ReleaseRemark(const analyses::ReleaseSet& release, const answers::FailureLines& failure) {
  std::string out = Blocks(release.blocks.size(), "live ");
  if (release.blocks.size() > 1) absl::StrAppend(&out, release.is_one_run ? " in a row" : " that hold whole segments");
  absl::StrAppend(&out, release.is_minimal ? ", proven the fewest bytes"
                                           : absl::StrCat(", the best found; less than ",
                                                          FormatBytes(release.lower_bound_bytes), " cannot do"));
  if (!failure.release.empty() && out.size() < kMostRemarkBeforeLabel) {
    const std::string more = failure.release.size() > 1 ? ", ..." : "";
    const std::size_t width = std::min(kReleaseLabelWidth, kRemarkColumns - out.size() - 2 - more.size());
    absl::StrAppend(&out, ": ", Shortened(Printable(failure.release.front().label), width), more);
  }
  return out;
}

void AppendRelease(const answers::FailureLines& failure, std::string& out) {
  const std::optional<analyses::ReleaseSet>& release = failure.request.release;
  if (!release.has_value()) {
    absl::StrAppend(&out, "  to make room             no set of live blocks is known to be enough\n");
  } else if (release->blocks.empty()) {
    absl::StrAppend(&out, "  to make room             nothing need be released: made again, it fits\n");
  } else {
    AppendRow("to make room, release", release->bytes, ReleaseRemark(*release, failure), out);
  }
}

std::string Since(const answers::PinLine& line) {
  if (!line.oldest_event.has_value()) return "alive since before the recording";
  std::string out = absl::StrCat("alive since event ", FormatCount(static_cast<std::uint64_t>(*line.oldest_event)));
  if (!line.phase.empty()) absl::StrAppend(&out, ", ", Shortened(Printable(line.phase), kPhaseWidth));
  return out;
}

}  // namespace

void AppendFailure(const std::optional<answers::FailureLines>& failure, std::string& out) {
  if (!failure.has_value()) return;
  const analyses::FailedRequest& failed = failure->request;
  absl::StrAppend(&out, "\nWHY IT FAILED   (", FormatBytes(failed.request_bytes), " on stream ", Handle(failed.stream),
                  ", ", failed.is_small_pool ? "small" : "large", " pool; what each rung could give)\n");
  for (const analyses::LadderRung& rung : failed.rungs) {
    if (!IsWorthALine(rung)) continue;
    std::string remark = rung.remark;
    if (rung.name == "release the whole cache" && failed.returned_bytes > 0) {
      remark = absl::StrCat(FormatBytes(failed.returned_bytes), " went back to the device just before");
    }
    AppendRow(rung.name.c_str(), rung.bytes, remark, out);
  }
  AppendElsewhere(failed, out);
  AppendRelease(*failure, out);
}

void AppendPins(const answers::PinLines& pins, std::string& out) {
  if (pins.lines.empty()) return;
  absl::StrAppend(&out,
                  "\nWHAT PINS THE SEGMENTS   (stranded bytes on the blocks that bound them, smaller ones more)\n");
  std::size_t longest = 0;
  std::size_t most = kReleaseLabelWidth;
  for (const answers::PinLine& line : pins.lines) {
    longest = std::max(longest, line.label.size());
    most = std::min(most, kPinColumns - 2 - Since(line).size());
  }
  const std::size_t width = std::min(longest, most);
  for (const answers::PinLine& line : pins.lines) {
    out += absl::StrFormat("  %11s  behind %12s of %11s  %-*s  %s\n", FormatBytes(line.blame_bytes),
                           Blocks(line.blocks, ""), FormatBytes(line.size_bytes), static_cast<int>(width),
                           Shortened(Printable(line.label), most), Since(line));
  }
  if (pins.other_blocks > 0) {
    out += absl::StrFormat("  %11s  behind %12s elsewhere\n", FormatBytes(pins.other_blame_bytes),
                           Blocks(pins.other_blocks, ""));
  }
}

namespace {

using analyses::EventRange;
using analyses::Steps;
using analyses::StepSource;

constexpr std::size_t kMostLeaks = 3;

std::string CountOf(std::size_t count) { return FormatCount(static_cast<std::uint64_t>(count)); }

bool IsOutside(const std::string& moment) {
  return absl::StartsWith(moment, "before ") || absl::StartsWith(moment, "after ");
}

std::string HowTold(const Steps& steps) {
  if (steps.source == StepSource::kAnnotations) return "told from the program's own marks";
  return absl::StrFormat("told from the period of the requests: %.1f %% of them repeat one step later",
                         steps.regularity * 100);
}

std::uint64_t MedianEvents(const std::vector<EventRange>& steps) {
  std::vector<std::uint64_t> lengths;
  for (const EventRange& step : steps) lengths.push_back(static_cast<std::uint64_t>(step.end - step.begin));
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>((lengths.size() - 1) / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  return *middle;
}

void AppendSteps(const answers::ProgramView& view, std::string& out) {
  const std::vector<EventRange>& steps = view.steps.steps;
  absl::StrAppend(&out, "\nSTEPS   (", HowTold(view.steps), ")\n");
  absl::StrAppend(&out, "  ", CountOf(steps.size()), " whole ", steps.size() == 1 ? "step" : "steps", " of about ",
                  FormatCount(MedianEvents(steps)), " events, from event ", FormatCount(steps.front().begin), " to ",
                  FormatCount(steps.back().end - 1), "\n");
  if (view.steps.told_from_sizes) {
    absl::StrAppend(&out, "  by sizes alone, not by lines: what repeats may be the layers of one pass\n");
  }
}

}  // namespace

absl::string_view StepSourceName(StepSource source) {
  switch (source) {
    case StepSource::kNone:
      return "none";
    case StepSource::kAnnotations:
      return "annotations";
    case StepSource::kPeriod:
      return "period";
  }
  return "";
}

void AppendProgram(const answers::ProgramView& view, std::string& out) {
  if (view.steps.source != StepSource::kNone) {
    AppendSteps(view, out);
  } else if (!view.moment.empty()) {
    absl::StrAppend(&out, "\nSTEPS   (none that repeats in this trace)\n");
  }
  if (!view.moment.empty())
    absl::StrAppend(&out, "  that moment lies ", IsOutside(view.moment) ? "" : "in ", Printable(view.moment), "\n");
  for (std::size_t i = 0; i < std::min(view.leaks.size(), kMostLeaks); ++i) {
    const answers::LeakLine& leak = view.leaks[i];
    out += absl::StrFormat("  each step leaves behind %11s  %s: %s in %s blocks by the last\n",
                           FormatBytes(leak.bytes_per_step), Printable(leak.label), FormatBytes(leak.bytes),
                           FormatCount(leak.blocks));
  }
  if (view.leaks.size() > kMostLeaks) {
    absl::StrAppend(&out, "  and ", CountOf(view.leaks.size() - kMostLeaks), " more lines leave something behind\n");
  }
}

namespace {

std::vector<std::string> LinesToPaste(const answers::Explanation& explanation) {
  std::vector<std::string> out = explanation.next_lines;
  for (const whatif::ProgramRemedy& remedy : explanation.program_remedies) {
    for (const std::string& line : remedy.python) out.push_back(std::string(absl::StripLeadingAsciiWhitespace(line)));
  }
  return out;
}

// What happened first, where and how often, before the failures of a text one by one.
std::string FailuresOfText(const std::vector<answers::Explanation>& all) {
  constexpr std::size_t kMostListed = 16;
  const bool is_messages = std::all_of(all.begin(), all.end(), [](const auto& e) { return e.message.has_value(); });
  if (all.size() < 2 || !is_messages) return "";
  std::string out = absl::StrCat(FormatCount(all.size()), " FAILURES IN THIS TEXT, in their order\n");
  for (std::size_t i = 0; i < std::min(all.size(), kMostListed); ++i) {
    const answers::Explanation& e = all[i];
    absl::StrAppend(&out, "  ", i + 1, "  ", Printable(e.headline), "; ", analyses::VerdictWords(e.verdict),
                    e.raised_at.has_value() ? absl::StrCat("; at ", Printable(e.raised_at->line)) : "",
                    e.message->told > 1 ? absl::StrCat("; told ", FormatCount(e.message->told), " times") : "", "\n");
  }
  if (all.size() > kMostListed) absl::StrAppend(&out, "  and ", FormatCount(all.size() - kMostListed), " more\n");
  return out;
}

}  // namespace

std::string PrintExplanations(const std::vector<answers::Explanation>& explanations, bool as_json, bool as_list) {
  if (as_json) return ToJson(explanations, as_list);
  std::string out = FailuresOfText(explanations);
  for (const answers::Explanation& explanation : explanations) {
    if (!out.empty()) out += "\n";
    out += Fitted(ToText(explanation), LinesToPaste(explanation));
  }
  return out;
}

}  // namespace ashlar::report
