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
#ifndef ASHLAR_HOLLOW_BOOKS_SMALL_BLOCKS_H_
#define ASHLAR_HOLLOW_BOOKS_SMALL_BLOCKS_H_

#include <cstdint>
#include <map>
#include <optional>

#include "allocator/device/address_space.h"

namespace ashlar::hollow {

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

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_BOOKS_SMALL_BLOCKS_H_
