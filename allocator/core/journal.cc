#include "allocator/core/journal.h"

#include <algorithm>

namespace ashlar::core {
namespace {

using trace::codec::RecordKind;
using trace::codec::SettingOf;

}  // namespace

Journal::Journal(JournalsShare& share, std::size_t bytes) : share_(share), buffer_(bytes) { Clear(0); }

// While nothing is kept there is always room.
bool Journal::StartOver() {
  if (keeps_) {
    share_.is_due.store(true, std::memory_order_relaxed);
    return false;
  }
  Clear(time_us_);
  return StackOfScopes(share_.recorder, stack_);
}

void Journal::Clear(std::int64_t time_us) {
  context_ = {};
  lane_ = nullptr;
  turn_ = 0;
  event_count_ = 0;
  time_us_ = time_us;
  at_ = buffer_.data();
  last_begin_ = buffer_.data() + buffer_.size() - kMostRecordBytes;
}

void Journal::SetKeeps(bool keeps) {
  Clear(time_us_);
  keeps_ = keeps;
}

void Journal::PutContext(const policy::Lane& lane, std::uint64_t turn) {
  if (events_to_clock_ < 0) {
    time_us_ = std::max(time_us_, share_.clock.NowMicroseconds());
    events_to_clock_ = kEventsOfOneTime;
    if (time_us_ >= share_.next_time_us.load(std::memory_order_relaxed)) last_begin_ = buffer_.data();
  }
  if (turn != turn_) {
    Put(RecordKind::kSetting);
    PutVarint(static_cast<std::uint64_t>(SettingOf::kTurn));
    PutVarint(turn);
    turn_ = turn;
  }
  lane_ = &lane;
  PutTime(time_us_);
  PutStream(lane.stream);
  PutPool(lane.pool->id);
  PutStack(stack_);
}

}  // namespace ashlar::core
