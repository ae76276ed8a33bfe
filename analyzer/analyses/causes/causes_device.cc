// Causes that lie in the device: what this allocator cannot have, whatever it does.
#include <string>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
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

}  // namespace

CauseFinding DetectCapacity(const CauseContext& context) {
  if (context.message.has_value()) return CapacityOfMessage(*context.message);
  if (!context.history.has_value())
    return NotInTrace(CauseKind::kCapacity, "a snapshot or an out-of-memory message would");
  const std::optional<Shortage> shortage = ShortageAt(context);
  return shortage.has_value() ? CapacityOfFailure(context, *shortage) : CapacityOfPeak(context);
}

}  // namespace ashlar::analyses
