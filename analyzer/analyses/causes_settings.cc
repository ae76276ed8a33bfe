// Causes that lie in the allocator's settings and size classes.
#include <string>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/cause_detectors.h"
#include "analyzer/analyses/state_accounting.h"

namespace ashlar::analyses {
namespace {

// Of what is allocated; below it rounding is what 512-byte blocks cost anyone.
constexpr double kRoundingShare = 0.03;

}  // namespace

CauseFinding DetectRounding(const CauseInput& input) {
  const CauseKind kind = CauseKind::kRounding;
  const core::Accounting parts = AccountState(*input.state);
  if (!parts.rounding_bytes.has_value()) return NotInTrace(kind, "what was requested is not in this trace");
  const std::uint64_t bytes = *parts.rounding_bytes;
  const std::string share = absl::StrCat("blocks span ", FormatBytes(bytes), " more than was requested, ",
                                         ShareText(bytes, parts.allocated_bytes), " of what is allocated");
  if (!IsMaterial(input, bytes) ||
      static_cast<double>(bytes) < kRoundingShare * static_cast<double>(parts.allocated_bytes)) {
    return Absent(kind, share);
  }
  CauseFinding out = Found(kind, Confidence::kLikely, bytes);
  out.evidence.push_back(share);
  return out;
}

}  // namespace ashlar::analyses
