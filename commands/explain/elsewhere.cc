#include "commands/explain/elsewhere.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/whatif/advice.h"
#include "analyzer/whatif/what_if.h"
#include "analyzer/whatif/what_if_input.h"
#include "commands/explain/explain_report.h"

namespace ashlar::answers {
namespace {

using Rows = std::vector<whatif::WhatIfRow>;

constexpr std::uint64_t kAlikeShare = 50;  // sizes of one device that differ by less than a 50th: as they are rounded

Elsewhere Empty(const OtherDevice& device, const ReplaySettings& there) {
  return {.card = device.card,
          .total_bytes = device.total_bytes,
          .allocator_bytes = AllocatorBytes(there).value_or(device.total_bytes)};
}

std::string DeviceName(const Elsewhere& of) {
  const std::string size = FormatBytes(of.total_bytes);
  return of.card.empty() ? absl::StrCat("on a device of ", size) : absl::StrCat("on ", of.card, " (", size, ")");
}

std::uint64_t PeakOf(const whatif::WhatIfRow& row) {
  return std::max(row.peak_reserved_bytes, row.projected.has_value() ? row.projected->peak_reserved_bytes : 0);
}

// The recorded settings where they do, else the others' lowest peak.
template <typename Holds>
const whatif::WhatIfRow* BestOf(const Rows& rows, Holds holds) {
  const whatif::WhatIfRow* best = nullptr;
  for (const whatif::WhatIfRow& row : rows) {
    if (!holds(row)) continue;
    if (row.is_baseline) return &row;
    if (best == nullptr || PeakOf(row) < PeakOf(*best)) best = &row;
  }
  return best;
}

std::string Under(const whatif::WhatIfRow& row) {
  return absl::StrCat("under ", row.is_baseline ? "the recorded settings" : whatif::NameOf(row.conf));
}

void SayRow(const whatif::WhatIfRow& row, Elsewhere& out) {
  const std::uint64_t peak = PeakOf(row);
  out.conf = row.conf;
  out.peak_bytes = peak;
  const std::string figures =
      absl::StrCat("peak ", FormatBytes(peak), ", ",
                   FormatBytes(out.allocator_bytes - std::min(peak, out.allocator_bytes)), " to spare");
  if (row.CarriesThrough()) {
    out.fits = true;
    out.sentence = absl::StrCat("yes, ", DeviceName(out), ": ", figures, ", ", Under(row),
                                row.is_cut_off ? "; the request that failed is served, and the step goes on" : "");
    return;
  }
  if (row.projected.has_value() && row.projected->ooms > 0) out.fits = false;
  out.sentence = absl::StrCat(out.fits.has_value() ? "no, " : "not known, ", DeviceName(out), ": ", Under(row),
                              " the run ", report::ProjectedText(row));
}

void SayNone(const Rows& rows, Elsewhere& out) {
  const auto recorded = std::find_if(rows.begin(), rows.end(), [](const auto& row) { return row.is_baseline; });
  out.fits = false;
  out.sentence =
      absl::StrCat("no, ", DeviceName(out), ": requests fail under each of the ", rows.size(), " settings tried");
  if (recorded == rows.end()) return;
  absl::StrAppend(&out.sentence, ", and under the recorded ones at ", FormatBytes(recorded->peak_reserved_bytes),
                  " of the ", FormatBytes(out.allocator_bytes), " that an allocator can have there");
}

}  // namespace

std::optional<OtherDevice> TakeOtherDevice(ReplaySettings& settings) {
  if (!settings.capacity_bytes.has_value()) return std::nullopt;
  OtherDevice out{settings.card, *settings.capacity_bytes, settings.context_bytes};
  if (!out.card.empty()) {
    settings.capacity_bytes.reset();
    settings.context_bytes.reset();
  }
  return out;
}

ReplaySettings On(const OtherDevice& device, ReplaySettings settings) {
  settings.card = device.card;
  settings.capacity_bytes = device.total_bytes;
  settings.context_bytes = device.context_bytes;
  return settings;
}

bool IsElsewhere(const OtherDevice& device, const OomAccounting& recorded, bool has_failed) {
  if (!device.card.empty() || !has_failed) return true;
  const std::uint64_t margin = device.total_bytes / kAlikeShare;
  const std::uint64_t seen = recorded.reserved_bytes.value_or(0) + recorded.free_bytes.value_or(0);
  if (recorded.total_bytes.has_value() && *recorded.total_bytes != device.total_bytes) {
    const auto [less, more] = std::minmax(*recorded.total_bytes, device.total_bytes);
    return more - less > margin;
  }
  return seen > device.total_bytes || device.total_bytes - seen > MostContextBytes() + margin;
}

absl::StatusOr<Elsewhere> TryElsewhere(const trace::Snapshot& snapshot, const ObservedRun& run,
                                       const analyses::Steps& steps, const ReplaySettings& settings,
                                       const OtherDevice& device) {
  const ReplaySettings there = WithContext(On(device, settings), snapshot);
  Elsewhere out = Empty(device, there);
  const replay::RecordedReplay& recorded = run.recorded;
  whatif::WhatIfInput input = whatif::InputWithoutRequests(recorded, run.timeline, LimitsOf(there));
  input.settings.capacity_bytes = out.allocator_bytes;  // and not what the record tells
  input.settings.device.outside_bytes = OutsideBytes(there);
  const std::optional<analyses::Continuation> next =
      whatif::ProjectionOf(recorded.program, run.timeline, snapshot.stacks, steps);
  const std::shared_ptr<const trace::RequestTrace> requests = whatif::SharedWhatIfRequests(recorded.program, true);
  const absl::StatusOr<Rows> rows =
      whatif::RunWhatIfs(*requests, input.settings, settings.progress, next.has_value() ? &*next : nullptr);
  if (!rows.ok()) return rows.status();
  const whatif::WhatIfRow* row = BestOf(*rows, [](const auto& of) { return of.CarriesThrough(); });
  if (row == nullptr) row = BestOf(*rows, [](const auto& of) { return of.ServesAllRecorded(); });
  if (row != nullptr) {
    SayRow(*row, out);
  } else {
    SayNone(*rows, out);
  }
  return out;
}

Elsewhere HeldElsewhere(const OtherDevice& device, const OomAccounting& recorded,
                        const std::optional<std::uint64_t>& tried_bytes) {
  Elsewhere out = Empty(device, WithContext(On(device, {}), trace::Snapshot{}));
  const std::optional<std::uint64_t>& held =
      recorded.allocated_bytes.has_value() ? recorded.allocated_bytes : recorded.reserved_bytes;
  if (!held.has_value()) {
    out.sentence = absl::StrCat("not known, ", DeviceName(out), ": how much was held is not in the input");
    return out;
  }
  const std::uint64_t needed = *held + tried_bytes.value_or(0);
  const bool is_more = needed > out.allocator_bytes;
  if (is_more || !tried_bytes.has_value()) out.fits = !is_more;
  const char* const answer = is_more ? "no, " : out.fits.has_value() ? "yes, " : "this request would, ";
  const auto [less, more] = std::minmax(needed, out.allocator_bytes);
  out.sentence =
      absl::StrCat(answer, DeviceName(out), ": ", FormatBytes(needed), " are needed, ", FormatBytes(more - less),
                   is_more ? " more than" : " less than", " there is beside the context",
                   out.fits.has_value() ? "" : "; what the program asks for after it is not in the input");
  return out;
}

}  // namespace ashlar::answers
