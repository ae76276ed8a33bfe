#include "commands/explain/picture/what_if_pictures.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "commands/explain/picture/run_picture.h"

namespace ashlar::answers {
namespace {

// The standard rows and the baseline's share what there is.
constexpr std::size_t kUsualRows = 8;

// The timeline of a what-if takes some 70 bytes an event until it is drawn: those of longer runs are not made two at
// a time.
constexpr std::size_t kManyEvents = 4'000'000;

// The first event that answers a projected request.
std::optional<timeline::EventIndex> FirstProjected(const std::vector<std::uint32_t>& ops,
                                                   const RequestOrigins& origins) {
  if (!origins.projected_from().has_value()) return std::nullopt;
  const auto found = std::lower_bound(ops.begin(), ops.end(), *origins.projected_from());
  if (found == ops.end()) return std::nullopt;
  return found - ops.begin();
}

}  // namespace

replay::OpSink* WhatIfPictures::Begin(std::size_t row) {
  auto replay = std::make_unique<Replay>(origins_);
  replay->sink.LeaveOutEvents();
  replay->sink.Reserve(events_ + events_ / 4);
  const std::lock_guard lock(mutex_);
  return &(replays_[row] = std::move(replay))->sink;
}

std::size_t WhatIfPictures::MostAtOnce() const { return events_ < kManyEvents ? whatif::WhatIfWatch::MostAtOnce() : 1; }

std::unique_ptr<WhatIfPictures::Replay> WhatIfPictures::Take(std::size_t row) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Replay> out = std::move(replays_[row]);
  replays_.erase(row);
  return out;
}

absl::Status WhatIfPictures::End(std::size_t index, const whatif::WhatIfRow& row) {
  const std::unique_ptr<Replay> replay = Take(index);
  const absl::StatusOr<timeline::Timeline> timeline = replay->sink.Finish();
  if (!timeline.ok()) return timeline.status();
  const std::vector<std::uint32_t>& ops = replay->ops;
  const std::optional<timeline::EventIndex> projected = FirstProjected(ops, origins_);
  RunFacts facts{.most_moments = limits_.what_if_moments / kUsualRows,
                 .most_blocks = limits_.what_if_blocks / kUsualRows};
  facts.time_of = [&](timeline::EventIndex event) { return origins_.TimeOf(ops[static_cast<std::size_t>(event)]); };
  facts.place_of = [&](timeline::EventIndex event) { return origins_.PlaceOf(ops[static_cast<std::size_t>(event)]); };
  if (projected.has_value()) facts.pointed_at.push_back(*projected);
  if (!texts_.texts().empty()) {
    facts.text_of = [&](timeline::EventIndex event) {
      return event < 0 ? kNoText : texts_.TextOf(origins_.EventOf(ops[static_cast<std::size_t>(event)]));
    };
  }
  RunPicture run = PictureOfRun(*timeline, facts).run;
  run.kind = RunKind::kWhatIf;
  run.name = row.conf;
  run.what_if_row = index;
  if (projected.has_value()) {
    const auto& events = run.moments.events;
    run.projected_from =
        static_cast<Moment>(std::lower_bound(events.begin(), events.end(), *projected) - events.begin());
  }
  const std::lock_guard lock(mutex_);
  runs_[index] = std::move(run);
  return absl::OkStatus();
}

}  // namespace ashlar::answers
