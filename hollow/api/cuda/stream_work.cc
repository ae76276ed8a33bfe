#include "hollow/api/cuda/stream_work.h"

#include <pthread.h>

#include <algorithm>
#include <map>
#include <mutex>

namespace ashlar::hollow {

namespace stream_work_internal {
std::atomic<bool> g_any{false};
}  // namespace stream_work_internal

namespace {

using WorkList = std::vector<std::shared_ptr<StreamWork>>;

struct Writing {
  ByteRange range;
  std::shared_ptr<StreamWork> work;
};

struct Given {
  int device = 0;
  std::shared_ptr<StreamWork> work;
};

// All of it under g_mutex. A list may hold work that is over: it is dropped at the next look.
struct Work {
  std::map<std::uintptr_t, WorkList> streams;  // what a stream was given, and waits for
  std::map<std::uintptr_t, WorkList> events;   // what an event was recorded behind
  std::vector<Writing> writings;
  std::vector<Given> given;
};

std::mutex g_mutex;
Work& TheWork() {
  static auto* all_work = new Work;  // outlives every thread
  return *all_work;
}

// The default stream is each device's own (0, and 1 by its name cudaStreamLegacy); so is 2, cudaStreamPerThread.
// Source: cuda_runtime_api.h of CUDA 11 to 13, "cudaStreamLegacy ((cudaStream_t)0x1)", "cudaStreamPerThread ((…)0x2)".
std::uintptr_t Key(int device, void* stream) {
  const auto number = reinterpret_cast<std::uintptr_t>(stream);
  if (number > 2) return number;
  return (static_cast<std::uintptr_t>(device) + 1) * 4 + (number == 2 ? 1 : 0);
}

bool IsOver(const std::shared_ptr<StreamWork>& work) {
  return work->state() == StreamWork::State::kDone || work->state() == StreamWork::State::kAborted;
}

void Prune(WorkList& list) { std::erase_if(list, IsOver); }

void PruneAll(Work& all_work) {
  std::erase_if(all_work.given, [](const Given& one) { return IsOver(one.work); });
  std::erase_if(all_work.writings, [](const Writing& one) { return !one.work->under_way(); });
  if (!all_work.given.empty()) return;
  all_work = {};
  stream_work_internal::g_any.store(false, std::memory_order_relaxed);
}

// Whether all of it came to its end without a failure. Called without g_mutex.
bool SettleAll(const WorkList& list) {
  bool good = true;
  for (const auto& work : list) {
    if (work->under_way()) work->Settle();
    if (!IsOver(work)) good = false;
  }
  const std::lock_guard lock(g_mutex);
  PruneAll(TheWork());
  return good;
}

bool AllDone(const WorkList& list) {
  for (const auto& work : list) {
    if (work->under_way()) work->Poll();
  }
  return std::all_of(list.begin(), list.end(), IsOver);
}

WorkList Copy(std::map<std::uintptr_t, WorkList>& lists, std::uintptr_t key) {
  const std::lock_guard lock(g_mutex);
  const auto found = lists.find(key);
  if (found == lists.end()) return {};
  Prune(found->second);
  return found->second;
}

}  // namespace

void AddStreamWork(int device, void* stream, std::shared_ptr<StreamWork> work, const std::vector<ByteRange>& writes) {
  const std::lock_guard lock(g_mutex);
  static const int kHooked = pthread_atfork(nullptr, nullptr, [] {
    // The child has one thread. The parent's accounting may be half written: they are left as they are and not looked
    // at.
    stream_work_internal::g_any.store(false, std::memory_order_relaxed);
  });
  static_cast<void>(kHooked);
  Work& all_work = TheWork();
  PruneAll(all_work);
  WorkList& list = all_work.streams[Key(device, stream)];
  Prune(list);
  list.push_back(work);
  for (const ByteRange& range : writes) {
    if (range.bytes != 0) all_work.writings.push_back({range, work});
  }
  all_work.given.push_back({device, std::move(work)});
  stream_work_internal::g_any.store(true, std::memory_order_relaxed);
}

namespace stream_work_internal {

bool SettleRange(std::uint64_t address, std::uint64_t bytes) {
  WorkList list;
  {
    const std::lock_guard lock(g_mutex);
    for (const auto& [range, work] : TheWork().writings) {
      if (range.address < address + bytes && address < range.address + range.bytes) list.push_back(work);
    }
  }
  return list.empty() || SettleAll(list);
}

bool SettleStream(int device, void* stream) { return SettleAll(Copy(TheWork().streams, Key(device, stream))); }

bool SettleDevice(int device) {
  WorkList list;
  {
    const std::lock_guard lock(g_mutex);
    for (const Given& one : TheWork().given) {
      if (one.device == device) list.push_back(one.work);
    }
  }
  return SettleAll(list);
}

bool SettleEvent(void* event) { return SettleAll(Copy(TheWork().events, reinterpret_cast<std::uintptr_t>(event))); }

bool StreamIsDone(int device, void* stream) { return AllDone(Copy(TheWork().streams, Key(device, stream))); }

bool EventIsDone(void* event) { return AllDone(Copy(TheWork().events, reinterpret_cast<std::uintptr_t>(event))); }

void EventRecorded(void* event, int device, void* stream) {
  const std::lock_guard lock(g_mutex);
  Work& all_work = TheWork();
  const auto found = all_work.streams.find(Key(device, stream));
  if (found != all_work.streams.end()) Prune(found->second);
  if (found == all_work.streams.end() || found->second.empty()) {
    all_work.events.erase(reinterpret_cast<std::uintptr_t>(event));
  } else {
    all_work.events[reinterpret_cast<std::uintptr_t>(event)] = found->second;
  }
}

void StreamWaits(int device, void* stream, void* event) {
  const std::lock_guard lock(g_mutex);
  Work& all_work = TheWork();
  const auto found = all_work.events.find(reinterpret_cast<std::uintptr_t>(event));
  if (found == all_work.events.end()) return;
  Prune(found->second);
  WorkList& list = all_work.streams[Key(device, stream)];
  for (const auto& work : found->second) {
    if (std::find(list.begin(), list.end(), work) == list.end()) list.push_back(work);
  }
}

void Forget(void* event_or_stream) {
  const std::lock_guard lock(g_mutex);
  TheWork().events.erase(reinterpret_cast<std::uintptr_t>(event_or_stream));
  TheWork().streams.erase(reinterpret_cast<std::uintptr_t>(event_or_stream));
}

}  // namespace stream_work_internal

}  // namespace ashlar::hollow
