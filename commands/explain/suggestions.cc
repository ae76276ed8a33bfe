#include "commands/explain/suggestions.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/whatif/advice.h"
#include "commands/explain/held_report.h"

namespace ashlar::answers {
namespace {

constexpr std::size_t kMostActions = 3;
constexpr char kExpandable[] = "expandable_segments:True";
constexpr char kHoldLess[] =
    "hold less: a smaller batch with gradient accumulation, gradient checkpointing, bf16, an optimizer with less "
    "state; the line tries each without a GPU, and says what it gives";
constexpr char kFreeTheDevice[] =
    "free the device: see which process holds it, and end it or move this program to another device";
constexpr char kRaiseTheLimit[] =
    "raise the limit that stopped it: torch.cuda.set_per_process_memory_fraction, or per_process_memory_fraction in "
    "the "
    "settings";

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

Suggestion HoldLess(const Explanation& e) {
  return {Proof::kUnproven, kHoldLess, {absl::StrCat("ashlar fit ", CardOf(e), " -- python YOUR_PROGRAM.py")}};
}

bool IsTorchOnCuda(absl::string_view family) {
  if (!absl::StartsWith(family, "pt-") && family != "cuda-library" && family != "cudnn") return false;
  constexpr std::array<absl::string_view, 4> kOthers = {"pt-mps", "pt-xpu", "pt-npu", "pt-async"};
  return std::find(kOthers.begin(), kOthers.end(), family) == kOthers.end();
}

// Of a message alone nothing is replayed.
std::vector<Suggestion> OfMessage(const Explanation& e) {
  const bool is_torch = IsTorchOnCuda(e.failure.message->family);
  switch (e.verdict.kind) {
    case OomVerdict::kHealthy:
      return {};
    case OomVerdict::kOutside:
      return {{Proof::kUnproven, kFreeTheDevice, {"nvidia-smi"}}};
    case OomVerdict::kLimit:
      if (is_torch) return {{Proof::kUnproven, kRaiseTheLimit}};
      break;
    case OomVerdict::kFragmentation:
      if (is_torch) {
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
      if (is_torch) return {HoldLess(e)};
      break;
    case OomVerdict::kHostMemory:
    case OomVerdict::kUnknown:
      break;
  }
  if (is_torch && e.verdict.kind != OomVerdict::kHostMemory) return {};
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
  if (tried.advice.paste.has_value()) out.push_back({Proof::kReplayed, "", {*tried.advice.paste}, GainOf(tried)});
  if (tried.own.has_value() && tried.own->run.has_value()) {
    out.push_back({Proof::kReplayed, "", {*tried.own->run}, tried.own->sentence});
  }
  for (const whatif::ProgramRemedy& remedy : e.why.remedies) {
    if (out.size() < kMostActions) out.push_back(OfRemedy(e, remedy));
  }
  if (out.empty() && e.failure.message.has_value()) out = OfMessage(e);
  std::stable_sort(out.begin(), out.end(), [](const Suggestion& a, const Suggestion& b) { return a.proof < b.proof; });
  return out;
}

}  // namespace ashlar::answers
