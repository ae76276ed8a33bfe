#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "analyzer/answers/explain.h"
#include "analyzer/answers/explain_causes.h"
#include "analyzer/answers/explain_timeline.h"
#include "analyzer/answers/picture/picture_maker.h"
#include "analyzer/answers/traced_run.h"
#include "analyzer/answers/verdict.h"
#include "analyzer/readers/rmm/rmm_log.h"

namespace ashlar::answers {

namespace {

// A replay that needs no memory of the log's device does not fail where the program did.
void TellOfFailuresInLog(absl::string_view failed, Explanation& out) {
  if (failed.empty()) return;
  const bool is_healthy = out.verdict == OomVerdict::kHealthy;
  if (is_healthy) {
    out.headline = absl::StrCat("NO FAILURE IN THE REPLAY", absl::StripPrefix(out.headline, "NO FAILURE"),
                                "; the log has ", failed);
    out.verdict = OomVerdict::kUnknown;
    out.evidence.clear();
  }
  out.evidence.push_back(absl::StrCat(is_healthy ? "unknown: " : "", failed, " in the log itself ",
                                      absl::EndsWith(failed, "s") ? "are" : "is",
                                      " not replayed: the log does not tell how much memory there was"));
}

}  // namespace

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
  out.what_if_capacity_bytes = AllocatorBytes(options.replay);
  out.advice = remedies::Advise(out.what_if);
  absl::StatusOr<std::optional<remedies::OwnAllocator>> own =
      remedies::TryOwnAllocator(requests, input.settings, nullptr, {out.what_if, out.advice, /*is_pytorch=*/false});
  if (!own.ok()) return own.status();
  out.own = *std::move(own);
  if (absl::Status status = AddCauses(std::move(causes), requests, options, out); !status.ok()) return status;
  SetLastVerdict(out);
  TellOfFailuresInLog(readers::FailedInRmmLog(requests), out);
  out.notes.insert(out.notes.end(), requests.notes.begin(), requests.notes.end());
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
