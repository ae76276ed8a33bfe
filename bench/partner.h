// Another thread that does one piece of work at a time, beside the caller's own.
//
//   Partner partner(&Work::Run, &work);
//   partner.Start();          // the partner runs Work::Run(&work) now
//   partner.WaitUntilDone();
#ifndef ASHLAR_BENCH_PARTNER_H_
#define ASHLAR_BENCH_PARTNER_H_

#include <atomic>
#include <cstdint>
#include <thread>

namespace ashlar::bench {

// The flags lie apart from all else: the partner polls them, and whoever wrote beside them would wait for that at its
// next atomic operation.
class alignas(256) Partner {
 public:
  explicit Partner(void (*work)(void*), void* of) : thread_([this, work, of] { Run(work, of); }) {}
  ~Partner() {
    is_over_ = true;
    wanted_.fetch_add(1);
    thread_.join();
  }
  void Start() { wanted_.fetch_add(1, std::memory_order_release); }
  void WaitUntilDone() const {
    while (done_.load(std::memory_order_acquire) != wanted_.load(std::memory_order_relaxed)) std::this_thread::yield();
  }

 private:
  void Run(void (*work)(void*), void* of) {
    for (std::uint64_t done = 0;; done_.store(++done, std::memory_order_release)) {
      while (wanted_.load(std::memory_order_acquire) == done) std::this_thread::yield();
      if (is_over_) return;
      work(of);
    }
  }

  std::atomic<std::uint64_t> wanted_{0};
  alignas(256) std::atomic<std::uint64_t> done_{0};
  std::atomic<bool> is_over_{false};
  alignas(256) std::thread thread_;
};

}  // namespace ashlar::bench

#endif  // ASHLAR_BENCH_PARTNER_H_
