#include "allocator/trace/dropped_events.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

namespace ashlar::trace::codec {
namespace {

// No device has more; what claims to is damaged, and no page of it is kept.
constexpr std::uint64_t kMostLargePages = std::uint64_t{1} << 20;

}  // namespace

void DroppedEvents::Drop(std::size_t device, bool is_end, const std::vector<SnapshotSegment>* start, EventList& events,
                         std::vector<Fact>& facts) {
  if (max_events_ == 0) return;
  if (devices_.size() <= device) devices_.resize(device + 1, Device{TraceTail(max_events_)});
  Device& of = devices_[device];
  const std::size_t count = is_end ? of.tail.Rest(events) : of.tail.TooMany(events);
  if (count > 0) {
    const absl::Span<const Event> dropped(events.data(), count);
    if (keeps_state_ && start != nullptr) {
      if (!state_.has_value()) {
        std::vector<SnapshotSegment> by_address = *start;
        status_.Update(CheckSegments(by_address));
        state_.emplace(by_address);
      }
      if (status_.ok()) status_ = state_->Apply(device, dropped, of.tail.dropped());
    }
    Note(of, dropped);
    DropFacts(dropped, facts);
    of.tail.Drop(count, events.Mutable());
  }
  if (is_end && of.tail.dropped() > 0) TellSizes(of, events.Mutable());
}

void DroppedEvents::Note(Device& of, absl::Span<const Event> dropped) {
  for (const Event& event : dropped) {
    if (event.action == Action::kAlloc) of.blocks[event.address] = {event.stack, event.block_size_bytes};
    if (event.action == Action::kFreeCompleted) of.blocks.erase(event.address);
  }
}

// A free spans what its allocation did, which may lie before. What stays are the blocks that are there at the end.
void DroppedEvents::TellSizes(Device& of, std::vector<Event>& held) {
  for (Event& event : held) {
    if (of.blocks.empty()) return;
    const auto older = of.blocks.find(event.address);
    if (older == of.blocks.end()) continue;
    const bool is_free = event.action == Action::kFreeRequested || event.action == Action::kFreeCompleted;
    if (is_free && event.block_size_bytes == 0) event.block_size_bytes = older->second.size_bytes;
    if (event.action == Action::kFreeCompleted || event.action == Action::kAlloc) of.blocks.erase(older);
  }
}

void DroppedEvents::DropFacts(absl::Span<const Event> dropped, std::vector<Fact>& facts) {
  const std::uint64_t count = dropped.size();
  const auto first = std::find_if(facts.begin(), facts.end(), [&](const Fact& fact) { return fact.event >= count; });
  for (auto fact = facts.begin(); fact != first; ++fact) Stand(fact->what);
  const absl::Span<const Fact> gone(facts.data(), static_cast<std::size_t>(first - facts.begin()));
  DropWaits(dropped, gone);
  DropPages(dropped, gone);
  facts.erase(facts.begin(), first);
  for (Fact& fact : facts) fact.event -= count;
}

void DroppedEvents::SetLargePages(const std::vector<LargePage>& pages) {
  large_pages_.clear();
  for (const LargePage& page : pages) large_pages_.emplace(page.address, page.size_bytes);
}

void DroppedEvents::DropPages(absl::Span<const Event> dropped, absl::Span<const Fact> facts) {
  const auto is_large = [](const Fact& fact) {
    const auto* const mapped = std::get_if<fact::PagesMapped>(&fact.what);
    return mapped != nullptr && mapped->large_page_bytes > 0;
  };
  auto fact = std::find_if(facts.begin(), facts.end(), is_large);
  if (fact == facts.end() && large_pages_.empty()) return;
  for (std::size_t i = 0; i < dropped.size(); ++i) {
    const Event& event = dropped[i];
    std::uint64_t page_bytes = 0;  // of this event
    for (; fact != facts.end() && fact->event <= i; fact = std::find_if(fact + 1, facts.end(), is_large)) {
      page_bytes = std::get<fact::PagesMapped>(fact->what).large_page_bytes;
    }
    const bool is_map = event.action == Action::kSegmentMap;
    if (!is_map && event.action != Action::kSegmentUnmap) continue;
    const auto begin = large_pages_.lower_bound(event.address);
    large_pages_.erase(begin, large_pages_.lower_bound(event.address + event.size_bytes));
    if (!is_map || page_bytes == 0) continue;
    if (large_pages_.size() + event.size_bytes / page_bytes > kMostLargePages) continue;
    for (std::uint64_t at = 0; at < event.size_bytes; at += page_bytes) {
      large_pages_.emplace(event.address + at, page_bytes);
    }
  }
}

void DroppedEvents::Stand(const AnyFact& dropped) {
  if (const auto* const limit = std::get_if<fact::LimitSet>(&dropped)) limit_ = *limit;
  if (const auto* const settings = std::get_if<fact::SettingsChanged>(&dropped)) settings_ = *settings;
  if (const auto* const users = std::get_if<fact::PoolUsers>(&dropped)) {
    if (users->count == 0) {
      const auto pool = pools_.find(users->pool);
      if (pool != pools_.end() && pool->second.tagged.has_value()) {
        pool->second = {.tagged = pool->second.tagged};
      } else if (pool != pools_.end()) {
        pools_.erase(pool);
      }
    } else {
      pools_[users->pool].users = *users;
    }
  }
  if (const auto* const traits = std::get_if<fact::PoolConfigured>(&dropped)) pools_[traits->pool].traits = *traits;
  if (const auto* const tagged = std::get_if<fact::PoolTagged>(&dropped)) pools_[tagged->pool].tagged = *tagged;
  if (const auto* const slept = std::get_if<fact::PoolSlept>(&dropped)) asleep_.insert(slept->pool);
  if (const auto* const woken = std::get_if<fact::PoolWoken>(&dropped)) asleep_.erase(woken->pool);
  if (const auto* const range = std::get_if<fact::RangeRegistered>(&dropped)) registered_.push_back(*range);
  if (const auto* const range = std::get_if<fact::RangeUnregistered>(&dropped)) {
    const auto youngest = std::find_if(registered_.rbegin(), registered_.rend(),
                                       [&](const fact::RangeRegistered& one) { return one.address == range->address; });
    if (youngest != registered_.rend()) registered_.erase(std::next(youngest).base());
  }
  if (const auto* const begun = std::get_if<fact::PoolBegun>(&dropped)) begun_.push_back(*begun);
  if (const auto* const ended = std::get_if<fact::PoolEnded>(&dropped)) {
    std::erase_if(begun_, [&](const fact::PoolBegun& of) { return of.pool == ended->pool; });
  }
}

// What is owed after the last wait, and how many requests were served since.
void DroppedEvents::DropWaits(absl::Span<const Event> dropped, absl::Span<const Fact> facts) {
  std::size_t since = 0;
  for (const Fact& fact : facts) {
    if (const auto* const owed = std::get_if<fact::WaitsOwed>(&fact.what)) waits_ = *owed;
    const auto* const waited = std::get_if<fact::StreamWaited>(&fact.what);
    if (waited == nullptr) continue;
    waits_ = {waited->owed, 0};
    since = fact.event;
  }
  if (!waits_.has_value()) return;
  for (const Event& event : dropped.subspan(since)) waits_->served_since += event.action == Action::kAlloc ? 1 : 0;
}

std::uint64_t DroppedEvents::count() const {
  std::uint64_t count = 0;
  for (const Device& of : devices_) count += of.tail.dropped();
  return count;
}

absl::Status DroppedEvents::StateAfter(const std::vector<SnapshotSegment>& start, absl::Span<const EventList> held,
                                       std::vector<SnapshotSegment>& out) {
  if (!status_.ok()) return status_;
  if (!state_.has_value()) state_.emplace(start);
  for (std::size_t device = 0; device < held.size(); ++device) {
    const std::uint64_t first = device < devices_.size() ? devices_[device].tail.dropped() : 0;
    if (absl::Status status = state_->Apply(device, held[device], first); !status.ok()) return status;
  }
  state_->Finish(out);
  return absl::OkStatus();
}

void DroppedEvents::FillBlockStacks(std::vector<SnapshotSegment>& segments) const {
  for (SnapshotSegment& segment : segments) {
    if (static_cast<std::size_t>(segment.device) >= devices_.size()) continue;
    const auto& blocks = devices_[static_cast<std::size_t>(segment.device)].blocks;
    for (SnapshotBlock& block : segment.blocks) {
      if (block.state == BlockState::kFree || block.stack != kNoStack) continue;
      if (const auto older = blocks.find(block.address); older != blocks.end()) block.stack = older->second.stack;
    }
  }
}

// Rewinding tells in which state what is held begins, but for what is one page there.
void DroppedEvents::Describe(RecordingInfo& recording) const {
  const auto device = static_cast<std::size_t>(recording.device);
  if (device >= devices_.size() || devices_[device].tail.dropped() == 0) return;
  recording.events_before += devices_[device].tail.dropped();
  recording.start.reset();
  if (!large_pages_.empty()) {
    RecordedStart& start = recording.start.emplace();
    start.has_reservations = false;
    for (const auto& [address, size_bytes] : large_pages_) start.large_pages.push_back({address, size_bytes});
  }
  if (limit_.has_value()) recording.limit_bytes = limit_->bytes;
  std::vector<Fact> standing;  // in the recorder's order
  if (settings_.has_value()) standing.push_back({*settings_, 0});
  if (waits_.has_value()) standing.push_back({*waits_, 0});
  for (const fact::PoolBegun& begun : begun_) standing.push_back({begun, 0});
  for (const auto& [pool, of] : pools_) {
    if (of.users.has_value()) standing.push_back({*of.users, 0});
    if (of.traits.has_value()) standing.push_back({*of.traits, 0});
    if (of.tagged.has_value()) standing.push_back({*of.tagged, 0});
  }
  for (const PoolId& pool : asleep_) standing.push_back({fact::PoolSlept{pool}, 0});
  for (const fact::RangeRegistered& range : registered_) standing.push_back({range, 0});
  recording.facts.insert(recording.facts.begin(), standing.begin(), standing.end());
}

void DroppedEvents::Describe(Snapshot& snapshot) const {
  for (std::size_t device = 0; device < devices_.size(); ++device) {
    devices_[device].tail.Describe(snapshot.device_traces[device], device, snapshot);
  }
}

}  // namespace ashlar::trace::codec
