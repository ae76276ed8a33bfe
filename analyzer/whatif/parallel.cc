#include "analyzer/whatif/parallel.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace ashlar::whatif {

std::size_t ThreadCount(std::size_t asked) {
  if (asked > 0) return asked;
  return std::max<std::size_t>(std::thread::hardware_concurrency(), 1);
}

void RunInParallel(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& job) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) job(i);
  };
  std::vector<std::thread> others;
  try {
    for (std::size_t i = 1; i < std::min(threads, count); ++i) others.emplace_back(work);
  } catch (const std::system_error&) {
    // No more threads are to be had: those that are there do it.
  }
  work();
  for (std::thread& thread : others) thread.join();
}

}  // namespace ashlar::whatif
