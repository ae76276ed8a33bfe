#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "analyzer/answers/explain.h"
#include "analyzer/answers/explain_causes.h"
#include "analyzer/answers/explain_timeline.h"
#include "analyzer/answers/picture/picture_maker.h"
#include "analyzer/answers/traced_run.h"
#include "analyzer/answers/verdict.h"

namespace ashlar::answers {

absl::StatusOr<Explanation> ExplainRequests(const trace::RequestTrace& requests, const ExplainOptions& options) {
  std::vector<std::uint32_t> ops;
  const absl::StatusOr<ReplayedRun> run =
      ReplayRequests(requests, options.replay, options.picture.has_value() ? &ops : nullptr);
  if (!run.ok()) return run.status();

  Explanation out;
  const remedies::WhatIfInput input = remedies::InputWithoutRequests(requests, run->options, LimitsOf(options.replay));
  out.source = DescribeRequests(requests);
  out.replayed_as = input.replayed_as;
  TimelineContext context{&run->options, nullptr, options.replay.capacity_bytes, std::nullopt};
  if (options.replay.capacity_bytes.has_value()) context.outside_bytes = 0;
  analyses::CauseContext causes = CausesOf(*run);
  ExplainTimeline(run->timeline, context, *causes.history, out);
  const trace::LabelTable no_labels;
  std::optional<PictureMaker> picture;
  if (options.picture.has_value()) {
    picture.emplace(*options.picture, run->timeline, nullptr, no_labels);
    picture->SetPlaces({ops.begin(), ops.end()});
  }
  absl::StatusOr<std::vector<remedies::WhatIfRow>> rows = remedies::RunWhatIfs(
      requests, input.settings, options.replay.progress, nullptr, picture.has_value() ? picture->watch() : nullptr);
  if (!rows.ok()) return rows.status();
  out.what_if = *std::move(rows);
  out.what_if_capacity_bytes = options.replay.capacity_bytes;
  out.advice = remedies::Advise(out.what_if);
  if (absl::Status status = AddCauses(std::move(causes), requests, options, out); !status.ok()) return status;
  SetLastVerdict(out);
  if (!options.replay.capacity_bytes.has_value()) {
    out.notes.push_back({"capacity_unknown",
                         "a request trace does not say how much memory the device has; give --capacity 16GiB to see "
                         "whether it fits",
                         1});
  }
  out.notes.push_back({"no_stacks", "call stacks are not in this trace", 1});
  if (picture.has_value()) picture->Finish(out);
  return out;
}

}  // namespace ashlar::answers
