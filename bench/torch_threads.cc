// Which threads ask PyTorch's allocator, stream by stream: whether two of them ever ask at the same time is what a goal
// for two threads on one stream is worth. bench/torch_threads.py builds this against the user's PyTorch, and loads it.
#include <c10/cuda/CUDACachingAllocator.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <unordered_set>

namespace {

using Clock = std::chrono::steady_clock;
using Entry = c10::CachingDeviceAllocator::TraceEntry;

struct LastRequest {
  std::thread::id thread;
  Clock::time_point at;
};

struct Counts {
  std::uint64_t requests = 0;     // allocations and frees
  std::uint64_t handed_over = 0;  // another thread made the stream's last request,
  std::uint64_t within_10us = 0;  // at most so long before
  std::uint64_t within_1us = 0;
  std::uint64_t beside = 0;  // another thread made a request at most 10 us before, on whatever stream
  std::uint64_t threads = 0;
};

std::mutex mutex;
Counts counts;
std::unordered_map<void*, LastRequest> last_of_stream;
LastRequest last_of_all;
std::unordered_set<std::thread::id> threads;

void Count(const Entry& entry) {
  if (entry.action_ != Entry::ALLOC && entry.action_ != Entry::FREE_REQUESTED) return;
  const std::lock_guard<std::mutex> held(mutex);
  const LastRequest now{std::this_thread::get_id(), Clock::now()};
  ++counts.requests;
  threads.insert(now.thread);
  const auto [it, is_first] = last_of_stream.try_emplace(entry.stream_, now);
  if (!is_first && it->second.thread != now.thread) {
    ++counts.handed_over;
    const Clock::duration since = now.at - it->second.at;
    counts.within_10us += since <= std::chrono::microseconds(10);
    counts.within_1us += since <= std::chrono::microseconds(1);
  }
  it->second = now;
  const bool is_another = last_of_all.thread != std::thread::id() && last_of_all.thread != now.thread;
  counts.beside += is_another && now.at - last_of_all.at <= std::chrono::microseconds(10);
  last_of_all = now;
}

}  // namespace

extern "C" void attach() { c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker(Count); }

extern "C" void read_counts(Counts* out) {
  const std::lock_guard<std::mutex> held(mutex);
  *out = counts;
  out->threads = threads.size();
}
