// The part of a recorder that hands out journals, and collects what they hold.
#include <algorithm>

#include "allocator/core/recorder.h"

namespace ashlar::core {
namespace {

constexpr std::size_t kLeastJournalBytes = 512;
constexpr std::int64_t kMostWaitUs = 1'000'000;  // of an event for the file, while others come

}  // namespace

Journal* Recorder::JournalOf(std::size_t desk) {
  while (journals_.size() <= desk) journals_.emplace_back();
  std::unique_ptr<Journal>& journal = journals_[desk];
  if (journal == nullptr) {
    journal = std::make_unique<Journal>(share_, std::max(options_.chunk_bytes / 2, kLeastJournalBytes));
    journal->SetKeeps(is_recording_);
  }
  return journal.get();
}

// Times go on from the latest: so they never go back from one chunk to the next.
void Recorder::Collect() {
  share_.is_due.store(false, std::memory_order_relaxed);
  time_us_ = std::max(LatestTime(), share_.clock.NowMicroseconds());
  if (file_ != nullptr) share_.next_time_us.store(time_us_ + kMostWaitUs, std::memory_order_relaxed);
  for (std::size_t i = 0; i < journals_.size(); ++i) {
    if (journals_[i] == nullptr) continue;
    Journal& journal = *journals_[i];
    if (is_recording_ && journal.event_count() > 0) encoder_.AddPart(i + 1, journal.records(), journal.event_count());
    journal.Clear(time_us_);
  }
}

std::int64_t Recorder::LatestTime() const {
  std::int64_t latest = time_us_;
  for (const auto& journal : journals_) {
    if (journal != nullptr) latest = std::max(latest, journal->time_us());
  }
  return latest;
}

void Recorder::TakeTurn() {
  const std::uint64_t turn = inspection_.TurnNow();
  if (turn == turn_) return;
  turn_ = turn;
  encoder_.PutTurn(turn);
}

void Recorder::SetKeeping(bool keeps) {
  for (const auto& journal : journals_) {
    if (journal != nullptr) journal->SetKeeps(keeps);
  }
}

void Recorder::EndKeeping() {
  is_recording_ = false;
  SetKeeping(false);
}

}  // namespace ashlar::core
