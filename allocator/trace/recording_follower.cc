#include "allocator/trace/recording_follower.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "allocator/trace/decoder.h"
#include "allocator/trace/state_after.h"

namespace ashlar::trace {

struct RecordingFollower::Impl {
  codec::Decoder decoder{absl::string_view(), DecodeLimits{}};
  absl::Status status;
};

RecordingFollower::RecordingFollower() : impl_(std::make_unique<Impl>()) {}
RecordingFollower::~RecordingFollower() = default;

absl::StatusOr<std::size_t> RecordingFollower::Take(absl::string_view bytes) {
  if (!impl_->status.ok()) return impl_->status;
  absl::StatusOr<std::size_t> taken = impl_->decoder.ReadWhole(bytes);
  impl_->status = taken.status();
  return taken;
}

std::vector<EventList> RecordingFollower::TakeEvents() { return impl_->decoder.TakeEvents(); }

bool RecordingFollower::has_ended() const { return impl_->decoder.is_ended(); }

bool RecordingFollower::begins_with_state() const {
  return impl_->decoder.head().HasSegmentsAt(codec::StateAt::kStart);
}

std::vector<SnapshotSegment> RecordingFollower::start() const {
  std::vector<SnapshotSegment> start = impl_->decoder.start();
  const absl::Status status = CheckSegments(start);
  return status.ok() ? start : std::vector<SnapshotSegment>();
}

std::optional<std::uint64_t> RecordingFollower::device_total_bytes() const {
  const std::map<std::string, std::string>& values = impl_->decoder.head().recording_values;
  const auto total = values.find("device_total_bytes");
  std::uint64_t bytes = 0;
  if (total == values.end() || !absl::SimpleAtoi(total->second, &bytes) || bytes == 0) return std::nullopt;
  return bytes;
}

}  // namespace ashlar::trace
