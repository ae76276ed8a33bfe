#include "commands/explain/suggestions.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "allocator/base/units.h"
#include "analyzer/whatif/advice.h"
#include "commands/shared/cards.h"
#include "commands/shared/held_text.h"

namespace ashlar::answers {
namespace {

constexpr std::size_t kMostActions = 3;
constexpr char kExpandable[] = "expandable_segments:True";
constexpr char kHoldLess[] =
    "hold less: a smaller batch with gradient accumulation, gradient checkpointing, bf16, an optimizer with less state";
constexpr char kTryEach[] = "; the line tries each without a GPU, and says what it gives";
constexpr char kOneTensor[] =
    "look at the shape that the failing line asks for: this one tensor is larger than the whole device";
constexpr char kFreeTheDevice[] =
    "free the device: see which process holds it, and end it or move this program to another device";
constexpr char kFreeTheHost[] =
    "free the host: end what else holds its memory, or hand back its page cache; where MemFree is far below "
    "MemAvailable, that cache is in the way";
constexpr char kRaiseTheLimit[] =
    "raise the limit that stopped it: torch.cuda.set_per_process_memory_fraction, or per_process_memory_fraction in "
    "the settings";
constexpr char kFindTheLimit[] =
    "run it again, since what another process freed since is free now; else look for a limit: ulimit -v, the quota of "
    "a container or of a virtual GPU, under Windows the paging file";
constexpr char kRecordIt[] = "have the run recorded, so that the file tells what led to this state";
constexpr char kSeeTheDevice[] = "see who holds the device, and how much of it";
constexpr char kSeeTheNeed[] = "see what the program needs of a card; no GPU is needed for it";

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
  return total.has_value() ? absl::StrCat("--capacity ", (*total >> 20), "MiB") : "--device CARD";
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

Suggestion HoldLess(const Explanation& e) {
  if (!RunsHere(e)) return {Proof::kUnproven, kHoldLess};
  return {Proof::kUnproven,
          absl::StrCat(kHoldLess, kTryEach),
          {absl::StrCat("ashlar fit ", CardOf(e), " -- python YOUR_PROGRAM.py")}};
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
  if (!total.has_value() || e.failure.tried_bytes.value_or(0) <= *total) return {HoldLess(e)};
  const std::optional<RaisedAt>& line = e.failure.raised_at;
  return {{Proof::kUnproven, line.has_value() ? absl::StrCat(kOneTensor, " (", line->line, ")") : kOneTensor},
          HoldLess(e)};
}

std::vector<Suggestion> OfUnknown(const Explanation& e) {
  std::vector<Suggestion> out = {{Proof::kUnproven, kSeeTheDevice, {ProcessList(e)}}};
  if (RunsHere(e)) {
    out.push_back({Proof::kUnproven, kSeeTheNeed, {"ashlar dry-run --device CARD -- python YOUR_PROGRAM.py"}});
  }
  return out;
}

// Of a message alone nothing is replayed.
std::vector<Suggestion> OfMessage(const Explanation& e) {
  switch (e.verdict.kind) {
    case OomVerdict::kHealthy:
      return {};
    case OomVerdict::kOutside:
      if (HasNote(e, "unified_memory")) {
        return {
            {Proof::kUnproven,
             kFreeTheHost,
             {"grep -E 'MemFree|MemAvailable' /proc/meminfo", "sudo sh -c 'sync; echo 3 > /proc/sys/vm/drop_caches'"}}};
      }
      return {{Proof::kUnproven, kFreeTheDevice, {ProcessList(e)}}};
    case OomVerdict::kLimit:
      if (HasNote(e, "free_exceeds_tried")) return {{Proof::kUnproven, kFindTheLimit}};
      if (IsTorch(e)) return {{Proof::kUnproven, kRaiseTheLimit}};
      break;
    case OomVerdict::kFragmentation:
      if (IsTorch(e)) {
        const std::uint64_t holes = e.memory.accounting.stranded_bytes.value_or(0);
        return {{Proof::kUnproven,
                 "",
                 {whatif::PasteLine(kExpandable)},
                 holes > 0 ? absl::StrCat("up to ", FormatBytes(holes), " of holes") : ""},
                HoldLess(e)};
      }
      break;
    case OomVerdict::kCapacity:
    case OomVerdict::kNearlyFull:
    case OomVerdict::kLeak:
      if (IsTorch(e)) return OfCapacity(e);
      break;
    case OomVerdict::kUnknown:
      if (IsTorch(e)) return OfUnknown(e);
      break;
    case OomVerdict::kHostMemory:
      break;
  }
  return {{Proof::kUnproven, e.what_ifs.advice.sentence}};
}

// The variable that keeps most of what the cause is about; empty: none is known.
std::string HeldBy(const analyses::CauseFinding& cause) {
  if (cause.holders.empty()) return "";
  return absl::StrCat(". It is held by ", report::HolderText(cause.holders.front()));
}

Suggestion OfRemedy(const Explanation& e, const whatif::ProgramRemedy& remedy) {
  Suggestion out;
  out.proof = remedy.is_proven ? Proof::kReplayed : Proof::kEstimated;
  out.what = remedy.sentence;
  const auto cause = std::find_if(e.why.causes.begin(), e.why.causes.end(),
                                  [&](const ExplainedCause& one) { return one.finding.kind == remedy.cause; });
  if (cause != e.why.causes.end()) {
    if (!cause->lines.empty()) absl::StrAppend(&out.what, " (", cause->lines.front(), ")");
    absl::StrAppend(&out.what, HeldBy(cause->finding));
  }
  out.lines = remedy.python;
  out.gain =
      remedy.is_proven ? absl::StrCat(FormatBytes(*remedy.replayed_bytes), " off the peak") : FormatBytes(remedy.bytes);
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
  if (out.empty() && !e.failure.message.has_value() && e.verdict.kind == OomVerdict::kUnknown) {
    out.push_back({Proof::kUnproven, kRecordIt, {"ashlar record -- python YOUR_PROGRAM.py"}});  // a state alone
  }
  std::stable_sort(out.begin(), out.end(), [](const Suggestion& a, const Suggestion& b) { return a.proof < b.proof; });
  return out;
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
