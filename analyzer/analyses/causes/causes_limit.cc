// A limit of this process, such as torch.cuda.set_per_process_memory_fraction: the device had room, and the request
// failed.
#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/analyses/causes/evidence.h"

namespace ashlar::analyses {
namespace {

constexpr char kRaiseFraction[] =
    "torch.cuda.set_per_process_memory_fraction sets such a limit, and so does the setting per_process_memory_fraction";

CauseFinding LimitOfMessage(const OomMessageVerdict& verdict) {
  const CauseKind kind = CauseKind::kMemoryFraction;
  const std::optional<std::uint64_t>& free = verdict.accounting.free_bytes;
  if (!free.has_value() || !verdict.tried_bytes.has_value()) {
    return NotInTrace(kind, "what was free on the device would tell");
  }
  if (verdict.kind != OomVerdict::kLimit) return Absent(kind, "the message names no limit that stopped the request");
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

}  // namespace

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

}  // namespace ashlar::analyses
