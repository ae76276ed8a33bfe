#include "allocator/plugins/torch_native/history.h"

#include <c10/util/ApproximateClock.h>

#include <type_traits>
#include <utility>

namespace ashlar::torch {
namespace {

Context FindContext(const std::map<std::uint64_t, Context>& contexts, std::uint64_t address) {
  const auto found = contexts.find(address);
  return found == contexts.end() ? nullptr : found->second;
}

TraceEntry::Action ActionOf(std::int32_t kind) {
  switch (kind) {
    case ASHLAR_EVENT_ALLOC:
      return TraceEntry::ALLOC;
    case ASHLAR_EVENT_FREE_REQUESTED:
      return TraceEntry::FREE_REQUESTED;
    case ASHLAR_EVENT_FREE_COMPLETED:
      return TraceEntry::FREE_COMPLETED;
    case ASHLAR_EVENT_SEGMENT_ALLOC:
      return TraceEntry::SEGMENT_ALLOC;
    case ASHLAR_EVENT_SEGMENT_FREE:
      return TraceEntry::SEGMENT_FREE;
    case ASHLAR_EVENT_SEGMENT_MAP:
    case ASHLAR_EVENT_PAGES_WOKEN:
      return TraceEntry::SEGMENT_MAP;
    case ASHLAR_EVENT_SEGMENT_UNMAP:
    case ASHLAR_EVENT_PAGES_SLEPT:
      return TraceEntry::SEGMENT_UNMAP;
    default:
      return TraceEntry::OOM;
  }
}

// Entries have a pool and the program's texts from some release on: what the class takes is what it is given.
template <typename Entry>
Entry MakeEntry(TraceEntry::Action action, c10::DeviceIndex device, std::uint64_t address, std::uint64_t size_bytes,
                void* stream, c10::MempoolId_t pool, Context context, const std::string& metadata) {
  const auto& compiled = ThreadTexts::Mine().compile_contexts;
  const std::string compile_context = compiled.empty() ? std::string() : compiled.back();
  const c10::approx_time_t now = c10::getApproximateTime();
  using Stream = std::remove_reference_t<decltype(std::declval<Entry&>().stream_)>;
  const auto its_stream = static_cast<Stream>(stream);
  if constexpr (std::is_constructible_v<Entry, TraceEntry::Action, c10::DeviceIndex, std::size_t, std::size_t, Stream,
                                        c10::MempoolId_t, c10::approx_time_t, Context, std::string, std::string>) {
    return Entry(action, device, address, size_bytes, its_stream, pool, now, std::move(context), compile_context,
                 metadata);
  } else if constexpr (std::is_constructible_v<Entry, TraceEntry::Action, c10::DeviceIndex, std::size_t, std::size_t,
                                               Stream, c10::MempoolId_t, c10::approx_time_t, Context, std::string>) {
    return Entry(action, device, address, size_bytes, its_stream, pool, now, std::move(context), compile_context);
  } else if constexpr (std::is_constructible_v<Entry, TraceEntry::Action, c10::DeviceIndex, std::size_t, std::size_t,
                                               Stream, c10::MempoolId_t, c10::approx_time_t, Context>) {
    return Entry(action, device, address, size_bytes, its_stream, pool, now, std::move(context));
  } else {
    return Entry(action, device, address, size_bytes, its_stream, now, std::move(context));
  }
}

}  // namespace

// Stacks of blocks that came before the history ended are of no use after it: nobody sees these blocks go.
void DeviceHistory::Change(const HistoryRule& rule, bool clears) {
  const std::lock_guard<std::mutex> lock(mutex_);
  rule_ = rule;
  if (!rule.is_on) {
    blocks_.clear();
    segments_.clear();
  }
  if (!rule.is_on || clears) entries_.clear();
  while (entries_.size() > rule.most_entries) entries_.pop_front();
}

void DeviceHistory::Attach(AllocatorTraceTracker tracker) {
  const std::lock_guard<std::mutex> lock(mutex_);
  trackers_.push_back(std::move(tracker));
}

bool DeviceHistory::IsWanted() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return rule_.is_on || !trackers_.empty();
}

void DeviceHistory::Tell(void* history, const ashlar_event* event) {
  static_cast<DeviceHistory*>(history)->OnEvent(*event);
}

void DeviceHistory::OnEvent(const ashlar_event& event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // A pool that sleeps decides nothing: a history of it replays. Who has registered its pages with a network must know.
  const bool is_of_sleep = event.kind == ASHLAR_EVENT_PAGES_SLEPT || event.kind == ASHLAR_EVENT_PAGES_WOKEN;
  Context context = is_of_sleep ? nullptr : ContextOf(event);
  if (rule_.when < RecordContext::ALLOC) context = nullptr;
  TraceEntry entry = MakeEntry<TraceEntry>(ActionOf(event.kind), device_, event.address, event.size_bytes, event.stream,
                                           {event.pool.first, event.pool.second}, std::move(context),
                                           ThreadTexts::Mine().user_metadata);
  is_of_sleep ? TellTrackers(entry) : Record(std::move(entry));
}

void DeviceHistory::TellTrackers(const TraceEntry& entry) const {
  for (const AllocatorTraceTracker& tracker : trackers_) tracker(entry);
}

// The call's own stack, where one was gathered; of what ends else the stack under which it came.
Context DeviceHistory::ContextOf(const ashlar_event& event) {
  const Context& mine = ThreadTexts::Mine().context;
  switch (event.kind) {
    case ASHLAR_EVENT_ALLOC:
      if (mine != nullptr) blocks_[event.address] = mine;
      return mine;
    case ASHLAR_EVENT_SEGMENT_ALLOC:
    case ASHLAR_EVENT_SEGMENT_MAP:
      if (mine != nullptr) segments_[event.address] = mine;
      return mine;
    case ASHLAR_EVENT_FREE_REQUESTED:
      return mine != nullptr ? mine : FindContext(blocks_, event.address);
    case ASHLAR_EVENT_FREE_COMPLETED: {
      Context context = mine != nullptr ? mine : FindContext(blocks_, event.address);
      blocks_.erase(event.address);
      return context;
    }
    case ASHLAR_EVENT_SEGMENT_FREE:
    case ASHLAR_EVENT_SEGMENT_UNMAP: {
      Context context = mine != nullptr ? mine : FindContext(segments_, event.address);
      segments_.erase(segments_.lower_bound(event.address), segments_.lower_bound(event.address + event.size_bytes));
      return context;
    }
    default:
      return mine;
  }
}

void DeviceHistory::Record(TraceEntry entry) {
  TellTrackers(entry);
  if (!rule_.is_on || rule_.skips.count(entry.action_) > 0 || rule_.most_entries == 0) return;
  if (entries_.size() >= rule_.most_entries) entries_.pop_front();
  entries_.push_back(std::move(entry));
}

void DeviceHistory::Add(TraceEntry::Action action, std::uint64_t address, std::uint64_t size_bytes, void* stream,
                        c10::MempoolId_t pool, const std::string& metadata) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Record(MakeEntry<TraceEntry>(action, device_, address, size_bytes, stream, pool, nullptr, metadata));
}

std::vector<TraceEntry> DeviceHistory::Entries() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {entries_.begin(), entries_.end()};
}

Context DeviceHistory::OfBlock(std::uint64_t address) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return FindContext(blocks_, address);
}

Context DeviceHistory::OfSegment(std::uint64_t address) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return FindContext(segments_, address);
}

}  // namespace ashlar::torch
