// Causes outside this allocator: other processes, other ranks, the CUDA context and library workspaces. A trace holds
// none of them; an out-of-memory message, or what nvidia-smi shows beside a trace, tells.
//
// A CUDA context with the framework's kernels takes 0.3 to 2 GiB, communicators up to 6 GiB (pytorch issues 95668 and
// 135279, nccl issue 864).
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "allocator/core/oom_report.h"
#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/analyses/causes/evidence.h"

namespace ashlar::analyses {
namespace {

constexpr std::uint64_t kLeastContextBytes = 300 * kMiB;
// What a context with PyTorch's kernels takes on cards of today (0.4 to 0.6 GiB): what lies outside beyond it is
// others'.
constexpr std::uint64_t kTypicalContextBytes = 512 * kMiB;
// Of the device: from here on what lies outside is worth naming.
constexpr double kWorthNamingShare = 0.1;
constexpr char kWouldTell[] =
    "nvidia-smi would tell which processes hold memory of this device; give the used memory it shows with "
    "--device-used";

struct Outside {
  std::uint64_t bytes = 0;
  std::uint64_t whole_bytes = 0;  // the device's memory, or what is used of it where that is not known
};

// Held on the device, not by this allocator; nullopt where the input does not tell.
std::optional<Outside> OutsideOf(const CauseContext& context) {
  if (context.message.has_value()) {
    const OomAccounting& parts = context.message->accounting;
    if (!parts.outside_bytes.has_value() || !parts.total_bytes.has_value()) return std::nullopt;
    return Outside{*parts.outside_bytes, *parts.total_bytes};
  }
  if (!context.history.has_value()) return std::nullopt;
  const std::uint64_t reserved = context.history->timeline->TotalsAfter(context.history->moment).reserved_bytes;
  if (context.device.device_used_bytes.has_value()) {
    // Read while the program ran: at most the peak was reserved then.
    const std::uint64_t most = std::max(reserved, context.history->timeline->reserved_peak().bytes);
    return Outside{*context.device.device_used_bytes - std::min(most, *context.device.device_used_bytes),
                   context.device.total_bytes.value_or(*context.device.device_used_bytes)};
  }
  const std::optional<Shortage> shortage = ShortageAt(context);
  if (!shortage.has_value() || !context.device.total_bytes.has_value()) return std::nullopt;
  const std::uint64_t own = reserved + shortage->device_free_bytes;
  return Outside{*context.device.total_bytes - std::min(own, *context.device.total_bytes), *context.device.total_bytes};
}

bool IsWorthNaming(const Outside& outside) {
  return static_cast<double>(outside.bytes) >= kWorthNamingShare * static_cast<double>(outside.whole_bytes);
}

bool IsContext(std::uint64_t bytes) { return kLeastContextBytes <= bytes && bytes <= core::kMostOwnContextBytes; }

// What the message tells of each other process.
std::vector<std::uint64_t> NamedProcesses(const CauseContext& context) {
  return !context.message.has_value() ? std::vector<std::uint64_t>{} : context.message->other_processes;
}

// Several processes, each with no more than a context: ranks that never chose another device.
bool AreContexts(const std::vector<std::uint64_t>& processes) {
  return processes.size() >= 2 && std::all_of(processes.begin(), processes.end(), IsContext);
}

// As many contexts as there are other ranks, and not much else.
bool FitsOtherRanks(const CauseContext& context, const Outside& outside) {
  const std::uint64_t others = context.device.ranks.size() < 2 ? 0 : context.device.ranks.size() - 1;
  return others > 0 && outside.bytes > core::kMostOwnContextBytes &&
         outside.bytes >= (others + 1) * kLeastContextBytes &&
         outside.bytes <= (others + 1) * core::kMostOwnContextBytes;
}

std::uint64_t Sum(const std::vector<std::uint64_t>& values) {
  std::uint64_t out = 0;
  for (const std::uint64_t value : values) out += value;
  return out;
}

std::string OutsideSentence(const Outside& outside) {
  return absl::StrCat(FormatBytes(outside.bytes), " of ", FormatBytes(outside.whole_bytes),
                      " lie outside this allocator");
}

// Blocks of this allocator that libraries took for themselves.
bool IsWorkspace(const trace::StackTable& stacks, trace::StackId stack) {
  for (const trace::FrameId id : stacks.stack(stack)) {
    const std::string function = absl::AsciiStrToLower(stacks.frame(id).function);
    for (const char* name : {"cublas", "cudablas", "cudnn", "nccl", "cusolver"}) {
      if (absl::StrContains(function, name)) return true;
    }
  }
  return false;
}

CauseFinding WorkspacesOfBlocks(const CauseContext& context) {
  CauseFinding out = Found(CauseKind::kWorkspaces, Confidence::kLikely, 0);
  const auto blocks = context.history->timeline->blocks();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (!blocks[i].IsLiveAfter(context.history->moment) || !IsWorkspace(*context.history->stacks, blocks[i].stack))
      continue;
    out.bytes += blocks[i].size_bytes;
    out.blocks.push_back(i);
  }
  const std::string sentence = absl::StrCat(FormatCount(out.blocks.size()), " live blocks of together ",
                                            FormatBytes(out.bytes), " were taken by CUDA libraries");
  if (!IsMaterial(context, out.bytes)) return Absent(CauseKind::kWorkspaces, sentence);
  SetStacks(context, out);
  out.evidence.push_back(sentence);
  return out;
}

}  // namespace

CauseFinding DetectOtherProcess(const CauseContext& context) {
  const CauseKind kind = CauseKind::kOtherProcess;
  const std::vector<std::uint64_t> named = NamedProcesses(context);
  if (!named.empty()) {
    if (AreContexts(named)) return Absent(kind, "the named processes hold no more than a context each");
    CauseFinding out = Found(kind, Confidence::kLikely, Sum(named));
    out.evidence.push_back(absl::StrCat("the message names ", FormatCount(named.size()),
                                        named.size() == 1 ? " other process with " : " other processes with together ",
                                        FormatBytes(out.bytes)));
    return out;
  }
  const std::optional<Outside> outside = OutsideOf(context);
  if (!outside.has_value()) return NotInTrace(kind, kWouldTell);
  if (outside->bytes <= core::kMostOwnContextBytes) {
    return Absent(kind, absl::StrCat(OutsideSentence(*outside), ", no more than one context can take"));
  }
  if (!IsWorthNaming(*outside) || FitsOtherRanks(context, *outside)) return Absent(kind, OutsideSentence(*outside));
  CauseFinding out = Found(kind, Confidence::kPossible, outside->bytes - kTypicalContextBytes);
  out.evidence.push_back(absl::StrCat(OutsideSentence(*outside), "; a context takes about ",
                                      FormatBytes(kTypicalContextBytes), " of it, at most about ",
                                      FormatBytes(core::kMostOwnContextBytes)));
  out.counter_evidence.push_back("communicators and libraries of this process may take some; nvidia-smi would tell");
  return out;
}

CauseFinding DetectOtherRanksContexts(const CauseContext& context) {
  const CauseKind kind = CauseKind::kOtherRanksContexts;
  const std::vector<std::uint64_t> named = NamedProcesses(context);
  if (!named.empty()) {
    const std::string sentence =
        absl::StrCat("the message names ", FormatCount(named.size()),
                     named.size() == 1 ? " other process with " : " other processes with ", FormatBytes(Sum(named)));
    if (!AreContexts(named)) return Absent(kind, sentence);
    CauseFinding out = Found(kind, Confidence::kLikely, Sum(named));
    out.evidence.push_back(absl::StrCat(sentence, ", each no more than a CUDA context takes"));
    out.evidence.push_back("ranks that touch a device before torch.cuda.set_device(local_rank) leave a context on it");
    return out;
  }
  const std::optional<Outside> outside = OutsideOf(context);
  if (!outside.has_value()) return NotInTrace(kind, kWouldTell);
  if (outside->bytes <= core::kMostOwnContextBytes) {
    return Absent(kind, absl::StrCat(OutsideSentence(*outside), ", no more than one context can take"));
  }
  if (context.device.ranks.size() < 2) return NotInTrace(kind, "how many ranks the job has would tell, and nvidia-smi");
  if (!FitsOtherRanks(context, *outside)) return Absent(kind, OutsideSentence(*outside));
  CauseFinding out = Found(kind, Confidence::kPossible, outside->bytes - outside->bytes / context.device.ranks.size());
  out.evidence.push_back(absl::StrCat(OutsideSentence(*outside), ", as much as one context for each of ",
                                      FormatCount(context.device.ranks.size()), " ranks takes"));
  return out;
}

CauseFinding DetectWorkspaces(const CauseContext& context) {
  const CauseKind kind = CauseKind::kWorkspaces;
  const bool has_stacks = context.history.has_value() && context.history->HasStacks();
  if (has_stacks) {
    CauseFinding out = WorkspacesOfBlocks(context);
    if (out.finding == Finding::kFound) return out;
  }
  const std::optional<Outside> outside = OutsideOf(context);
  if (!outside.has_value()) return NotInTrace(kind, kWouldTell);
  if (outside->bytes > core::kMostOwnContextBytes) {
    return Absent(kind, absl::StrCat(OutsideSentence(*outside), ", more than a context and its libraries take"));
  }
  if (!IsWorthNaming(*outside)) return Absent(kind, OutsideSentence(*outside));
  CauseFinding out = Found(kind, Confidence::kPossible, outside->bytes);
  out.evidence.push_back(absl::StrCat(OutsideSentence(*outside), ", as a CUDA context with its libraries takes"));
  out.counter_evidence.push_back("a small other process would look the same; nvidia-smi would tell");
  return out;
}

}  // namespace ashlar::analyses
