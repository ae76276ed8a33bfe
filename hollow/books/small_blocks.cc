#include "hollow/books/small_blocks.h"

#include <iterator>

namespace ashlar::hollow {
namespace {

constexpr std::uint64_t kAlignment = 512;

}  // namespace

std::optional<std::uint64_t> SmallBlocks::Take(std::uint64_t size_bytes) {
  const std::uint64_t rounded = (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  for (auto& [page_address, page] : pages_) {
    if (page.free_bytes < rounded) continue;
    const std::optional<std::uint64_t> address = page.free.Take(rounded);
    if (!address.has_value()) continue;
    page.free_bytes -= rounded;
    blocks_.emplace(*address, rounded);
    return address;
  }
  return std::nullopt;
}

void SmallBlocks::AddPage(std::uint64_t address) {
  const device::AddressSpace all(address, address + page_bytes_, device::AddressOrder::kAscending);
  pages_.emplace(address, Page{all, page_bytes_});
}

std::optional<std::uint64_t> SmallBlocks::Give(std::uint64_t address) {
  const auto block = blocks_.find(address);
  const auto page = std::prev(pages_.upper_bound(address));
  page->second.free.Give(address, block->second);
  page->second.free_bytes += block->second;
  blocks_.erase(block);
  if (page->second.free_bytes != page_bytes_) return std::nullopt;
  const std::uint64_t page_address = page->first;
  pages_.erase(page);
  return page_address;
}

}  // namespace ashlar::hollow
