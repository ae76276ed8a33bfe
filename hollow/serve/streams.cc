#include "hollow/serve/streams.h"

#include <pthread.h>

#include <atomic>
#include <mutex>
#include <set>
#include <utility>

namespace ashlar::serve {
namespace {

struct CapturedStreams {
  std::mutex mutex;
  std::set<std::pair<std::uintptr_t, pthread_t>> captured;  // the thread of one that each thread has, else 0
  std::set<Driver::Stream> served;
  std::set<Driver::Stream> retired;
};

// Never destroyed: programs call CUDA until their very end.
CapturedStreams& TheStreams() {
  static CapturedStreams& streams = *new CapturedStreams;
  return streams;
}

std::atomic<std::size_t> g_captures = 0;
std::atomic<std::uint64_t> g_generation = 1;  // another one when a stream has gone

struct Met {
  Driver::Stream stream = nullptr;
  std::uint64_t generation = 0;
};
thread_local Met t_met;

std::pair<std::uintptr_t, pthread_t> KeyOf(Driver::Stream stream) {
  return {NumberOf(stream), NumberOf(stream) == kPerThreadStream ? pthread_self() : pthread_t{}};
}

}  // namespace

bool IsCapturing() { return g_captures.load(std::memory_order_acquire) != 0; }

void BeginCapture(Driver::Stream stream) {
  CapturedStreams& streams = TheStreams();
  const std::lock_guard<std::mutex> lock(streams.mutex);
  streams.captured.insert(KeyOf(stream));
  g_captures.store(streams.captured.size(), std::memory_order_release);
}

void EndCapture(Driver::Stream stream) {
  CapturedStreams& streams = TheStreams();
  const std::lock_guard<std::mutex> lock(streams.mutex);
  streams.captured.erase(KeyOf(stream));
  g_captures.store(streams.captured.size(), std::memory_order_release);
}

bool MeetStream(Driver::Stream stream) {
  if (IsDefaultStream(stream)) return false;
  const std::uint64_t generation = g_generation.load(std::memory_order_acquire);
  if (t_met.stream == stream && t_met.generation == generation) return false;
  CapturedStreams& streams = TheStreams();
  const std::lock_guard<std::mutex> lock(streams.mutex);
  t_met = {stream, generation};
  streams.served.insert(stream);
  return streams.retired.erase(stream) != 0;
}

void RetireStream(Driver::Stream stream) {
  CapturedStreams& streams = TheStreams();
  const std::lock_guard<std::mutex> lock(streams.mutex);
  streams.captured.erase(KeyOf(stream));
  g_captures.store(streams.captured.size(), std::memory_order_release);
  if (streams.served.erase(stream) == 0) return;
  streams.retired.insert(stream);
  g_generation.fetch_add(1, std::memory_order_release);
}

void LockStreams() { TheStreams().mutex.lock(); }
void UnlockStreams() { TheStreams().mutex.unlock(); }

}  // namespace ashlar::serve
