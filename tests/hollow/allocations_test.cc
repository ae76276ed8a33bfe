#include "hollow/model/allocations.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "hollow/abi/library_lines.h"
#include "tests/hollow/property.h"

namespace ashlar::hollow {
namespace {

using test::Operation;
using test::Operations;

constexpr std::uint64_t kSlots = 64;  // an allocation starts at a multiple of 16, and has at most 16 bytes

MemoryKind KindOf(std::uint64_t number) {
  constexpr MemoryKind kKinds[] = {MemoryKind::kDevice, MemoryKind::kHost, MemoryKind::kHostRegistered,
                                   MemoryKind::kMapped};
  return kKinds[number % 4];
}

std::string ListDifference(const Allocations& allocations, const std::map<std::uint64_t, Allocation>& model) {
  std::uint64_t pinned = 0;
  for (std::uint64_t address = 0; address < kSlots * 16; ++address) {
    const auto own = model.find(address / 16 * 16);
    const Allocation* held = allocations.Holding(address);
    const bool is_held =
        own != model.end() && address - own->first < std::max<std::uint64_t>(own->second.size_bytes, 1);
    if ((held != nullptr) != is_held) return "byte " + std::to_string(address) + " is held by another";
    if (is_held && held->address != own->first) return "byte " + std::to_string(address) + " is of another";
    if ((allocations.At(address) != nullptr) != (model.count(address) > 0)) return "a start is not one";
  }
  for (const auto& [address, own] : model) pinned += own.is_on_host() ? own.size_bytes : 0;
  for (const int device : {0, 1}) {
    Allocations::Held held;
    for (const auto& [address, own] : model) {
      const bool is_of_device = own.device == device && !own.is_on_host();
      held.bytes += is_of_device ? own.size_bytes : 0;
      held.blocks += is_of_device ? 1 : 0;
    }
    const auto told = allocations.ByLibrary(device);
    if (told.size() > 1 || (held.blocks == 0) != told.empty()) return "there are other libraries";
    if (!told.empty() && told.begin()->second != held) return "a library's bytes are wrong";
  }
  return allocations.pinned_bytes() == pinned ? "" : "pinned bytes are wrong";
}

// 0 adds, 1 removes, 2 removes all of a device.
std::string AllocationsDifference(const Operations& program) {
  Allocations allocations;
  std::map<std::uint64_t, Allocation> model;
  for (const Operation& one : program) {
    const std::uint64_t address = one.a * 16;
    if (one.kind == 0 && model.count(address) == 0) {
      const Allocation added{
          .address = address, .size_bytes = one.b % 17, .kind = KindOf(one.b), .device = one.b % 3 == 0};
      allocations.Add(added);
      model.emplace(address, added);
    } else if (one.kind == 1) {
      allocations.Remove(address);
      model.erase(address);
    } else if (one.kind == 2 && one.b == 0) {
      allocations.RemoveOfDevice(1);
      std::erase_if(model, [](const auto& entry) { return entry.second.device == 1 && !entry.second.is_on_host(); });
    }
    if (std::string difference = ListDifference(allocations, model); !difference.empty()) return difference;
  }
  return "";
}

TEST(AllocationsTest, IsAsAList) {
  test::CheckPrograms("AllocationsTest", "AllocationsDifference", AllocationsDifference,
                      {.kinds = 3, .operations = 80, .below_a = kSlots, .below_b = 40, .seeds = 150});
}

TEST(AllocationsTest, AnIdIsNeverGivenTwice) {
  Allocations allocations;
  allocations.Add({.address = 100, .size_bytes = 10});
  const std::uint64_t first = allocations.At(100)->id;
  allocations.Remove(100);
  EXPECT_EQ(allocations.At(100), nullptr);
  allocations.Add({.address = 100, .size_bytes = 10});
  EXPECT_NE(allocations.At(100)->id, first);
}

TEST(AllocationsTest, ThePeakOfPinnedMemoryStays) {
  Allocations allocations;
  allocations.Add({.address = 100, .size_bytes = 50, .kind = MemoryKind::kHost});
  allocations.Add({.address = 200, .size_bytes = 30, .kind = MemoryKind::kHostRegistered});
  allocations.Add({.address = 300, .size_bytes = 70, .kind = MemoryKind::kDevice});
  allocations.RemoveOfDevice(0);
  EXPECT_EQ(allocations.pinned_bytes(), 80U) << "the host's memory outlives a device's context";
  allocations.Remove(100);
  allocations.Add({.address = 100, .size_bytes = 20, .kind = MemoryKind::kHost});
  EXPECT_EQ(allocations.pinned_bytes(), 50U);
  EXPECT_EQ(allocations.pinned_peak_bytes(), 80U);
}

TEST(LibraryLinesTest, ALineIsThereWholeOrNotAtAll) {
  char text[40];
  LibraryLines lines(text, sizeof(text));
  EXPECT_STREQ(text, "");
  lines.Add(4096, 2, "libnccl.so.2");
  lines.Add(1, 1, "a name that is too long for what is left");
  lines.Add(7, 1, "a\nb");
  EXPECT_STREQ(text, "4096 2 libnccl.so.2\n7 1 a?b\n");
  EXPECT_EQ(lines.used(), std::string(text).size());
  LibraryLines none(nullptr, 0);
  none.Add(1, 1, "a");
  EXPECT_EQ(none.used(), 0U);
}

}  // namespace
}  // namespace ashlar::hollow
