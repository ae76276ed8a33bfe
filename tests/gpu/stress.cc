#include "tests/gpu/stress.h"

#include <atomic>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/base/rng.h"
#include "tests/mailbox.h"

namespace ashlar::tests {
namespace {

struct Held {
  core::Block* block = nullptr;
  std::uint64_t bytes = 0;
  std::uint32_t value = 0;
  Stream stream{};
};

class Worker {
 public:
  Worker(core::CachingAllocator& allocator, Stamps& stamps, Mailbox<Held>& mailbox, const StressPlan& plan, int number)
      : allocator_(allocator),
        stamps_(stamps),
        mailbox_(mailbox),
        plan_(plan),
        rng_(plan.seed * 1000 + static_cast<std::uint64_t>(number)),
        next_value_(static_cast<std::uint32_t>(number + 1) << 24),
        streams_{stamps.NewStream(), stamps.NewStream()} {}

  void Run() {
    for (int i = 0; i < plan_.rounds; ++i) {
      if (i == plan_.rounds / 2) {
        while (Allocate()) {
        }  // until nothing is left
      }
      const std::uint64_t what = rng_.Below(10);
      if (what < 5 || held_.empty()) {
        AllocateInTurn();
      } else if (what < 8) {
        Free(TakeOne());
      } else if (what < 9) {
        mailbox_.Put(TakeOne());
      }
      if (rng_.Below(8) != 0) continue;
      if (const std::optional<Held> held = mailbox_.Take()) CheckAndFreeElsewhere(*held, result_.handed_over);
    }
    while (!held_.empty()) Free(TakeOne());
  }

  void FreeMailbox() {
    while (const std::optional<Held> held = mailbox_.Take()) CheckAndFreeElsewhere(*held, result_.handed_over);
  }

  const StressResult& result() const { return result_; }

 private:
  std::uint64_t Spin() { return rng_.Below(4) == 0 ? plan_.spin_cycles : 0; }

  // Half of them small, so that segments are shared.
  std::uint64_t SizeOf() {
    if (rng_.Below(2) == 0) return 4 + rng_.Below(64 * kKiB);
    return 4 + rng_.Below(plan_.most_bytes);
  }

  bool Allocate() {
    Held held{nullptr, SizeOf(), ++next_value_, streams_[rng_.Below(2)]};
    const absl::StatusOr<core::Block*> block = allocator_.Allocate(held.bytes, held.stream);
    if (!block.ok()) {
      ++(absl::IsResourceExhausted(block.status()) ? result_.out_of_memory : result_.other_errors);
      for (std::size_t n = (held_.size() + 1) / 2; n > 0; --n) Free(TakeOne());
      return false;
    }
    ++result_.allocations;
    held.block = *block;
    stamps_.Write(held.stream, held.block->address, held.bytes, held.value, Spin());
    held_.push_back(held);
    return true;
  }

  // Who holds nothing and gets nothing waits for those who hold it all, so that a thread that is stopped for long
  // costs the others no rounds.
  void AllocateInTurn() {
    while (!Allocate() && held_.empty() && result_.other_errors == 0) {
      if (const std::optional<Held> held = mailbox_.Take()) {
        CheckAndFreeElsewhere(*held, result_.handed_over);
      } else {
        std::this_thread::yield();
      }
    }
  }

  Held TakeOne() {
    std::swap(held_[rng_.Below(held_.size())], held_.back());
    const Held held = held_.back();
    held_.pop_back();
    return held;
  }

  // The last use is on the block's own stream, or on the thread's other one.
  void Free(const Held& held) {
    if (rng_.Below(3) == 0) return CheckAndFreeElsewhere(held, result_.recorded);
    stamps_.Check(held.stream, held.block->address, held.bytes, held.value, Spin());
    allocator_.Free(held.block);
  }

  void CheckAndFreeElsewhere(const Held& held, std::uint64_t& count) {
    const Stream stream = held.stream == streams_[0] ? streams_[1] : streams_[0];
    stamps_.Wait(stream, held.stream);
    stamps_.Check(stream, held.block->address, held.bytes, held.value, Spin());
    allocator_.RecordStream(held.block, stream);
    allocator_.Free(held.block);
    ++count;
  }

  core::CachingAllocator& allocator_;
  Stamps& stamps_;
  Mailbox<Held>& mailbox_;
  const StressPlan& plan_;
  Rng rng_;
  std::uint32_t next_value_;
  const Stream streams_[2];
  std::vector<Held> held_;
  StressResult result_;
};

}  // namespace

StressResult RunStress(core::CachingAllocator& allocator, Stamps& stamps, const StressPlan& plan) {
  Mailbox<Held> mailbox;
  std::vector<Worker> workers;
  workers.reserve(static_cast<std::size_t>(plan.threads));
  for (int i = 0; i < plan.threads; ++i) workers.emplace_back(allocator, stamps, mailbox, plan, i);
  std::vector<std::thread> threads;
  for (Worker& worker : workers) threads.emplace_back([&worker] { worker.Run(); });
  for (std::thread& thread : threads) thread.join();
  workers.front().FreeMailbox();
  StressResult out;
  for (const Worker& worker : workers) {
    out.allocations += worker.result().allocations;
    out.out_of_memory += worker.result().out_of_memory;
    out.handed_over += worker.result().handed_over;
    out.recorded += worker.result().recorded;
    out.other_errors += worker.result().other_errors;
  }
  out.wrong_words = stamps.WrongWords();
  return out;
}

}  // namespace ashlar::tests
