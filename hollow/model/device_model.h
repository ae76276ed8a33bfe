// One device's memory as this process sees it: its own accounting, and what other processes of the run have on it.
//
// Each call that asks for memory may be made to fail (FailurePlan), counts in what all processes use together, and
// answers as the driver would. A refused call changes nothing. The context is charged at the first use.
// Thread rule: the caller serialises the calls of a process; other processes are kept out by the shared lock.
#ifndef ASHLAR_HOLLOW_MODEL_DEVICE_MODEL_H_
#define ASHLAR_HOLLOW_MODEL_DEVICE_MODEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "allocator/device/address_space.h"
#include "allocator/device/device_memory.h"
#include "hollow/model/error.h"
#include "hollow/model/shared_machine.h"

namespace ashlar::hollow {

// Blocks that share a page: what a program asks of cudaMalloc below the device's granularity does not take a page each.
//
//   SmallBlocks blocks(2 * kMiB);
//   std::optional<std::uint64_t> address = blocks.Take(1000);   // nothing: no page has room
//   blocks.AddPage(page_address);                               // then it has
//   std::optional<std::uint64_t> page = blocks.Give(address);   // the page that is empty now, and no longer ours
//
// The first page with room by address, the lowest place in it; sizes are rounded to 512 bytes, which is the alignment
// that the runtime gives (CUDA C++ Programming Guide, "Device Memory Accesses": at least 256 bytes). Thread rule: not
// thread-safe.
class SmallBlocks {
 public:
  explicit SmallBlocks(std::uint64_t page_bytes) : page_bytes_(page_bytes) {}

  std::optional<std::uint64_t> Take(std::uint64_t size_bytes);
  void AddPage(std::uint64_t address);
  bool Has(std::uint64_t address) const { return blocks_.contains(address); }
  // `address` must be a block. The page where it was the last one.
  std::optional<std::uint64_t> Give(std::uint64_t address);

 private:
  struct Page {
    device::AddressSpace free;
    std::uint64_t free_bytes = 0;
  };
  std::uint64_t page_bytes_;
  std::map<std::uint64_t, Page> pages_;            // by address
  std::map<std::uint64_t, std::uint64_t> blocks_;  // address -> rounded size
};

// Which calls that ask for memory fail, for tests of what a program does then.
struct FailurePlan {
  std::uint64_t fail_call = 0;         // the n-th call from now; 0: none
  std::uint64_t fail_request = 0;      // the same, and at most twice more the calls right after it for as many bytes
  std::uint64_t fail_after_bytes = 0;  // every call while a device has this many bytes in use or more; 0: none

  std::uint64_t refused_bytes = 0;  // of the request that failed
  int repeats_left = 0;             // calls for as many bytes that fail as well

  // Whether the call that is made now, for `asked_bytes`, fails.
  bool FailsNow(std::uint64_t used_bytes, std::uint64_t asked_bytes);
  bool RequestFailsNow(std::uint64_t asked_bytes);
};

// What NVIDIA's driver was seen to take of a device's addresses among the program's segments, on an H200 (driver
// 580.159.04, PyTorch 2.11). It matters for where segments lie; how much memory it takes is not known, and not charged.
inline constexpr std::uint64_t kStreamsHold = 2 * kMiB;                 // with the first of so many streams
inline constexpr std::uint64_t kStreamsOfHold = 4;                      // PyTorch's 128 took 64 MiB
inline constexpr std::uint64_t kCublasHolds[] = {2 * kMiB, 64 * kMiB};  // with each handle of cuBLAS

struct DeviceSetup {
  int ordinal = 0;
  std::uint64_t total_bytes = 0;
  std::uint64_t context_bytes = 0;
  std::uint64_t in_use_bytes = 0;  // beside the processes of the run
  std::uint64_t base_address = 0;
  std::uint64_t span_bytes = 0;  // addresses from base_address on; an eighth for segments, the rest for reservations
  device::AddressOrder address_order = device::AddressOrder::kAscending;
};

class DeviceModel {
 public:
  DeviceModel(const DeviceSetup& setup, SharedMachine& shared, FailurePlan& failures);

  // Charges the context, if this process has none yet.
  Error UseContext();
  // The context is gone, and all memory with it: the caller forgets its allocations first.
  void DropContext();
  bool has_context() const { return has_context_; }

  // cudaMalloc's memory: below the granularity several share a page.
  Error Allocate(std::uint64_t size_bytes, std::uint64_t* address);
  Error Free(std::uint64_t address);
  // A call that asks for memory which is here already: an error where the plan says that it fails.
  Error Ask(std::uint64_t size_bytes);
  // Calls `get` with no failure planned and none counted: what the device does for a call that was asked already, whose
  // answer is given by Answer.
  template <typename Get>
  Error Unasked(Get get) {
    const FailurePlan plan = failures_;
    const std::uint64_t count = out_of_memory_count_;
    failures_ = {};
    const Error error = get();
    failures_ = plan;
    out_of_memory_count_ = count;
    return error;
  }
  // What the program hears: counted where it is out of memory.
  Error Answer(Error error) {
    if (error == Error::kOutOfMemory) ++out_of_memory_count_;
    return error;
  }
  // Whole segments, of pools.
  Error AllocateSegment(std::uint64_t size_bytes, std::uint64_t* address);
  void FreeSegment(std::uint64_t address);
  // Memory without an address of its own: handles of virtual memory.
  Error Charge(std::uint64_t size_bytes);
  void Discharge(std::uint64_t size_bytes);
  // What the driver takes for itself where its order is asked for, by a number. A number of a context that is gone is
  // none.
  std::uint64_t HoldForStream();
  std::uint64_t HoldForCublas();
  void ReturnHold(std::uint64_t hold);
  // Addresses of virtual memory: pure book-keeping, nothing is charged.
  device::DeviceMemory& addresses() { return memory_; }

  void SetTotal(std::uint64_t bytes) { setup_.total_bytes = bytes; }
  std::uint64_t total_bytes() const { return setup_.total_bytes; }
  std::uint64_t context_bytes() const { return setup_.context_bytes; }
  std::uint64_t FreeBytes();
  std::uint64_t UsedBytes();  // of all processes
  std::uint64_t out_of_memory_count() const { return out_of_memory_count_; }

 private:
  struct Held {
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
  };

  void Hold(std::uint64_t size_bytes);
  // The caller holds the shared lock.
  std::uint64_t UsedByOthers() { return setup_.in_use_bytes + shared_.UsedByOthers(setup_.ordinal); }
  // Calls `take`, which answers a verdict, with the capacity that the other processes leave, and publishes what is in
  // use.
  template <typename Take>
  Error Obtain(std::uint64_t size_bytes, Take take);
  void Publish();

  DeviceSetup setup_;
  SharedMachine& shared_;
  FailurePlan& failures_;
  device::DeviceMemory memory_;
  SmallBlocks small_;
  std::multimap<std::uint64_t, Held> held_;  // by their hold
  std::uint64_t last_hold_ = 0;
  std::uint64_t streams_made_ = 0;
  bool has_context_ = false;
  std::uint64_t out_of_memory_count_ = 0;
};

// The limits of a device's context (cudaLimit, CUlimit), and the memory that the stack takes: the driver keeps the
// local memory of every thread that can be resident, so each byte of stack above the default costs one for each of
// them. An H200 (132 multiprocessors of 2048 threads) took 17,439,916,032 bytes for a stack of 64 KiB in place of 1 KiB
// (docs/measurements/h200_questions.json: limits). The other limits took nothing before a kernel uses them.
//
//   DeviceLimits limits;
//   limits.Set(DeviceLimits::kStack, 64 << 10, resident_threads, device);   // or kOutOfMemory: nothing has changed
//
// Thread rule: not thread-safe.
class DeviceLimits {
 public:
  static constexpr int kStack = 0;

  // kInvalidValue: there is no such limit.
  Error Get(int limit, std::size_t* value) const;
  Error Set(int limit, std::size_t value, std::uint64_t resident_threads, DeviceModel& device);

 private:
  // CUDA's defaults for stack, printf's buffer, heap, the device runtime's two, L2 granularity and persisting L2.
  static constexpr std::array<std::size_t, 7> kDefaults = {1024, 1'048'576, 8'388'608, 2, 2048, 128, 0};

  std::array<std::size_t, kDefaults.size()> values_ = kDefaults;
  std::uint64_t charged_bytes_ = 0;
};

// Keeps which devices may use each other's memory directly.
class Peers {
 public:
  Error Enable(int device, int peer, int device_count) {
    if (peer < 0 || peer >= device_count || peer == device) return Error::kInvalidDevice;
    return enabled_.emplace(device, peer).second ? Error::kNone : Error::kPeerAccessAlreadyEnabled;
  }
  Error Disable(int device, int peer) {
    return enabled_.erase({device, peer}) > 0 ? Error::kNone : Error::kPeerAccessNotEnabled;
  }

 private:
  std::set<std::pair<int, int>> enabled_;  // (device, peer)
};

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_MODEL_DEVICE_MODEL_H_
