#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/replay/request_replay.h"
#include "analyzer/replay/timeline_sink.h"
#include "analyzer/report/explain.h"
#include "analyzer/report/explain_timeline.h"

namespace ashlar::report {

absl::StatusOr<Explanation> ExplainRequests(const trace::RequestTrace& requests, const ExplainOptions& options) {
  const policy::Compat compat = options.wishes.compat.value_or(policy::Compat::kTorch210);
  absl::StatusOr<policy::Options> policy_options = policy::ParseConf(options.wishes.conf.value_or(""), compat);
  if (!policy_options.ok()) return policy_options.status();
  if (options.wishes.free_order.has_value()) policy_options->free_order = *options.wishes.free_order;

  Explanation out;
  remedies::WhatIfSettings settings;
  settings.baseline = *policy_options;
  settings.capacity_bytes = options.capacity_bytes;
  settings.memory_fraction = options.memory_fraction;
  settings.device.address_order = options.segment_addresses;

  replay::RequestReplayOptions replay_options{*policy_options, settings.device, options.memory_fraction};
  replay_options.device.capacity_bytes = options.capacity_bytes.value_or(remedies::kAmpleCapacityBytes);
  replay::RequestReplay replay(std::move(replay_options));
  replay::TimelineSink sink{timeline::StartState{}};
  if (absl::Status status = replay.Run(requests, &sink); !status.ok()) return status;
  absl::StatusOr<timeline::Timeline> replayed = sink.Finish();
  if (!replayed.ok()) return replayed.status();

  out.source = absl::StrCat("request trace, ", FormatCount(requests.requests.size()), " requests, replayed");
  out.replayed_as = absl::StrCat("replayed as ", policy::CompatName(compat), ", equal free blocks in ",
                                 policy::FreeOrderName(policy_options->free_order), " order");
  TimelineContext context{&*policy_options, nullptr, options.capacity_bytes, std::nullopt};
  if (options.capacity_bytes.has_value()) context.outside_bytes = 0;
  ExplainTimeline(*replayed, context, out);
  absl::StatusOr<std::vector<remedies::WhatIfRow>> rows = remedies::RunWhatIfs(requests, settings);
  if (!rows.ok()) return rows.status();
  out.what_if = *std::move(rows);
  out.what_if_capacity_bytes = options.capacity_bytes;
  out.advice = remedies::Advise(out.what_if);
  if (!options.capacity_bytes.has_value()) {
    out.notes.push_back({"capacity_unknown",
                         "a request trace does not say how much memory the device has; give --capacity 16GiB to see "
                         "whether it fits",
                         1});
  }
  out.notes.push_back({"no_stacks", "call stacks are not in this trace", 1});
  return out;
}

}  // namespace ashlar::report
