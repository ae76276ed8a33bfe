// The engines of an allocator, found without a lock by (pool, stream). Engines are added by one thread at
// a time and never removed; what grows is copied, and the old table stays for those who read it just then.
#ifndef ASHLAR_ALLOCATOR_CORE_ENGINE_TABLE_H_
#define ASHLAR_ALLOCATOR_CORE_ENGINE_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "allocator/core/engine.h"

namespace ashlar::core {

class EngineTable {
 public:
  EngineTable() { Publish(kFirstSlots); }

  // Any thread, any time; nullptr when there is none.
  Engine* Find(const EngineKey& key) const {
    const Slots& slots = *current_.load(std::memory_order_acquire);
    for (std::size_t i = HashOf(key);; ++i) {
      Engine* engine = slots.entries[i & slots.mask].load(std::memory_order_acquire);
      if (engine == nullptr || engine->key == key) return engine;
    }
  }

  // One thread at a time. A new engine is known to others only after its lock was taken, if that is asked for.
  Engine& FindOrAdd(const EngineKey& key, bool lock_new) {
    if (Engine* engine = Find(key); engine != nullptr) return *engine;
    engines_.push_back(std::make_unique<Engine>(key));
    if (lock_new) engines_.back()->lock.LockShared();
    if (2 * engines_.size() > all_slots_.back()->mask) {
      Publish(2 * (all_slots_.back()->mask + 1));
    } else {
      Enter(*all_slots_.back(), engines_.back().get());
    }
    return *engines_.back();
  }

  // In the order they were added; for the one thread that may add.
  const std::vector<std::unique_ptr<Engine>>& engines() const { return engines_; }

 private:
  static constexpr std::size_t kFirstSlots = 64;

  struct Slots {
    explicit Slots(std::size_t count) : mask(count - 1), entries(new std::atomic<Engine*>[count]()) {}
    std::size_t mask;
    std::unique_ptr<std::atomic<Engine*>[]> entries;
  };

  static std::size_t HashOf(const EngineKey& key) {
    std::uint64_t hash = Handle(key.stream);
    hash ^= (key.pool.first * 0x9e3779b97f4a7c15u) ^ (key.pool.second * 0xc2b2ae3d27d4eb4fu);
    hash *= 0x9e3779b97f4a7c15u;
    return static_cast<std::size_t>(hash >> 32);
  }

  static void Enter(const Slots& slots, Engine* engine) {
    std::size_t i = HashOf(engine->key);
    while (slots.entries[i & slots.mask].load(std::memory_order_relaxed) != nullptr) ++i;
    slots.entries[i & slots.mask].store(engine, std::memory_order_release);
  }

  void Publish(std::size_t count) {
    auto slots = std::make_unique<Slots>(count);
    for (const std::unique_ptr<Engine>& engine : engines_) Enter(*slots, engine.get());
    current_.store(slots.get(), std::memory_order_release);
    all_slots_.push_back(std::move(slots));
  }

  std::vector<std::unique_ptr<Engine>> engines_;
  std::vector<std::unique_ptr<Slots>> all_slots_;  // the last one is current
  std::atomic<const Slots*> current_{nullptr};
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_ENGINE_TABLE_H_
