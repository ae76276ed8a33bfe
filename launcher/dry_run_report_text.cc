#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "allocator/base/units.h"
#include "analyzer/libraries/owners.h"
#include "commands/explain/explain_report.h"
#include "commands/shared/layout.h"
#include "commands/shared/markdown.h"
#include "launcher/dry_run_report.h"

namespace ashlar::cli {
namespace {

using report::AppendSection;
using report::AppendWrapped;
using report::Printable;
using report::Shortened;

constexpr std::size_t kIndent = 15;
constexpr std::size_t kLabelWidth = 90;
constexpr std::size_t kLineWidth = 200;  // of a program's last line
constexpr std::size_t kMostLines = 8;    // of a list; --json has all
constexpr std::size_t kMostNames = 4;    // in a line
constexpr std::size_t kMostLibraries = 6;
constexpr int kCellWidth = 29;
constexpr char kExpandableName[] = "expandable_segments:True";

std::string MachineName(const RunReport& r) {
  const HollowMachine& machine = r.machine;
  const std::uint64_t devices = r.ranks.has_value() ? static_cast<std::uint64_t>(r.ranks->ranks) : machine.device_count;
  const std::string count = devices > 1 ? absl::StrCat(devices, " x ") : "";
  if (!machine.has_limit) return absl::StrCat(count, "a device without limit");
  const std::string size = FormatBytes(machine.total.bytes);
  return machine.card.empty() ? absl::StrCat(count, "a device of ", size)
                              : absl::StrCat(count, machine.card, " of ", size);
}

// The role that the report is of, where several were run.
std::string Deciding(const RunReport& r, const std::string& before) {
  if (!r.ranks.has_value() || r.ranks->roles.size() < 2) return "";
  return absl::StrCat(before, RankName(r.ranks->roles[r.ranks->worst]));
}

// What was seen until a program ended before its end.
std::string UnknownFit(const RunReport& r) {
  const std::optional<Ended> ended = EndedEarly(r);
  if (!ended.has_value()) return "no process used a device";
  const std::string seen = UsedADevice(r) ? absl::StrCat("no request failed, and the peak was ",
                                                         FormatBytes(PeakBytes(r)), " on ", MachineName(r))
                                          : "no process used a device";
  return absl::StrCat("not known: the program ended before its end", Deciding(r, ", as "), ", with ",
                      Shortened(Printable(ended->what), kLabelWidth), "; until then ", seen);
}

std::string Headline(const RunReport& r) {
  const std::uint64_t peak = PeakBytes(r);
  const std::string on = absl::StrCat(" on ", MachineName(r));
  std::uint64_t failed = 0;
  for (const ProcessRun& run : r.results.runs) failed += run.OutOfMemory();
  switch (FitOf(r)) {
    case FitState::kUnknown:
      return UnknownFit(r);
    case FitState::kDoesNot:
      return absl::StrCat("does not fit", on, Deciding(r, ": "), ": ", FormatCount(failed),
                          failed == 1 ? " request" : " requests", " found no memory, peak ", FormatBytes(peak));
    case FitState::kFits:
      break;
  }
  if (!r.machine.has_limit) return absl::StrCat("peak ", FormatBytes(peak), on, Deciding(r, ": "));
  const std::uint64_t spare = r.machine.RoomBytes() - std::min(peak, r.machine.RoomBytes());
  const std::optional<Condition> unless = FitsUnless(r);
  const std::string condition = unless.has_value()
                                    ? absl::StrCat(" unless ", unless->who, unless->who == "NCCL" ? " takes" : " take",
                                                   " more than ", FormatBytes(unless->bytes))
                                    : "";
  return absl::StrCat("fits", on, condition, ": peak ", FormatBytes(peak), Deciding(r, " of "), ", ",
                      FormatBytes(spare), " to spare");
}

constexpr char kMendFirst[] =
    "TRY FIRST      mend what ended the program, and run it to its end: then it is known what it needs\n";

void AppendHead(const RunReport& r, std::string& out) {
  const auto add = [&out](const std::string& text) {
    out += std::string(kIndent, ' ');
    AppendWrapped(text, kIndent, out);
  };
  out += "DRY RUN        ";
  AppendWrapped(Headline(r), kIndent, out);
  if (FitOf(r) == FitState::kDoesNot && r.explanation.has_value()) report::AppendActions(*r.explanation, out);
  if (FitOf(r) == FitState::kUnknown && EndedEarly(r).has_value()) absl::StrAppend(&out, kMendFirst);
  if (r.explanation.has_value() && !r.explanation->memory.moment.empty()) {
    const std::string& program = r.explanation->program.moment;
    add(absl::StrCat("explained below: ", r.explained->Name(), " at ", r.explanation->memory.moment,
                     program.empty() ? "" : ", ", program));
  }
  add(absl::StrCat("the program ended with exit code ", r.exit_code,
                   r.exit_code > 128 ? absl::StrCat(": signal ", r.exit_code - 128) : ""));
}

std::string TorchRemark(const ProcessRun& run, int index) {
  if (!run.torch.has_value()) return "";
  for (const TorchDevice& device : run.torch->devices) {
    if (device.index != index) continue;
    std::string out = absl::StrCat("  allocated ", FormatBytes(device.peak_allocated_bytes), ", reserved ",
                                   FormatBytes(device.peak_reserved_bytes));
    if (device.num_alloc_retries > 0) absl::StrAppend(&out, ", ", FormatCount(device.num_alloc_retries), " retries");
    if (device.num_ooms > 0) absl::StrAppend(&out, ", ", FormatCount(device.num_ooms), " out of memory");
    return out;
  }
  return "";
}

constexpr absl::string_view kAllocatorOfTorch = "libc10_cuda.so";

// Where others than PyTorch's allocator took memory of the device, and how much the context takes beside them.
void AppendLibraries(const AccountedDevice& device, std::string& out) {
  const auto is_others = [](const LibraryBytes& library) { return library.name != kAllocatorOfTorch; };
  if (std::none_of(device.libraries.begin(), device.libraries.end(), is_others)) return;
  const auto append = [](std::string* text, const LibraryBytes& library) {
    absl::StrAppend(text, Printable(libraries::OwnerAndFile(library.name)), " ", FormatBytes(library.bytes));
  };
  const std::size_t shown = std::min(device.libraries.size(), kMostLibraries);
  absl::StrAppend(&out, std::string(19, ' '), "asked for by ",
                  absl::StrJoin(absl::MakeConstSpan(device.libraries).first(shown), ", ", append),
                  shown < device.libraries.size()
                      ? absl::StrCat(" and ", FormatCount(device.libraries.size() - shown), " more")
                      : "",
                  "; the context takes ", FormatBytes(device.context_bytes), "\n");
}

void AppendJax(const JaxInfo& jax, std::string& out) {
  for (const JaxDevice& device : jax.devices) {
    if (device.peak_in_use_bytes == 0) continue;
    absl::StrAppend(&out, std::string(19, ' '), "JAX had ", FormatBytes(device.peak_in_use_bytes),
                    " in use at its peak, of ", FormatBytes(device.reserved_bytes), " that it reserved\n");
  }
  if (!jax.out_of_memory.empty()) {
    absl::StrAppend(&out, std::string(19, ' '), Shortened(Printable(jax.out_of_memory), kLabelWidth), "\n");
  }
}

void AppendProcess(const ProcessRun& run, std::string& out) {
  const auto add = [&](int ordinal, std::uint64_t peak, const std::string& remark) {
    out += absl::StrFormat("  %-16s device %-2d  peak %11s%s\n", run.Name(), ordinal, FormatBytes(peak), remark);
  };
  if (run.books.has_value()) {
    for (const AccountedDevice& device : run.books->devices) {
      if (device.peak_bytes == 0) continue;
      add(device.ordinal, device.peak_bytes, TorchRemark(run, device.ordinal));
      AppendLibraries(device, out);
    }
    if (run.books->pinned_peak_bytes > 0) {
      absl::StrAppend(&out, std::string(19, ' '), "pinned on the host, peak ",
                      FormatBytes(run.books->pinned_peak_bytes), "\n");
    }
  } else if (run.DiedEarly()) {
    for (const AccountedDevice& device : run.left_held) {
      const std::string remark = TorchRemark(run, device.ordinal);
      add(device.ordinal, device.peak_bytes, absl::StrCat(remark, "  killed or aborted"));
    }
  } else if (run.torch.has_value()) {
    for (const TorchDevice& device : run.torch->devices) {
      add(device.index, device.peak_reserved_bytes, TorchRemark(run, device.index));
    }
  }
  if (run.torch.has_value() && !run.torch->exception.empty()) {
    absl::StrAppend(&out, std::string(19, ' '), Shortened(Printable(run.torch->exception), kLabelWidth), "\n");
  }
  if (run.jax.has_value()) AppendJax(*run.jax, out);
}

void AppendProcesses(const RunReport& r, std::string& out) {
  if (!UsedADevice(r)) return;
  AppendSection("PROCESSES", "peaks of the device: all processes on it, contexts included", out);
  for (const ProcessRun& run : r.results.runs) AppendProcess(run, out);
}

std::string Cell(const CardOutcome& outcome) {
  if (!outcome.headroom_bytes.has_value()) {
    const absl::string_view at = outcome.failed_at;
    const bool is_time = absl::StartsWith(at, "before") || absl::StartsWith(at, "after");
    return absl::StrCat("fails ", is_time ? "" : absl::StartsWith(at, "request") ? "at " : "in ", at);
  }
  return absl::StrCat("fits, ", FormatBytes(*outcome.headroom_bytes), " to spare",
                      outcome.retries > 0 ? absl::StrCat(", ", FormatCount(outcome.retries), " retries") : "");
}

std::string BestCell(const CardRow& row) {
  if (!row.best.has_value()) {
    return absl::StrCat("none: live blocks alone take ", FormatBytes(row.peak_allocated_bytes));
  }
  if (row.best->conf == row.by_default.conf) return "as default";
  if (row.expandable.has_value() && row.best->conf == row.expandable->conf) return "as expandable";
  return absl::StrCat(Cell(*row.best), ": ", row.best->conf);
}

// A card of the table without its memory, as one says it: "an A100", "a T4".
std::string Spoken(const answers::RanAs& ran_as) {
  const absl::StatusOr<gpus::Gpu> known = gpus::GpuNamed(ran_as.name);
  if (!known.ok()) return absl::StrCat("'", Shortened(Printable(ran_as.name), kLabelWidth), "'");
  const absl::string_view model = known->name.substr(0, known->name.find('-'));
  return absl::StrCat(absl::StrContains("AFHLMNRSX", model.substr(0, 1)) ? "an " : "a ", model);
}

// No verdict: what the card that ran would do with as much memory.
std::string UnrunCell(const CardRow& row, const std::string& fails) {
  const CardOutcome& outcome = row.by_default;
  return absl::StrCat(
      "as ", Spoken(row.ran_as), " would run it: ",
      outcome.headroom_bytes.has_value() ? absl::StrCat(FormatBytes(*outcome.headroom_bytes), " to spare") : fails);
}

bool Fits(const CardRow& row) {
  return row.by_default.headroom_bytes.has_value() || (row.best.has_value() && row.best->headroom_bytes.has_value());
}

// The least card that was run and on which something fits; the end where there is none.
std::vector<CardRow>::const_iterator LeastOf(const std::vector<CardRow>& rows) {
  return std::find_if(rows.begin(), rows.end(), [](const CardRow& row) { return row.MayBeEnough() && Fits(row); });
}

std::string LeastCard(const CardTable& table, bool is_whole) {
  const auto least = LeastOf(table.rows);
  if (least == table.rows.end()) return "no card that it was run as is enough";
  const std::string enough =
      is_whole ? "the least card that is enough: " : "the least card that is enough for what was seen: ";
  if (least->by_default.headroom_bytes.has_value()) return absl::StrCat(enough, least->gpu->name);
  return absl::StrCat(enough, least->gpu->name, ", with PYTORCH_CUDA_ALLOC_CONF=", least->best->conf);
}

// Where the answer changes: the cards around the least that is enough, and what goes against the order of memory.
struct ShownCards {
  std::vector<const CardRow*> rows;
  std::string rest;  // "9 smaller cards are not enough, 14 larger ones are"; empty: all are shown
};

ShownCards Shown(const CardTable& table) {
  constexpr std::ptrdiff_t kBefore = 3, kAfter = 4;
  const std::ptrdiff_t least = LeastOf(table.rows) - table.rows.begin();
  ShownCards out;
  std::size_t smaller = 0, larger = 0, unknown = 0;
  for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(table.rows.size()); ++i) {
    const CardRow& row = table.rows[static_cast<std::size_t>(i)];
    const bool is_against = row.HasVerdict() && i > least && !Fits(row);
    if ((i >= least - kBefore && i <= least + kAfter) || is_against) {
      out.rows.push_back(&row);
    } else {
      ++(!row.HasVerdict() ? unknown : i < least ? smaller : larger);
    }
  }
  std::vector<std::string> parts;
  if (smaller > 0) parts.push_back(absl::StrCat(smaller, " smaller cards are not enough"));
  if (larger > 0) parts.push_back(absl::StrCat(larger, " larger ones are"));
  if (unknown > 0) parts.push_back(absl::StrCat(unknown, " of other capabilities have no verdict"));
  if (!parts.empty()) out.rest = absl::StrCat(absl::StrJoin(parts, ", "), " (--json has each)");
  return out;
}

// "a.txt, b.txt and 3 more".
std::string FirstOf(const std::vector<std::string>& texts) {
  std::string out;
  for (std::size_t i = 0; i < std::min(texts.size(), kMostNames); ++i) {
    absl::StrAppend(&out, i == 0 ? "" : ", ", Shortened(Printable(texts[i]), kLabelWidth));
  }
  return absl::StrCat(out, texts.size() > kMostNames ? absl::StrCat(" and ", texts.size() - kMostNames, " more") : "");
}

// The cards that the program's PyTorch has no kernels for; empty: there are none.
std::string LacksKernels(const RunReport& r) {
  std::vector<std::string> names;
  for (const CardRow& row : r.cards->rows) {
    if (!row.has_kernels.value_or(true)) names.emplace_back(row.gpu->name);
  }
  if (names.empty()) return "";
  return absl::StrCat("PyTorch ", Printable(r.explained->torch->version), " as it is here has no kernels for ",
                      FirstOf(names), ": the program would fit, and not run; another build has them");
}

// Under the rows: the card that is enough, and as which cards the program was run again.
void AppendCardsEnd(const RunReport& r, const std::string& least, std::string& out) {
  const auto add = [&out](const std::string& text) {
    out += "  ";
    AppendWrapped(text, 2, out);
  };
  add(least);
  const std::vector<CardRow>& rows = r.cards->rows;
  if (!std::all_of(rows.begin(), rows.end(), [](const CardRow& row) { return row.HasVerdict(); })) {
    add("\"would run it\" is no verdict: a card of another compute capability may take other kernels, and other "
        "memory");
  }
  if (const std::string lacks = LacksKernels(r); !lacks.empty()) add(lacks);
  if (!r.card_runs.why_none.empty()) add(absl::StrCat("not run again as other cards: ", r.card_runs.why_none));
  std::vector<std::string> ran;
  for (const CardRun& run : r.card_runs.runs) {
    const std::string name = absl::StrCat(run.gpu->name, " (", gpus::CapabilityText(run.gpu->capability()), ")");
    if (run.why_not.empty()) {
      ran.push_back(name);
    } else {
      add(absl::StrCat("not run as ", name, ": ", Shortened(Printable(run.why_not), kLineWidth)));
    }
  }
  if (!ran.empty()) add(absl::StrCat("run again as ", absl::StrJoin(ran, ", ")));
  const std::vector<std::string>& kept_away = r.card_runs.kept_away;
  if (!kept_away.empty()) add(absl::StrCat("files that it did not write again: ", FirstOf(kept_away)));
  const std::vector<std::string>& not_sent = r.card_runs.not_sent;
  if (!not_sent.empty()) add(absl::StrCat("what it did not connect to again: ", FirstOf(not_sent)));
}

constexpr char kUntilThen[] = "; the program ended before its end, and would have asked for more";

// Of native programs: no settings change what they ask of the device.
void AppendAccountingCards(const RunReport& r, bool is_whole, std::string& out) {
  const CardTable& table = *r.cards;
  AppendSection("WHICH CARD IS ENOUGH",
                absl::StrCat("the peak of the device's accounting, ", FormatBytes(table.peak_allocated_bytes),
                             " and the contexts, against each card", is_whole ? "" : kUntilThen),
                out);
  const ShownCards shown = Shown(table);
  for (const CardRow* each : shown.rows) {
    const CardRow& row = *each;
    const CardOutcome& outcome = row.by_default;
    const std::string fails = absl::StrCat("does not fit: ", outcome.failed_at);
    const std::string cell = !row.HasVerdict()                    ? UnrunCell(row, outcome.failed_at)
                             : outcome.headroom_bytes.has_value() ? Cell(outcome)
                                                                  : fails;
    const std::string total = FormatBytes(row.gpu->total_bytes.value);
    absl::StrAppend(&out, absl::StrFormat("  %-14s %11s  %s\n", row.gpu->name, total, cell));
  }
  if (!shown.rest.empty()) absl::StrAppend(&out, "  ", shown.rest, "\n");
  AppendCardsEnd(
      r, absl::StrCat(LeastCard(table, is_whole), "; a program that asks how much is free may go another way there"),
      out);
}

void AppendCards(const RunReport& r, std::string& out) {
  if (!r.cards.has_value()) return;
  const bool is_whole = !EndedEarly(r).has_value();
  if (!r.cards->is_replayed) return AppendAccountingCards(r, is_whole, out);
  AppendSection("WHICH CARD IS ENOUGH",
                absl::StrCat("the requests of ", r.explained->Name(),
                             " replayed at each size by the allocator's own code", is_whole ? "" : kUntilThen),
                out);
  // On a narrow terminal without the expandable segments, then without the size, then without the best.
  std::vector<report::RowTexts> forms(4);
  const auto add = [&forms](const auto& card, const auto& size, const auto& a, const auto& b, const std::string& c) {
    forms[0].push_back(absl::StrFormat("  %-14s %11s  %-*s %-*s %s", card, size, kCellWidth, a, kCellWidth, b, c));
    forms[1].push_back(absl::StrFormat("  %-14s %11s  %-*s %s", card, size, kCellWidth, a, c));
    forms[2].push_back(absl::StrFormat("  %-14s %-*s %s", card, kCellWidth, a, c));
    forms[3].push_back(absl::StrFormat("  %-14s %s", card, a));
  };
  add("card", "allocator", "default", kExpandableName, "best found");
  const ShownCards shown = Shown(*r.cards);
  for (const CardRow* each : shown.rows) {
    const CardRow& row = *each;
    const std::string size = FormatBytes(row.allocator_bytes);
    if (!row.HasVerdict()) {
      add(row.gpu->name, size, UnrunCell(row, Cell(row.by_default)), "", "");
      continue;
    }
    add(row.gpu->name, size, Cell(row.by_default),
        row.expandable.has_value() ? Cell(*row.expandable) : "unknown to this release", BestCell(row));
  }
  report::AppendRows(forms, out);
  if (!shown.rest.empty()) absl::StrAppend(&out, "  ", shown.rest, "\n");
  AppendCardsEnd(r, LeastCard(*r.cards, is_whole), out);
}

// How to give the first line of Python another value; empty: there is none.
std::string OtherValueOf(const std::vector<MadeUpValue>& values) {
  for (const MadeUpValue& value : values) {
    const std::string place = value.line.substr(0, value.line.rfind(' '));
    if (absl::StrContains(place, ".py:"))
      return absl::StrCat("; --value ", Printable(place), "=V gives one line another");
  }
  return "";
}

void AppendMadeUp(const RunReport& r, std::string& out) {
  const std::uint64_t total = MadeUpTotal(r);
  if (total == 0) return;
  AppendSection("MADE-UP VALUES", absl::StrCat("control flow may depend on ", FormatCount(total), " made-up values"),
                out);
  const std::vector<MadeUpValue> values = MadeUpValues(r);
  for (std::size_t i = 0; i < std::min(values.size(), kMostLines); ++i) {
    out += absl::StrFormat("  %7s x %11s  %s\n", FormatCount(values[i].count), FormatBytes(values[i].bytes),
                           Shortened(Printable(values[i].line), kLabelWidth));
  }
  if (values.size() > kMostLines) absl::StrAppend(&out, "  and ", values.size() - kMostLines, " lines more: --json\n");
  out += "  ";
  AppendWrapped(absl::StrCat("only a kernel would have written them; they read as ", r.machine.values, " (--values)",
                             OtherValueOf(values)),
                2, out);
}

std::string IntervalText(const libraries::BytesBetween& bytes) {
  if (bytes.least_bytes == bytes.most_bytes) return FormatBytes(bytes.most_bytes);
  return absl::StrCat(FormatBytes(bytes.least_bytes), " to ", FormatBytes(bytes.most_bytes));
}

// Of its longest requests so many at once.
std::string RoomText(const VllmInfo& info) {
  if (info.tokens == 0 || info.longest_request == 0) return "";
  return absl::StrCat(
      ": room for ", FormatCount(info.tokens), " tokens, which are ",
      absl::StrFormat("%.1f", static_cast<double>(info.tokens) / static_cast<double>(info.longest_request)),
      " requests of ", FormatCount(info.longest_request), ", its longest; it takes at most ",
      FormatCount(info.most_requests), " at once");
}

// What vLLM has of its allocator's row.
void AppendVllm(const ProcessRun& run, std::string& out) {
  if (!run.vllm.has_value()) return;
  out += "    ";
  AppendWrapped(
      absl::StrCat("vLLM of ", run.Name(), ", as it measured itself: weights ", FormatBytes(run.vllm->weights_bytes),
                   ", activations ", FormatBytes(run.vllm->activations_bytes), ", CUDA graphs ",
                   FormatBytes(run.vllm->graphs_bytes), ", KV cache ", FormatBytes(run.vllm->kv_cache_bytes),
                   " of the ", FormatBytes(run.vllm->requested_bytes), " that it asks for", RoomText(*run.vllm)),
      4, out);
}

// And SGLang.
void AppendSglang(const ProcessRun& run, std::string& out) {
  if (!run.sglang.has_value()) return;
  out += "    ";
  AppendWrapped(
      absl::StrCat("SGLang of ", run.Name(), ", as it counts itself: weights ", FormatBytes(run.sglang->weights_bytes),
                   ", KV cache ", FormatBytes(run.sglang->kv_cache_bytes), " for ", FormatCount(run.sglang->tokens),
                   " tokens, of the ", FormatBytes(run.sglang->requested_bytes), " that it asks for"),
      4, out);
}

void AppendAccount(const RunReport& r, std::string& out) {
  const std::optional<DeviceAccount> account = AccountOf(r);
  if (!account.has_value()) return;
  AppendSection("ACCOUNT",
                absl::StrCat("device ", account->ordinal, ", peak ", FormatBytes(account->peak_bytes),
                             account->Beside().most_bytes > 0
                                 ? absl::StrCat("; on top, of libraries: ", IntervalText(account->Beside()))
                                 : ""),
                out);
  for (const AccountPart& part : account->parts) {
    out += part.is_in_peak ? "    " : "  + ";
    AppendWrapped(absl::StrCat(Printable(part.name), ": ", IntervalText(part.bytes), ", ", part.mark, ": ",
                               Printable(part.source)),
                  4, out);
  }
  for (const ProcessRun& run : r.results.runs) {
    AppendVllm(run, out);
    AppendSglang(run, out);
  }
}

void AppendAssumed(const RunReport& r, std::string& out) {
  if (!UsedADevice(r)) return;
  AppendSection("ASSUMED", "", out);
  for (const Assumption& assumption : Assumptions(r)) {
    out += "  - ";
    AppendWrapped(absl::StrCat(assumption.what, ": ",
                               assumption.bytes.has_value() ? absl::StrCat(FormatBytes(*assumption.bytes), ", ") : "",
                               assumption.mark, ": ", assumption.source),
                  4, out);
  }
}

void AppendRefused(const RunReport& r, std::string& out) {
  const std::vector<RefusedCall> calls = RefusedCalls(r);
  if (calls.empty()) return;
  AppendSection("NOT SUPPORTED", "calls that a hollow device answered so", out);
  for (std::size_t i = 0; i < std::min(calls.size(), kMostLines); ++i) {
    out += absl::StrFormat("  %7s x %s\n", FormatCount(calls[i].count), Printable(calls[i].name));
  }
  if (calls.size() > kMostLines) absl::StrAppend(&out, "  and ", calls.size() - kMostLines, " names more: --json\n");
}

}  // namespace

std::string ToText(const RunReport& r) {
  std::string out;
  AppendHead(r, out);
  if (r.ranks.has_value()) AppendRanks(*r.ranks, out);
  AppendProcesses(r, out);
  AppendCards(r, out);
  AppendMadeUp(r, out);
  AppendAccount(r, out);
  AppendAssumed(r, out);
  AppendRefused(r, out);
  for (const std::string& note : r.notes)
    absl::StrAppend(&out, &note == &r.notes.front() ? "\n" : "", "  - ", note, "\n");
  if (r.explanation.has_value()) {
    AppendSection(absl::StrCat("EXPLAINED: ", r.explained->Name()), "", out);
    absl::StrAppend(&out, report::ToText(*r.explanation));
  }
  return out;
}

namespace {

using report::MarkdownCells;
using report::MarkdownText;

void AppendCardsMarkdown(const RunReport& r, std::string& out) {
  if (!r.cards.has_value()) return;
  const bool is_replayed = r.cards->is_replayed;
  std::vector<MarkdownCells> rows;
  const ShownCards shown = Shown(*r.cards);
  for (const CardRow* row : shown.rows) {
    MarkdownCells cells = {std::string(row->gpu->name), FormatBytes(row->gpu->total_bytes.value), "", "", ""};
    if (!row->HasVerdict()) {
      cells[2] = MarkdownText(UnrunCell(*row, Cell(row->by_default)));
    } else {
      cells[2] = MarkdownText(Cell(row->by_default));
      if (row->expandable.has_value()) cells[3] = MarkdownText(Cell(*row->expandable));
      if (is_replayed) cells[4] = MarkdownText(BestCell(*row));
    }
    rows.push_back(std::move(cells));
  }
  const std::string least = LeastCard(*r.cards, !EndedEarly(r).has_value());
  report::AppendMarkdownTable("Which card is enough", absl::StrCat(": ", MarkdownText(least)),
                              {"card", "memory", "default", kExpandableName, "best found"},
                              {"---", "---:", "---", "---", "---"}, rows, out);
  if (!shown.rest.empty()) absl::StrAppend(&out, "\n", MarkdownText(shown.rest), "\n");
}

}  // namespace

std::string ToMarkdown(const RunReport& r) {
  std::string out = absl::StrCat("### Dry run: ", MarkdownText(Headline(r)),
                                 "\n\n- program: ", MarkdownText(absl::StrJoin(r.program, " ")),
                                 "\n- exit code: ", r.exit_code, "\n");
  for (const std::string& note : r.notes) absl::StrAppend(&out, "- ", MarkdownText(note), "\n");
  if (const std::uint64_t made_up = MadeUpTotal(r); made_up > 0) {
    absl::StrAppend(&out, "- control flow may depend on ", FormatCount(made_up), " made-up values\n");
  }
  AppendCardsMarkdown(r, out);
  if (r.explanation.has_value()) absl::StrAppend(&out, "\n", report::ToMarkdown({*r.explanation}));
  return out;
}

}  // namespace ashlar::cli
