// Causes that lie in the device: what this allocator cannot have, whatever it does.

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "allocator/core/oom_report.h"
#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/analyses/causes/evidence.h"
#include "analyzer/analyses/state/state_accounting.h"

namespace ashlar::analyses {
namespace {

CauseFinding CapacityOfMessage(const OomMessageVerdict& verdict) {
  const CauseKind kind = CauseKind::kCapacity;
  if (!verdict.headroom.has_value()) {
    return NotInTrace(kind, "the message does not tell enough: its total, allocated, reserved and free figures would");
  }
  if (verdict.kind != OomVerdict::kCapacity) {
    return Absent(kind, absl::StrCat("without holes the request fits with ",
                                     FormatSignedBytes(verdict.headroom->value_bytes), " to spare"));
  }
  const auto missing = static_cast<std::uint64_t>(std::max<std::int64_t>(-verdict.headroom->value_bytes, 0));
  CauseFinding out = Found(kind, verdict.verdict_certain ? Confidence::kProven : Confidence::kPossible, missing);
  out.evidence.push_back(
      absl::StrCat("even without holes the request is short by ", FormatBytes(missing), "; no setting can help"));
  if (!verdict.verdict_certain) out.counter_evidence.push_back("the printed figures are rounded too far to be certain");
  return out;
}

// At the failure: what the allocator could hold at most, less what is live. Neither holes nor waiting frees count.
CauseFinding CapacityOfFailure(const CauseContext& context, const Shortage& shortage) {
  const core::Accounting parts = AccountState(context.history->state);
  const std::uint64_t holdable = parts.reserved_bytes + shortage.device_free_bytes;
  const std::uint64_t needed = parts.allocated_bytes + shortage.request_bytes;
  if (needed <= holdable) {
    return Absent(CauseKind::kCapacity, absl::StrCat("allocated and request together are ", FormatBytes(needed), " of ",
                                                     FormatBytes(holdable), " that the allocator can hold"));
  }
  CauseFinding out = Found(CauseKind::kCapacity, Confidence::kProven, needed - holdable);
  out.evidence.push_back(absl::StrCat(FormatBytes(parts.allocated_bytes), " allocated and ",
                                      FormatBytes(shortage.request_bytes), " requested exceed the ",
                                      FormatBytes(holdable), " that the allocator can hold by ",
                                      FormatBytes(needed - holdable)));
  return out;
}

CauseFinding CapacityOfPeak(const CauseContext& context) {
  const CauseKind kind = CauseKind::kCapacity;
  if (!context.device.total_bytes.has_value())
    return NotInTrace(kind, "the device's memory would tell: give --capacity");
  const std::uint64_t peak = context.history->timeline->allocated_peak().bytes;
  const std::string share =
      absl::StrCat("peak allocated ", FormatBytes(peak), " is ", ShareText(peak, *context.device.total_bytes),
                   " of the device's ", FormatBytes(*context.device.total_bytes));
  // However full it was: nothing failed, and so nothing is missing.
  return Absent(kind, share);
}

CauseFinding DetectCapacity(const CauseContext& context) {
  if (context.message.has_value()) return CapacityOfMessage(*context.message);
  if (!context.history.has_value())
    return NotInTrace(CauseKind::kCapacity, "a snapshot or an out-of-memory message would");
  const std::optional<Shortage> shortage = ShortageAt(context);
  return shortage.has_value() ? CapacityOfFailure(context, *shortage) : CapacityOfPeak(context);
}

}  // namespace

// A limit of this process, such as torch.cuda.set_per_process_memory_fraction: the device had room, and the request
// failed.

namespace {

constexpr char kRaiseFraction[] =
    "torch.cuda.set_per_process_memory_fraction sets such a limit, and so does the setting per_process_memory_fraction";

CauseFinding LimitOfMessage(const OomMessageVerdict& verdict) {
  const CauseKind kind = CauseKind::kMemoryFraction;
  const std::optional<std::uint64_t>& free = verdict.accounting.free_bytes;
  if (!free.has_value() || !verdict.tried_bytes.has_value()) {
    return NotInTrace(kind, "what was free on the device would tell");
  }
  if (verdict.kind != OomVerdict::kLimit || !verdict.is_process_limit) {
    return Absent(kind, "the message names no limit of this process that stopped the request");
  }
  CauseFinding out = Found(kind, verdict.verdict_certain ? Confidence::kProven : Confidence::kLikely, *free);
  out.evidence.push_back(absl::StrCat(FormatBytes(*free), " were free on the device when ",
                                      FormatBytes(*verdict.tried_bytes), " could not be had"));
  out.evidence.push_back(kRaiseFraction);
  return out;
}

// The limit lies from what was reserved to less than one segment more.
std::string LimitSentence(std::uint64_t reserved_bytes, const Shortage& shortage,
                          const std::optional<std::uint64_t>& total_bytes) {
  const std::uint64_t most = reserved_bytes + shortage.segment_bytes;
  std::string out = absl::StrCat("so the limit lies between ", FormatBytes(reserved_bytes), " and ", FormatBytes(most));
  if (total_bytes.has_value()) {
    absl::StrAppend(&out, ": ", ShareText(reserved_bytes, *total_bytes), " to ", ShareText(most, *total_bytes),
                    " of the device");
  }
  return out;
}

CauseFinding DetectMemoryFraction(const CauseContext& context) {
  const CauseKind kind = CauseKind::kMemoryFraction;
  if (context.message.has_value()) return LimitOfMessage(*context.message);
  if (!context.history.has_value()) return NotInTrace(kind, kRecordHistory);
  const std::optional<Shortage> shortage = ShortageAt(context);
  if (!shortage.has_value()) return Absent(kind, "no request failed");
  if (!context.history->failed.has_value() || !context.history->failed->is_limited) {
    return Absent(kind, absl::StrCat(FormatBytes(shortage->device_free_bytes),
                                     " were free on the device, less than the request's segment of ",
                                     FormatBytes(shortage->segment_bytes)));
  }
  const std::uint64_t reserved = context.history->timeline->TotalsAfter(context.history->moment).reserved_bytes;
  CauseFinding out = Found(kind, Confidence::kProven, shortage->device_free_bytes);
  out.evidence.push_back(absl::StrCat(FormatBytes(shortage->device_free_bytes),
                                      " were free on the device when a segment of ",
                                      FormatBytes(shortage->segment_bytes), " could not be had"));
  out.evidence.push_back(LimitSentence(reserved, *shortage, context.device.total_bytes));
  out.evidence.push_back(kRaiseFraction);
  return out;
}

}  // namespace

// Causes outside this allocator: other processes, other ranks, the CUDA context and library workspaces. A trace holds
// none of them; an out-of-memory message, or what nvidia-smi shows beside a trace, tells.
//
// A CUDA context with the framework's kernels takes 0.3 to 2 GiB, communicators up to 6 GiB (pytorch issues 95668 and
// 135279, nccl issue 864).

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

// By how much the free memory of the device misses the failed request; 0 where none failed, or that is not known.
std::uint64_t MissingAt(const CauseContext& context) {
  if (context.message.has_value()) {
    const std::uint64_t tried = context.message->tried_bytes.value_or(0);
    return tried - std::min(tried, context.message->accounting.free_bytes.value_or(tried));
  }
  const std::optional<Shortage> shortage = ShortageAt(context);
  return shortage.has_value() ? shortage->MissingBytes() : 0;
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

// Of the allocator and of what records it, or without a name: these lie between a block and who made it.
bool IsOfAllocator(absl::string_view function) {
  return function.empty() || function == "??" || absl::StrContains(function, "CUDACachingAllocator") ||
         absl::StrContains(function, "torch::unwind::") || absl::StrContains(function, "CapturedTraceback::") ||
         absl::StrContains(function, "gather_with_cpp");
}

// Blocks of this allocator that libraries took for themselves: by the innermost frame that is not the allocator's. An
// operator that calls a library makes its result by at::empty: that is a tensor, whoever stands further out.
bool IsWorkspace(const trace::StackTable& stacks, trace::StackId stack) {
  for (const trace::FrameId id : stacks.stack(stack)) {
    const trace::Frame& frame = stacks.frame(id);
    if (IsOfAllocator(frame.function)) continue;
    if (IsPythonFrame(frame)) return false;
    const std::string function = absl::AsciiStrToLower(frame.function);
    const auto is_in_name = [&function](absl::string_view word) { return absl::StrContains(function, word); };
    constexpr std::array<absl::string_view, 6> kWords = {"cublas", "cudablas", "cudnn",
                                                         "nccl",   "cusolver", "workspace"};
    return std::any_of(kWords.begin(), kWords.end(), is_in_name);
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

// By their owner: cuBLAS keeps one for each stream that it works on.
CauseFinding OwnedWorkspaces(const CauseContext& context, const HeldByName& held) {
  constexpr CauseKind kKind = CauseKind::kWorkspaces;
  constexpr std::size_t kMany = 8;  // a program on a stream or two has no choice
  CauseFinding out = Found(kKind, Confidence::kProven, 0);
  std::vector<std::size_t> blocks;
  for (const HeldRow& row : held.rows) {
    if (row.holder.kind != "workspace") continue;
    out.bytes += row.bytes;
    blocks.insert(blocks.end(), row.indices.begin(), row.indices.end());
  }
  const std::string sentence = absl::StrCat("cuBLAS keeps ", FormatCount(blocks.size()), " workspaces of together ",
                                            FormatBytes(out.bytes), ", one for each stream that it works on");
  if (blocks.size() < kMany || !IsMaterial(context, out.bytes)) return Absent(kKind, sentence);
  std::sort(blocks.begin(), blocks.end());
  TakeBlocks(context, std::move(blocks), out);
  out.evidence.push_back(sentence);
  return out;
}

// What of the memory outside is not this process's own context, where it is known that others use the device.
std::uint64_t HeldByOthers(const CauseContext& context, const Outside& outside) {
  const std::optional<SharedDevice>& shared = context.device.shared;
  if (!shared.has_value() || shared->other_processes == 0) return 0;
  return outside.bytes - std::min(outside.bytes, shared->context_bytes);
}

CauseFinding OfKnownProcesses(const CauseContext& context, const Outside& outside) {
  const SharedDevice& shared = *context.device.shared;
  const std::uint64_t bytes = HeldByOthers(context, outside);
  const std::string sentence = absl::StrCat(
      FormatCount(shared.other_processes), shared.other_processes == 1 ? " other process uses" : " other processes use",
      " this device: of the ", OutsideSentence(outside), " the context of this process takes ",
      FormatBytes(shared.context_bytes), " and others ", FormatBytes(bytes));
  if (bytes < MissingAt(context) || !IsMaterial(context, bytes)) return Absent(CauseKind::kOtherProcess, sentence);
  CauseFinding out = Found(CauseKind::kOtherProcess, Confidence::kLikely, bytes);
  out.evidence.push_back(sentence);
  return out;
}

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
  if (HeldByOthers(context, *outside) > 0) return OfKnownProcesses(context, *outside);
  if (context.message.has_value() && context.message->own_outside_bytes.has_value()) {
    const std::uint64_t own = std::min(*context.message->own_outside_bytes, outside->bytes);
    if (outside->bytes - own <= core::kMostOwnContextBytes) {
      return Absent(kind, absl::StrCat(OutsideSentence(*outside), ", and this process itself holds ", FormatBytes(own),
                                       " of it, as the message says"));
    }
  }
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
    const HeldByName* const held = context.history->Owners();
    CauseFinding out = held != nullptr ? OwnedWorkspaces(context, *held) : WorkspacesOfBlocks(context);
    if (out.finding == Finding::kFound) return out;
  }
  const std::optional<Outside> outside = OutsideOf(context);
  if (!outside.has_value()) return NotInTrace(kind, kWouldTell);
  if (HeldByOthers(context, *outside) > 0) return Absent(kind, "other processes use the device as well");
  if (outside->bytes > core::kMostOwnContextBytes) {
    return Absent(kind, absl::StrCat(OutsideSentence(*outside), ", more than a context and its libraries take"));
  }
  // No process does without a context: what of it is more than that must have decided the failure.
  const std::uint64_t beyond = outside->bytes - std::min(outside->bytes, kTypicalContextBytes);
  if (beyond == 0) return Absent(kind, absl::StrCat(OutsideSentence(*outside), ", what a CUDA context takes"));
  if (!IsWorthNaming(*outside)) return Absent(kind, OutsideSentence(*outside));
  if (beyond < MissingAt(context)) {
    return Absent(kind,
                  absl::StrCat(OutsideSentence(*outside), "; with an ordinary context the request fails as well"));
  }
  CauseFinding out = Found(kind, Confidence::kPossible, outside->bytes);
  out.evidence.push_back(absl::StrCat(OutsideSentence(*outside), ", as a CUDA context with its libraries takes"));
  out.counter_evidence.push_back("a small other process would look the same; nvidia-smi would tell");
  return out;
}

}  // namespace

// Causes that show between ranks.

namespace {

constexpr double kLeastSpread = 0.05;  // between ranks, of the median peak

CauseFinding DetectRankImbalance(const CauseContext& context) {
  constexpr CauseKind kKind = CauseKind::kRankImbalance;
  if (context.device.ranks.size() < 2) {
    return NotInTrace(kKind, "the snapshots of several ranks would tell: one file is one process");
  }
  std::vector<RankPeak> ranks(context.device.ranks.begin(), context.device.ranks.end());
  std::sort(ranks.begin(), ranks.end(), [](const RankPeak& a, const RankPeak& b) {
    return std::pair(a.allocated_bytes, a.rank) < std::pair(b.allocated_bytes, b.rank);
  });
  const std::uint64_t median = ranks[(ranks.size() - 1) / 2].allocated_bytes;
  const std::uint64_t bytes = ranks.back().allocated_bytes - median;
  const std::string share = ShareText(bytes, median);
  if (static_cast<double>(bytes) < kLeastSpread * static_cast<double>(median) || bytes < kLeastMaterialBytes) {
    return Absent(kKind, absl::StrCat("the highest of ", ranks.size(), " ranks peaks ", share, " above the median"));
  }
  CauseFinding out = Found(kKind, Confidence::kProven, bytes);
  out.evidence.push_back(absl::StrCat("rank ", ranks.back().rank, " peaks at ",
                                      FormatBytes(ranks.back().allocated_bytes), " allocated, ", FormatBytes(bytes),
                                      " (", share, ") above the median of ", ranks.size(), " ranks"));
  return out;
}

constexpr double kContextShare = 0.25;  // no process does without a context

constexpr CauseSpec kDeviceCauses[] = {
    {.kind = CauseKind::kCapacity,
     .name = "capacity",
     .sentence = "The program needs more memory than the device has",
     .needs = CauseNeeds::kAnything,
     .detect = DetectCapacity,
     .fixes = {CauseFix::kStateAsleep},
     .frees_nothing = true},
    {.kind = CauseKind::kMemoryFraction,
     .name = "memory_fraction",
     .sentence = "A limit of this process keeps free memory of the device from it",
     .needs = CauseNeeds::kAnything,
     .detect = DetectMemoryFraction,
     .change = &changes::kWholeFraction},
    {.kind = CauseKind::kOtherProcess,
     .name = "other_process",
     .sentence = "Another process holds memory of this device",
     .needs = CauseNeeds::kAnything,
     .detect = DetectOtherProcess,
     .fixes = {CauseFix::kGivenBack}},
    {.kind = CauseKind::kOtherRanksContexts,
     .name = "other_ranks_contexts",
     .sentence = "Other ranks hold CUDA contexts on this device",
     .needs = CauseNeeds::kAnything,
     .detect = DetectOtherRanksContexts,
     .fixes = {CauseFix::kGivenBack},
     .curable_share = kContextShare},
    {.kind = CauseKind::kWorkspaces,
     .name = "workspaces",
     .sentence = "The CUDA context and library workspaces take the memory",
     .needs = CauseNeeds::kAnything,
     .detect = DetectWorkspaces,
     .fixes = {CauseFix::kGivenBack},
     .curable_share = kContextShare},
    {.kind = CauseKind::kRankImbalance,
     .name = "rank_imbalance",
     .sentence = "One rank peaks above the others",
     .needs = CauseNeeds::kAnything,
     .detect = DetectRankImbalance},
};

}  // namespace

absl::Span<const CauseSpec> DeviceCauses() { return kDeviceCauses; }

}  // namespace ashlar::analyses
