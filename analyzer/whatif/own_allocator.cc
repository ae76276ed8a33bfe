#include "analyzer/whatif/own_allocator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/policy/options.h"
#include "analyzer/whatif/settings_space.h"

namespace ashlar::whatif {
namespace {

const WhatIfRow* RecordedRow(const std::vector<WhatIfRow>& rows) {
  const auto at = std::find_if(rows.begin(), rows.end(), [](const WhatIfRow& row) { return row.is_baseline; });
  return at == rows.end() ? nullptr : &*at;
}

// A request failed, or was served after the whole cache had been returned.
bool IsInNeed(const WhatIfRow& row) { return row.ooms > 0 || (row.retries > 0 && !row.is_cut_off); }

// With 1 % less than the device has. What it reserves says little of what it needs: it maps large pages while there is
// room, and they move when there is none. So what is to be safe (ProjectedPart::IsSafe) is tried.
absl::StatusOr<WhatIfRow> ReplayWithLess(const trace::RequestTrace& requests, const WhatIfSettings& settings,
                                         const policy::Options& options, const analyses::Continuation* next) {
  WhatIfSettings with_less = settings;
  if (with_less.capacity_bytes.has_value()) *with_less.capacity_bytes -= *with_less.capacity_bytes / 100;
  absl::StatusOr<WhatIfRow> row = RunWhatIf(requests, with_less, options, next);
  if (!row.ok() || !row->projected.has_value()) return row;
  ProjectedPart& projected = *row->projected;
  projected.available_bytes += projected.available_bytes / 99;
  return row;
}

// Our plug-in takes over what PyTorch's own variables say.
std::string RunLine(const std::string& conf, const std::string& recorded_conf, bool is_pytorch) {
  if (!is_pytorch) return absl::StrCat("export ASHLAR_CONF=", conf);
  const char* const unset = recorded_conf.empty() ? "" : "env -u PYTORCH_CUDA_ALLOC_CONF -u PYTORCH_ALLOC_CONF ";
  return absl::StrCat(unset, "ASHLAR_CONF=", conf, " python -m ashlar_gpu.torch YOUR_PROGRAM.py");
}

}  // namespace

absl::StatusOr<std::optional<OwnAllocator>> TryOwnAllocator(const trace::RequestTrace& requests,
                                                            const WhatIfSettings& settings,
                                                            const analyses::Continuation* next,
                                                            const TriedSettings& tried) {
  const WhatIfRow* recorded = RecordedRow(tried.rows);
  if (recorded == nullptr || !IsInNeed(*recorded) || tried.advice.paste.has_value()) return std::nullopt;
  if (settings.baseline.policy == policy::Policy::kAshlar) return std::nullopt;
  absl::StatusOr<policy::Options> options = policy::ParseConf(
      JoinConfs("policy:ashlar", CarriedConf(settings.baseline.conf)), settings.baseline.compat, policy::Keys::kAshlar);
  if (!options.ok()) return std::nullopt;
  absl::StatusOr<WhatIfRow> row = ReplayWithLess(requests, settings, *options, next);
  if (row.ok() && !row->CarriesThrough()) row = RunWhatIf(requests, settings, *options, next);
  if (!row.ok()) return row.status();
  OwnAllocator out{.row = *std::move(row)};
  const Advice advice = Advise({*recorded, out.row});
  const bool gets_past =
      advice.choice.kind == ChoiceKind::kGetsPast &&
      std::none_of(tried.rows.begin(), tried.rows.end(), [](const WhatIfRow& r) { return r.ServesAllRecorded(); });
  if (!advice.paste.has_value() && !gets_past) return out;
  out.sentence = absl::StrCat("Ashlar's own allocator with ", advice.sentence);
  if (advice.paste.has_value()) out.run = RunLine(out.row.conf, settings.baseline.conf, tried.is_pytorch);
  return out;
}

}  // namespace ashlar::whatif
