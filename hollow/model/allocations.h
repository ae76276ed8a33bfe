// Keeps every range of memory that a call gave out, by address, on the device and on the host.
//
//   Allocations allocations;
//   allocations.Add({.address = 0x1000, .size_bytes = 64, .kind = MemoryKind::kDevice, .device = 0});
//   allocations.Holding(0x1010)->address;   // 0x1000
//
// Thread rule: not thread-safe.
#ifndef ASHLAR_HOLLOW_MODEL_ALLOCATIONS_H_
#define ASHLAR_HOLLOW_MODEL_ALLOCATIONS_H_

#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

namespace ashlar::hollow {

enum class MemoryKind : std::uint8_t {
  kDevice,          // cudaMalloc, cuMemAlloc
  kManaged,         // cudaMallocManaged
  kPool,            // cudaMallocAsync
  kMapped,          // cuMemMap
  kImported,        // another process's
  kVariable,        // of device code: in no accounting
  kHost,            // cudaHostAlloc, which we allocated
  kHostRegistered,  // the program's own, pinned
};

struct Allocation {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;  // as asked for
  MemoryKind kind = MemoryKind::kDevice;
  int device = 0;                 // that was current, for memory of the host
  std::uint64_t id = 0;           // CU_POINTER_ATTRIBUTE_BUFFER_ID: never twice in a process
  std::uint64_t part = 0;         // of kPool: the pool; of kMapped: the handle; of host memory: its flags
  std::string_view library = {};  // that asked for it (calling_library.h)

  bool is_counted() const { return !is_on_host() && kind != MemoryKind::kImported && kind != MemoryKind::kVariable; }
  bool is_on_host() const { return kind == MemoryKind::kHost || kind == MemoryKind::kHostRegistered; }
};

class Allocations {
 public:
  // Gives it an id, and the library whose call is under way. Nothing else may lie in the range.
  void Add(Allocation allocation);
  // The one that starts there; nullptr where none does.
  const Allocation* At(std::uint64_t address) const;
  // The one that holds the byte at `address`.
  const Allocation* Holding(std::uint64_t address) const;
  void Remove(std::uint64_t address);
  // Those of a device that are not of the host.
  void RemoveOfDevice(int device);

  // What each library had of the device's memory, as it asked for it, when all of them had most together.
  using LibraryBytes = std::map<std::string_view, std::uint64_t>;
  LibraryBytes PeakByLibrary(int device) const;
  struct Held {
    std::uint64_t bytes = 0;
    std::uint64_t blocks = 0;

    bool operator==(const Held&) const = default;
  };
  // What each has now.
  std::map<std::string_view, Held> ByLibrary(int device) const;

  std::uint64_t pinned_bytes() const { return pinned_bytes_; }
  std::uint64_t pinned_peak_bytes() const { return pinned_peak_bytes_; }

 private:
  struct OfLibraries {
    LibraryBytes now = {};
    std::uint64_t bytes = 0;
    LibraryBytes at_peak = {};  // taken as the bytes fall from their peak
    std::uint64_t peak_bytes = 0;

    void LeavePeak() {
      if (bytes == peak_bytes) at_peak = now;
    }
  };

  std::map<std::uint64_t, Allocation> by_address_;
  std::map<int, OfLibraries> libraries_;  // by device
  std::uint64_t next_id_ = 1;
  std::uint64_t pinned_bytes_ = 0;
  std::uint64_t pinned_peak_bytes_ = 0;
};

// Keeps which bytes of device memory are known: bytes that the program copied or filled, and bytes that were computed
// for real. Only a kernel would have written the others.
//
//   KnownBytes known;
//   known.Know(0x1000, 64);
//   known.AreKnown(0x1000, 64);   // true
//   known.Forget(0x1000, 8);      // a kernel wrote there
//
// Thread rule: not thread-safe.
class KnownBytes {
 public:
  void Know(std::uint64_t address, std::uint64_t bytes);
  void Forget(std::uint64_t address, std::uint64_t bytes);
  // How many of the bytes from `address` on are known.
  std::uint64_t CountKnown(std::uint64_t address, std::uint64_t bytes) const;
  bool AreKnown(std::uint64_t address, std::uint64_t bytes) const { return CountKnown(address, bytes) == bytes; }
  // What is known of `bytes` at `from` is known at `to` afterwards, and nothing else there.
  void Carry(std::uint64_t from, std::uint64_t to, std::uint64_t bytes);
  // What is known of the bytes from `address` on, as (address, bytes) in order.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> RangesIn(std::uint64_t address, std::uint64_t bytes) const;
  std::uint64_t range_count() const { return ranges_.size(); }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  // begin -> end, apart from each other
};

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_MODEL_ALLOCATIONS_H_
