// Objects that a library gives out as opaque handles: a handle that is null, stale or of another kind finds nothing.
//
//   constinit Objects<CublasHandle> handles(0xCB);
//   void* handle = handles.Make();
//   if (CublasHandle* mine = handles.Find(handle)) mine->stream = stream;
//   handles.Destroy(handle);
//
// A handle is not an address: it holds the kind, the generation and the place of its object, so that looking at it
// never touches memory that is gone. A place is used again with the next generation; one of them lives through 65,535.
// Thread rule: Make and Destroy take a lock, Find none. Two threads that change the same object take turns, as with
// NVIDIA's libraries. Nothing is destroyed at the process's end, so that the order of destructors does not matter.
#ifndef ASHLAR_HOLLOW_API_OBJECTS_H_
#define ASHLAR_HOLLOW_API_OBJECTS_H_

#include <atomic>
#include <bit>
#include <cstdint>
#include <mutex>
#include <utility>

namespace ashlar::hollow {

template <class T>
class Objects {
 public:
  // The lower seven bits of `kind` tell handles of one list from those of another. The highest bit of a handle is 0, as
  // in an address of a program: CuPy keeps handles in signed numbers.
  explicit constexpr Objects(std::uint8_t kind) : kind_(kind & 0x7F) {}
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  template <class... Arguments>
  void* Make(Arguments&&... arguments) {
    const std::lock_guard lock(mutex_);
    const std::uint32_t place = free_ != kNone ? free_ : places_;
    Slot* slot = SlotAt(place);
    if (slot == nullptr) {
      chunks_[ChunkOf(place)].store(new Slot[std::uint64_t{kFirst} << ChunkOf(place)], std::memory_order_release);
      slot = SlotAt(place);
    }
    if (place == free_) {
      free_ = slot->next;
    } else {
      ++places_;
    }
    slot->object = T{std::forward<Arguments>(arguments)...};
    const std::uint32_t generation = slot->generation.load(std::memory_order_relaxed) + 1;  // odd: alive
    slot->generation.store(generation, std::memory_order_release);
    return HandleOf(place, generation);
  }

  // Null where the handle is not one of a living object of this list.
  T* Find(const void* handle) const {
    const auto bits = reinterpret_cast<std::uintptr_t>(handle);
    if (bits >> 56 != kind_) return nullptr;
    Slot* slot = SlotAt(PlaceOf(bits));
    if (slot == nullptr) return nullptr;
    const std::uint32_t generation = slot->generation.load(std::memory_order_acquire);
    const bool alive = (generation & 1) != 0 && (generation & 0xFFFF) == ((bits >> 4) & 0xFFFF);
    return alive ? &slot->object : nullptr;
  }

  bool Destroy(const void* handle) {
    const std::lock_guard lock(mutex_);
    if (Find(handle) == nullptr) return false;
    const std::uint32_t place = PlaceOf(reinterpret_cast<std::uintptr_t>(handle));
    Slot* slot = SlotAt(place);
    slot->generation.fetch_add(1, std::memory_order_release);
    slot->object = T{};
    slot->next = free_;
    free_ = place;
    return true;
  }

 private:
  struct Slot {
    std::atomic<std::uint32_t> generation{0};
    std::uint32_t next = 0;  // of the free ones
    T object{};
  };
  static constexpr std::uint32_t kFirst = 64;  // chunk k has kFirst << k slots
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // kind: 8 bits, place: 36 (32 used), generation: 16, 0: 4, so that a handle looks aligned as an address does.
  void* HandleOf(std::uint32_t place, std::uint32_t generation) const {
    const std::uint64_t bits =
        std::uint64_t{kind_} << 56 | std::uint64_t{place} << 20 | std::uint64_t{generation & 0xFFFF} << 4;
    return reinterpret_cast<void*>(bits);
  }
  static std::uint32_t PlaceOf(std::uintptr_t bits) { return static_cast<std::uint32_t>(bits >> 20); }
  static int ChunkOf(std::uint32_t place) {
    return static_cast<int>(std::bit_width(std::uint64_t{place} / kFirst + 1)) - 1;
  }
  Slot* SlotAt(std::uint32_t place) const {
    const int chunk = ChunkOf(place);
    Slot* slots = chunks_[chunk].load(std::memory_order_acquire);
    return slots == nullptr ? nullptr : slots + (place - (((std::uint64_t{1} << chunk) - 1) * kFirst));
  }

  const std::uint8_t kind_;
  std::mutex mutex_;
  std::uint32_t places_ = 0;
  std::uint32_t free_ = kNone;
  std::atomic<Slot*> chunks_[27] = {};
};

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_OBJECTS_H_
