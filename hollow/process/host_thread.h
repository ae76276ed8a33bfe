// The thread that runs a program's host functions (cudaLaunchHostFunc, cudaStreamAddCallback), one after the other in
// the order they were given. It starts with the first and sleeps between.
//
//   const std::uint64_t ticket = HostThread::The().Add([] { ... });
//   HostThread::The().WaitFor(ticket);
//
// Thread rule: any thread, none of which holds a lock that a host function may want.
#ifndef ASHLAR_HOLLOW_PROCESS_HOST_THREAD_H_
#define ASHLAR_HOLLOW_PROCESS_HOST_THREAD_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

namespace ashlar::hollow {

class HostThread {
 public:
  static HostThread& The();

  std::uint64_t Add(std::function<void()> function);
  std::uint64_t done() const { return done_.load(std::memory_order_acquire); }
  // Returns at once on the thread itself: a host function may not wait for another.
  void WaitFor(std::uint64_t ticket);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable added_;
  std::condition_variable finished_;
  std::deque<std::function<void()>> functions_;
  std::uint64_t given_ = 0;
  std::atomic<std::uint64_t> done_ = 0;
  bool is_running_ = false;
};

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_PROCESS_HOST_THREAD_H_
