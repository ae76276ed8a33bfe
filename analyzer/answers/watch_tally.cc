#include "analyzer/answers/watch_tally.h"

#include <algorithm>

namespace ashlar::answers {
namespace {

constexpr std::int64_t kMicrosecondsOfSecond = 1'000'000;

// A call of a program on device memory itself has no block beyond what it asks for.
std::uint64_t SizeOf(const trace::Event& event) {
  return event.block_size_bytes != 0 ? event.block_size_bytes : event.size_bytes;
}

bool IsDeviceCall(trace::Action action) {
  return action >= trace::Action::kSegmentAlloc && action <= trace::Action::kSegmentUnmap;
}

WatchSecond Still(std::int64_t second, std::uint64_t allocated_bytes) {
  WatchSecond still;
  still.second = second;
  still.most_allocated_bytes = still.last_allocated_bytes = allocated_bytes;
  return still;
}

}  // namespace

WatchTally::WatchTally(const std::vector<trace::SnapshotSegment>& start) {
  for (const trace::SnapshotSegment& segment : start) {
    for (const trace::SnapshotBlock& block : segment.blocks) {
      if (block.state == trace::BlockState::kLive) allocated_bytes_ += block.size_bytes;
    }
  }
  peak_bytes_ = allocated_bytes_;
}

// A second begins with what is allocated as it begins.
WatchSecond& WatchTally::SecondOf(const trace::Event& event) {
  if (event.time_us == trace::kNoTime) return timeless_;
  last_us_ = std::max(last_us_.value_or(event.time_us), event.time_us);
  if (!begin_us_.has_value()) begin_us_ = event.time_us;
  const std::int64_t second = *last_us_ / kMicrosecondsOfSecond;
  if (seconds_.empty() || seconds_.back().second != second) {
    WatchSecond& added = seconds_.emplace_back();
    added.second = second;
    added.most_allocated_bytes = added.last_allocated_bytes = allocated_bytes_;
  }
  // One older than the minute says what was allocated as it began.
  while (seconds_.size() > 1 && seconds_[1].second <= second - kMinuteSeconds) seconds_.pop_front();
  return seconds_.back();
}

void WatchTally::Add(const trace::Event& event) {
  ++events_;
  WatchSecond& second = SecondOf(event);
  if (event.action == trace::Action::kAlloc) {
    ++second.allocations;
    allocated_bytes_ += SizeOf(event);
  } else if (event.action == trace::Action::kFreeRequested) {
    ++second.frees;
    allocated_bytes_ -= std::min(allocated_bytes_, SizeOf(event));
  } else if (IsDeviceCall(event.action)) {
    ++second.device_calls;
  } else if (event.action == trace::Action::kOom) {
    ++ooms_;
  }
  second.most_allocated_bytes = std::max(second.most_allocated_bytes, allocated_bytes_);
  second.last_allocated_bytes = allocated_bytes_;
  peak_bytes_ = std::max(peak_bytes_, allocated_bytes_);
}

// Over the seconds of the recording, where it is shorter.
WatchRates WatchTally::Rates() const {
  const double passed = static_cast<double>(*last_us_ - *begin_us_) / kMicrosecondsOfSecond;
  const std::int64_t last = *last_us_ / kMicrosecondsOfSecond;
  const double part = static_cast<double>(*last_us_ % kMicrosecondsOfSecond) / kMicrosecondsOfSecond;
  const double seconds = std::clamp(passed, 0.001, static_cast<double>(kRateSeconds - 1) + part);
  WatchRates rates;
  for (const WatchSecond& second : seconds_) {
    if (second.second <= last - kRateSeconds) continue;
    rates.allocations += static_cast<double>(second.allocations) / seconds;
    rates.frees += static_cast<double>(second.frees) / seconds;
    rates.device_calls += static_cast<double>(second.device_calls) / seconds;
  }
  return rates;
}

void WatchTally::PutInto(WatchAnswer& answer) const {
  answer.events = events_;
  answer.ooms = ooms_;
  answer.peak_allocated_bytes = peak_bytes_;
  answer.begin_us = begin_us_;
  answer.last_us = last_us_;
  if (!last_us_.has_value()) return;
  answer.rates = Rates();
  // A second without events is as the one before it ended.
  const std::int64_t last = *last_us_ / kMicrosecondsOfSecond;
  std::int64_t at = std::max(last - kMinuteSeconds + 1, *begin_us_ / kMicrosecondsOfSecond);
  std::uint64_t bytes = seconds_.front().last_allocated_bytes;
  for (const WatchSecond& second : seconds_) {
    for (; at < second.second; ++at) answer.minute.push_back(Still(at, bytes));
    if (at == second.second) {
      answer.minute.push_back(second);
      ++at;
    }
    bytes = second.last_allocated_bytes;
  }
}

}  // namespace ashlar::answers
