#include "commands/explain/suggestions.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"
#include "allocator/base/units.h"
#include "analyzer/whatif/advice.h"
#include "commands/explain/holder_fix.h"
#include "commands/shared/cards.h"
#include "commands/shared/held_text.h"

namespace ashlar::answers {
namespace {

constexpr std::size_t kMostActions = 3;
constexpr char kExpandable[] = "expandable_segments:True";
constexpr char kHalve[] = "halve the batch; in training, accumulate the gradients of 2 steps";
constexpr char kHoldLess[] = "else: use gradient checkpointing, then bf16, then an optimizer with less state";
constexpr char kTriesEach[] = "; `ashlar fit` below tries each of these without a GPU, and says what each saves";
constexpr char kIfNotEnough[] = "if that is not enough: ";
constexpr char kElse[] = "else: ";
constexpr char kOneTensor[] =
    "look at the shape that the failing line asks for: this one tensor is larger than the whole device";
constexpr char kFreeTheDevice[] = "see which process holds the device, and end it if it is not needed (kill PID)";
constexpr char kTakeAnother[] = "else: move this program to another device";
constexpr char kFreeTheHost[] =
    "free the host: end what else holds its memory, or hand back its page cache; where MemFree is far below "
    "MemAvailable, that cache is in the way";
constexpr char kRaiseWhatStopped[] =
    "raise the limit that stopped it, which the program set itself, or per_process_memory_fraction in the settings";
constexpr char kRunItAgain[] = "run it again: what another process gave back since is free now";
constexpr char kFindTheLimit[] =
    "else: look for a limit: that of a process, which this line shows, the quota of a container or of a virtual GPU, "
    "under Windows the paging file";
constexpr char kFindThePool[] =
    "look for a limit of the memory pool that was asked, as more was free than it gave; or run it again, if others "
    "gave memory back meanwhile";
constexpr char kRecordIt[] =
    "record the run: this file has what was held at one moment, and not the requests that led there";
constexpr char kRecordAgain[] =
    "record the program again until it asks for memory: this file has no call that allocates";
constexpr char kRecordInside[] =
    "begin the history in the program, before the model is made, and write the file as before";
constexpr char kSeeTheDevice[] = "see who holds the device, and how much of it";
constexpr char kSeeTheNeed[] =
    "else: see what the program needs of a card; no GPU is needed for it (CARD is the card's name, A100-80GB for "
    "example)";

// What the advised row has of the recorded one's.
std::string GainOf(const WhatIfs& tried) {
  const auto baseline =
      std::find_if(tried.rows.begin(), tried.rows.end(), [](const whatif::WhatIfRow& row) { return row.is_baseline; });
  if (baseline == tried.rows.end() || tried.advice.choice.row >= tried.rows.size()) return "";
  const whatif::WhatIfRow& row = tried.rows[tried.advice.choice.row];
  return absl::StrCat("peak ", FormatBytes(baseline->peak_reserved_bytes), " -> ", FormatBytes(row.peak_reserved_bytes),
                      Changed(baseline->ooms, row.ooms, " failed requests"),
                      Changed(baseline->retries, row.retries, " retries"));
}

std::string CardOf(const Explanation& e) {
  const std::optional<std::uint64_t>& total = e.memory.accounting.total_bytes;
  if (!total.has_value()) return "--device CARD";
  return absl::StrCat("--capacity ", absl::StrReplaceAll(FormatBytes(*total), {{" ", ""}}));
}

bool IsOf(const Explanation& e, absl::Span<const absl::string_view> families) {
  return std::any_of(families.begin(), families.end(),
                     [&](absl::string_view family) { return absl::StartsWith(e.failure.message->family, family); });
}

// PyTorch over the allocator that the settings of CUDA and HIP are for.
bool IsTorch(const Explanation& e) {
  constexpr std::array<absl::string_view, 4> kOthers = {"pt-mps", "pt-xpu", "pt-npu", "pt-async"};
  constexpr std::array<absl::string_view, 3> kTorch = {"pt-", "cuda-library", "cudnn"};
  return IsOf(e, kTorch) && !IsOf(e, kOthers);
}

// Whether dry-run and fit can run the program: a CUDA device, and a release of PyTorch of these years.
bool RunsHere(const Explanation& e) {
  constexpr std::array<absl::string_view, 3> kOthers = {"pt-hip", "pt-cached", "pt-pre-1.0"};
  return IsTorch(e) && !IsOf(e, kOthers);
}

// The batch first, which needs no other code; `how` begins the first of the two.
std::vector<Suggestion> HoldLess(const Explanation& e, const char* how) {
  Suggestion rest = {Proof::kUnproven, kHoldLess};
  if (RunsHere(e)) {
    rest.what += kTriesEach;
    rest.lines = {absl::StrCat("ashlar fit ", CardOf(e), " -- python YOUR_PROGRAM.py")};
  }
  return {{Proof::kUnproven, absl::StrCat(how, kHalve)}, std::move(rest)};
}

std::vector<Suggestion> BeforeHoldLess(const Explanation& e, Suggestion first, const char* how) {
  std::vector<Suggestion> out = HoldLess(e, how);
  out.insert(out.begin(), std::move(first));
  return out;
}

// The program that lists a device's processes.
std::string ProcessList(const Explanation& e) {
  constexpr std::array<std::pair<absl::string_view, const char*>, 3> kByFamily = {
      {{"pt-hip", "rocm-smi --showpids"}, {"pt-npu", "npu-smi info"}, {"pt-xpu", "xpu-smi ps"}}};
  for (const auto& [family, command] : kByFamily) {
    if (e.failure.message->family == family) return command;
  }
  return "nvidia-smi";
}

bool HasNote(const Explanation& e, absl::string_view name) {
  return std::any_of(e.notes.begin(), e.notes.end(), [&](const trace::Note& note) { return note.name == name; });
}

std::vector<Suggestion> OfCapacity(const Explanation& e) {
  const std::optional<std::uint64_t>& total = e.memory.accounting.total_bytes;
  if (!total.has_value() || e.failure.tried_bytes.value_or(0) <= *total) return HoldLess(e, "");
  const std::optional<RaisedAt>& line = e.failure.raised_at;
  const std::string at = line.has_value() ? absl::StrCat(" (", line->line, ")") : "";
  return BeforeHoldLess(e, {Proof::kUnproven, absl::StrCat(kOneTensor, at)}, kElse);
}

std::vector<Suggestion> OfUnknown(const Explanation& e) {
  std::vector<Suggestion> out = {{Proof::kUnproven, kSeeTheDevice, {ProcessList(e)}}};
  if (RunsHere(e)) {
    out.push_back({Proof::kUnproven, kSeeTheNeed, {"ashlar dry-run --device CARD -- python YOUR_PROGRAM.py"}});
  }
  return out;
}

// Others hold the device. A table beside the message names them, and one may be this program, which has ended since.
std::vector<Suggestion> OfOutside(const Explanation& e) {
  if (HasNote(e, "unified_memory")) {
    return {{Proof::kUnproven,
             kFreeTheHost,
             {"grep -E 'MemFree|MemAvailable' /proc/meminfo", "sudo sh -c 'sync; echo 3 > /proc/sys/vm/drop_caches'"}}};
  }
  const std::vector<std::int64_t>& named = e.failure.message->processes_beside;
  if (named.empty()) return {{Proof::kUnproven, kFreeTheDevice, {ProcessList(e)}}, {Proof::kUnproven, kTakeAnother}};
  const std::string who = absl::StrJoin(named, ", ");
  return BeforeHoldLess(
      e,
      {Proof::kUnproven,
       absl::StrCat("see whether process ", who, " still runs now that this program has ended; if so, end it (kill ",
                    absl::StrJoin(named, " "), ") or take another device"),
       {ProcessList(e)}},
      "else it was this program: ");
}

std::vector<Suggestion> OfLimit(const Explanation& e) {
  if (HasNote(e, "free_exceeds_tried")) {
    return {{Proof::kUnproven, kRunItAgain}, {Proof::kUnproven, kFindTheLimit, {"ulimit -v"}}};
  }
  return BeforeHoldLess(e, {Proof::kUnproven, kRaiseWhatStopped, {"torch.cuda.set_per_process_memory_fraction(1.0)"}},
                        kElse);
}

std::vector<Suggestion> OfHoles(const Explanation& e) {
  const std::uint64_t holes = e.memory.accounting.stranded_bytes.value_or(0);
  return BeforeHoldLess(e,
                        {Proof::kUnproven,
                         "",
                         {whatif::PasteLine(kExpandable)},
                         holes > 0 ? absl::StrCat("it can make use of up to ", FormatBytes(holes), " of holes") : ""},
                        kIfNotEnough);
}

// PyTorch's own message, whose settings are known here.
std::vector<Suggestion> OfTorch(const Explanation& e) {
  switch (e.verdict.kind) {
    case OomVerdict::kLimit:
      return OfLimit(e);
    case OomVerdict::kFragmentation:
      return OfHoles(e);
    case OomVerdict::kCapacity:
    case OomVerdict::kNearlyFull:
    case OomVerdict::kLeak:
      return OfCapacity(e);
    default:
      return OfUnknown(e);
  }
}

// Of a message alone nothing is replayed.
std::vector<Suggestion> OfMessage(const Explanation& e) {
  const OomVerdict kind = e.verdict.kind;
  if (kind == OomVerdict::kHealthy) return {};
  if (kind == OomVerdict::kOutside) return OfOutside(e);
  if (kind == OomVerdict::kLimit && HasNote(e, "free_exceeds_tried")) return OfLimit(e);
  const std::vector<analyses::OomTry>& tries = e.failure.message->tries;
  if (tries.empty()) return OfTorch(e);
  std::vector<Suggestion> out;
  for (const analyses::OomTry& one : tries) {
    out.push_back({Proof::kUnproven, absl::StrCat(out.empty() ? "" : kElse, one.what), one.lines});
  }
  return out;
}

// The line that made most of what was held; empty: nothing names it.
std::string HoldLessWhere(const Explanation& e) {
  for (const analyses::LabelledStack& line : e.memory.holders.stacks) {
    if (line.label == analyses::kNoStackLabel) continue;
    const std::optional<std::uint64_t>& all = e.memory.accounting.allocated_bytes;
    return absl::StrCat("hold less at ", line.label, ", which made ", FormatBytes(line.bytes), " of ",
                        all.has_value() ? absl::StrCat("the ", FormatBytes(*all), " held") : "what was held");
  }
  return "";
}

// Of a file that tells neither a failure nor that none was.
std::vector<Suggestion> OfStateAlone(const Explanation& e) {
  if (e.failure.tried_bytes.has_value()) return {{Proof::kUnproven, kFindThePool}};
  const std::string less = HoldLessWhere(e);
  const bool is_profile = !e.memory.accounting.reserved_bytes.has_value();
  if (is_profile && !less.empty()) return {{Proof::kUnproven, less}};
  if (e.memory.at_end.has_value()) return {{Proof::kUnproven, kRecordAgain, {"ashlar record -- ./program"}}};
  std::vector<Suggestion> out;
  if (e.backend == trace::Backend::kCuda) {
    out.push_back({Proof::kUnproven, kRecordIt, {"ashlar record -- python YOUR_PROGRAM.py"}});
  }
  const char* module = e.backend == trace::Backend::kXpu ? "torch.xpu" : "torch.cuda";
  out.push_back({Proof::kUnproven,
                 absl::StrCat(out.empty() ? "" : kElse, kRecordInside),
                 {absl::StrCat(module, ".memory._record_memory_history(max_entries=100000)")}});
  if (!less.empty()) out.push_back({Proof::kUnproven, absl::StrCat(kElse, less)});
  return out;
}

// The variable that keeps most of what the cause is about; empty: none is known.
std::string HeldBy(const analyses::CauseFinding& cause) {
  if (cause.holders.empty()) return "";
  return absl::StrCat(". It is held by ", report::HolderText(cause.holders.front()));
}

// "`losses[]` in leak.py keeps the graphs of 56 steps", where the evidence begins with the variable; else empty.
std::string WhoKeeps(const analyses::CauseFinding& cause) {
  if (cause.evidence.empty() || !absl::StartsWith(cause.evidence.front(), "`")) return "";
  return cause.evidence.front().substr(0, cause.evidence.front().find(": "));
}

// A failure that is cured may have a peak as high, or higher.
std::string GainOf(const whatif::ProgramRemedy& remedy) {
  if (!remedy.is_proven) return FormatBytes(remedy.bytes);
  return *remedy.replayed_bytes == 0 ? "the request is served"
                                     : absl::StrCat(FormatBytes(*remedy.replayed_bytes), " off the peak");
}

Suggestion OfRemedy(const Explanation& e, const whatif::ProgramRemedy& remedy) {
  Suggestion out;
  out.proof = remedy.is_proven ? Proof::kReplayed : Proof::kEstimated;
  out.what = remedy.sentence;
  const auto cause = std::find_if(e.why.causes.begin(), e.why.causes.end(),
                                  [&](const ExplainedCause& one) { return one.finding.kind == remedy.cause; });
  if (cause != e.why.causes.end()) {
    const std::vector<trace::Holder>& holders = cause->finding.holders;
    if (!holders.empty()) out.lines = NamedLines(remedy.sentence, holders.front());
    const std::string who = out.lines.empty() ? "" : WhoKeeps(cause->finding);
    if (!who.empty()) out.what = absl::StrCat(who, ": ", remedy.sentence);
    if (!cause->lines.empty()) absl::StrAppend(&out.what, " (", cause->lines.front(), ")");
    if (who.empty()) absl::StrAppend(&out.what, HeldBy(cause->finding));
  }
  if (out.lines.empty()) out.lines = remedy.python;
  out.gain = GainOf(remedy);
  return out;
}

}  // namespace

absl::string_view ProofName(Proof proof) {
  switch (proof) {
    case Proof::kRun:
      return "run";
    case Proof::kReplayed:
      return "replayed";
    case Proof::kEstimated:
      return "estimated";
    case Proof::kUnproven:
      return "not proven";
  }
  return "";
}

absl::string_view ProofWords(Proof proof) { return proof == Proof::kUnproven ? "not tried yet" : ProofName(proof); }

std::string Changed(std::uint64_t before, std::uint64_t after, const char* what) {
  return before == after ? "" : absl::StrCat(", ", FormatCount(before), " -> ", FormatCount(after), what);
}

std::vector<Suggestion> SuggestionsOf(const Explanation& e) {
  std::vector<Suggestion> out;
  const WhatIfs& tried = e.what_ifs;
  if (tried.run_again.has_value() && tried.run_again->ends) {
    out.push_back({Proof::kRun,
                   "",
                   {whatif::PasteLine(tried.run_again->conf)},
                   absl::StrCat("the program, run again with it, ends: peak ",
                                FormatBytes(tried.run_again->peak_reserved_bytes))});
  } else if (tried.advice.paste.has_value()) {
    out.push_back({Proof::kReplayed, "", {*tried.advice.paste}, GainOf(tried)});
  }
  if (tried.own.has_value() && tried.own->run.has_value()) {
    out.push_back({Proof::kReplayed, "", {*tried.own->run}, tried.own->sentence});
  }
  for (const whatif::ProgramRemedy& remedy : e.why.remedies) {
    if (out.size() < kMostActions) out.push_back(OfRemedy(e, remedy));
  }
  if (out.empty() && e.failure.message.has_value()) out = OfMessage(e);
  if (out.empty() && !e.failure.message.has_value() && e.verdict.kind == OomVerdict::kUnknown) out = OfStateAlone(e);
  std::stable_sort(out.begin(), out.end(), [](const Suggestion& a, const Suggestion& b) { return a.proof < b.proof; });
  return out;
}

bool SaysWhatActionsSay(const Explanation& e) {
  const std::vector<Suggestion> actions = SuggestionsOf(e);
  return e.what_ifs.rows.empty() && !actions.empty() && !actions.front().what.empty() &&
         absl::StartsWith(e.what_ifs.advice.sentence, actions.front().what);
}

std::optional<std::string> SettingToTry(const Explanation& e) {
  const OomVerdict kind = e.verdict.kind;
  if (kind == OomVerdict::kOutside || kind == OomVerdict::kLimit || kind == OomVerdict::kHealthy) return std::nullopt;
  const whatif::WhatIfRow* best = nullptr;
  for (const whatif::WhatIfRow& row : e.what_ifs.rows) {
    const bool is_past = !row.is_baseline && row.is_cut_off && row.ServesAllRecorded() && !row.conf.empty();
    const bool fails_again = row.projected.has_value() && row.projected->ooms > 0 && !row.projected->is_extrapolated;
    if (!is_past || fails_again) continue;
    if (best == nullptr || row.peak_reserved_bytes < best->peak_reserved_bytes) best = &row;
  }
  return best == nullptr ? std::nullopt : std::optional(best->conf);
}

bool RanUnder(const Explanation& e, absl::string_view conf) {
  return std::any_of(e.what_ifs.rows.begin(), e.what_ifs.rows.end(),
                     [conf](const whatif::WhatIfRow& row) { return row.is_baseline && row.conf == conf; });
}

}  // namespace ashlar::answers
