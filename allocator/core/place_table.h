// Where blocks were allocated: the stack of the block that was placed at an address last, for the addresses used last.
// Any number of threads write at once, each under its desk's lock; who reads stands still or takes what is whole: a
// place that two writers mixed is none.
//
//   PlaceTable places;
//   places.Keep(address, stack);           // nothing until places.Use()
//   StackId stack = places.StackAt(address);
#ifndef ASHLAR_ALLOCATOR_CORE_PLACE_TABLE_H_
#define ASHLAR_ALLOCATOR_CORE_PLACE_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "allocator/trace/event.h"

namespace ashlar::core {

class PlaceTable {
 public:
  // While everything stands still: takes its memory, 1 MiB. Not before the first stack: most programs have none.
  void Use() {
    if (places_ == nullptr) places_ = std::make_unique<Place[]>(std::size_t{1} << kBits);
  }
  bool IsUsed() const { return places_ != nullptr; }
  // A newer place displaces an older one. Only while it is used.
  void Keep(std::uint64_t address, trace::StackId stack) {
    Place& place = places_[IndexOf(address)];
    place.stack.store(stack, std::memory_order_relaxed);
    place.mixed.store(address ^ Spread(stack), std::memory_order_relaxed);
  }
  trace::StackId StackAt(std::uint64_t address) const {
    if (!IsUsed()) return trace::kNoStack;
    const Place& place = places_[IndexOf(address)];
    const std::uint64_t stack = place.stack.load(std::memory_order_relaxed);
    const bool is_its = (place.mixed.load(std::memory_order_relaxed) ^ Spread(stack)) == address;
    return is_its ? static_cast<trace::StackId>(stack) : trace::kNoStack;
  }

 private:
  static constexpr int kBits = 16;

  // Both of a place's words, or they do not fit.
  struct Place {
    std::atomic<std::uint64_t> mixed{0};
    std::atomic<std::uint64_t> stack{trace::kNoStack};
  };
  static std::size_t IndexOf(std::uint64_t address) {
    return static_cast<std::size_t>(((address >> 9) * 0x9e3779b97f4a7c15) >> (64 - kBits));
  }
  static std::uint64_t Spread(std::uint64_t stack) { return (stack + 1) * 0x9e3779b97f4a7c15; }

  std::unique_ptr<Place[]> places_;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_PLACE_TABLE_H_
