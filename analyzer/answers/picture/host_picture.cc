#include "analyzer/answers/picture/host_picture.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "analyzer/answers/picture/run_picture.h"
#include "analyzer/replay/calls_program.h"
#include "analyzer/timeline/observed.h"

namespace ashlar::answers {
namespace {

using trace::Action;
using trace::Event;

// A free that was completed had been asked for, also where the record leaves that out.
std::vector<Event> WithRequestedFrees(const std::vector<Event>& events) {
  std::vector<Event> out;
  absl::flat_hash_set<std::uint64_t> asked;
  for (const Event& event : events) {
    if (event.action == Action::kFreeRequested) asked.insert(event.address);
    if (event.action == Action::kFreeCompleted && asked.erase(event.address) == 0) {
      Event request = event;
      request.action = Action::kFreeRequested;
      out.push_back(request);
    }
    out.push_back(event);
  }
  return out;
}

trace::Snapshot AsDevice(const trace::Snapshot& snapshot) {
  trace::Snapshot out;
  out.segments = snapshot.host.segments;
  out.device_traces = {WithRequestedFrees(snapshot.host.events)};
  return out;
}

}  // namespace

std::optional<RunPicture> PictureOfHost(const trace::Snapshot& snapshot, const PictureLimits& limits) {
  if (snapshot.host.IsEmpty()) return std::nullopt;
  trace::Snapshot host = AsDevice(snapshot);
  absl::StatusOr<timeline::Timeline> timeline = timeline::MakeObservedTimeline(host, 0, replay::CallsSizeRule());
  if (!timeline.ok()) {
    host.device_traces.clear();
    timeline = timeline::MakeObservedTimeline(host, 0, replay::CallsSizeRule());
    if (!timeline.ok()) return std::nullopt;
  }
  RunPicture out = PictureOfRun(*timeline, {.most_moments = limits.what_if_moments}).run;
  out.kind = RunKind::kHost;
  out.name = "pinned host memory";
  return out;
}

}  // namespace ashlar::answers
