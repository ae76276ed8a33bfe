// The hollow device and the simulated one answer the same calls alike: addresses, capacity, what is refused.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "allocator/device/sim_device.h"
#include "tests/hollow/one_device.h"
#include "tests/hollow/property.h"

namespace ashlar::hollow {
namespace {

using test::Operation;
using test::Operations;

constexpr std::uint64_t kPage = 2 * kMiB;

// Both devices, given the same calls.
class DevicePair {
 public:
  explicit DevicePair(device::AddressOrder order)
      : sim_({.capacity_bytes = 64 * kMiB, .address_order = order}), hollow_(64 * kMiB, 1, order) {}

  std::string Segment(std::uint64_t size_bytes) {
    const absl::StatusOr<std::uint64_t> theirs = sim_.AllocateSegment(size_bytes);
    std::uint64_t ours = 0;
    const Error error = hollow_.device().AllocateSegment(size_bytes, &ours);
    if (theirs.ok() != (error == Error::kNone)) return "a segment is refused by one";
    if (!theirs.ok()) return "";
    segments_.push_back(ours);
    return ours == *theirs ? "" : "a segment has another address";
  }
  std::string FreeSegment(std::uint64_t index) {
    if (segments_.empty()) return "";
    const auto freed = segments_.begin() + static_cast<std::ptrdiff_t>(index % segments_.size());
    const bool is_freed = sim_.FreeSegment(*freed).ok() && hollow_.device().Free(*freed) == Error::kNone;
    segments_.erase(freed);
    return is_freed ? "" : "a segment is not freed";
  }
  std::string Reserve(std::uint64_t size_bytes) {
    const absl::StatusOr<std::uint64_t> theirs = sim_.Reserve(size_bytes);
    std::uint64_t ours = 0;
    const Error error = hollow_.memory.Reserve(0, size_bytes, 0, &ours);
    if (!theirs.ok() || error != Error::kNone) return "a reservation is refused";
    reservations_[ours] = size_bytes;
    return ours == *theirs ? "" : "a reservation has another address";
  }
  std::string Release(std::uint64_t index) {
    if (reservations_.empty()) return "";
    const auto gone = std::next(reservations_.begin(), static_cast<std::ptrdiff_t>(index % reservations_.size()));
    const auto mapped = pages_.lower_bound(gone->first);
    const Error error = hollow_.memory.FreeReservation(gone->first, gone->second);
    if (mapped != pages_.end() && *mapped < gone->first + gone->second) {
      return error == Error::kInvalidValue ? "" : "a reservation with memory behind it is released";
    }
    if (!sim_.ReleaseReservation(gone->first).ok() || error != Error::kNone) return "a reservation is not released";
    reservations_.erase(gone);
    return "";
  }
  std::string Map(std::uint64_t index, std::uint64_t page) {
    if (reservations_.empty()) return "";
    const auto chosen = std::next(reservations_.begin(), static_cast<std::ptrdiff_t>(index % reservations_.size()));
    const std::uint64_t address = chosen->first + page % (chosen->second / kPage) * kPage;
    if (pages_.count(address) > 0) return Twice(address);
    const bool is_mapped = sim_.Map(address, kPage, kPage).ok();
    std::uint64_t handle = 0;
    if ((hollow_.memory.Create(0, kPage, &handle) == Error::kNone) != is_mapped) return "a page is refused by one";
    if (!is_mapped) return "";
    if (hollow_.memory.Map(address, kPage, 0, handle) != Error::kNone) return "a page is not mapped";
    if (hollow_.memory.Release(handle) != Error::kNone) return "a handle is not released";
    pages_.insert(address);
    return "";
  }
  std::string Unmap(std::uint64_t index) {
    if (pages_.empty()) return "";
    const auto gone = std::next(pages_.begin(), static_cast<std::ptrdiff_t>(index % pages_.size()));
    const bool is_gone = sim_.Unmap(*gone, kPage, kPage).ok() && hollow_.memory.Unmap(*gone, kPage) == Error::kNone;
    pages_.erase(gone);
    return is_gone ? "" : "a page is not unmapped";
  }
  std::string UsedDifference() {
    const std::uint64_t ours = hollow_.device().UsedBytes();
    if (ours != sim_.used_bytes())
      return std::to_string(ours) + " bytes are used, not " + std::to_string(sim_.used_bytes());
    return hollow_.device().FreeBytes() == sim_.GetMemoryInfo().free_bytes ? "" : "free bytes differ";
  }

 private:
  // The simulated device aborts, CUDA says no.
  std::string Twice(std::uint64_t address) {
    std::uint64_t handle = 0;
    if (hollow_.memory.Create(0, kPage, &handle) != Error::kNone) return "";
    const Error error = hollow_.memory.Map(address, kPage, 0, handle);
    if (hollow_.memory.Release(handle) != Error::kNone) return "a handle is not released";
    return error == Error::kInvalidValue ? "" : "a page is mapped twice";
  }

  device::SimDevice sim_;
  test::OneDevice hollow_;
  std::vector<std::uint64_t> segments_;
  std::map<std::uint64_t, std::uint64_t> reservations_;
  std::set<std::uint64_t> pages_;
};

std::string RulesDifference(const Operations& program, device::AddressOrder order) {
  DevicePair both(order);
  for (const Operation& one : program) {
    std::string difference;
    if (one.kind == 0) difference = both.Segment(kPage + one.a * (kMiB / 3));
    if (one.kind == 1) difference = both.FreeSegment(one.a);
    if (one.kind == 2) difference = both.Reserve((1 + one.a % 8) * kPage);
    if (one.kind == 3) difference = both.Release(one.a);
    if (one.kind == 4 || one.kind == 5) difference = both.Map(one.a, one.b);
    if (one.kind == 6) difference = both.Unmap(one.a);
    if (difference.empty()) difference = both.UsedDifference();
    if (!difference.empty()) return difference;
  }
  return "";
}

std::string AscendingDifference(const Operations& program) {
  return RulesDifference(program, device::AddressOrder::kAscending);
}
std::string DescendingDifference(const Operations& program) {
  return RulesDifference(program, device::AddressOrder::kDescending);
}
std::string DriverDifference(const Operations& program) {
  return RulesDifference(program, device::AddressOrder::kDriver);
}

TEST(DeviceRulesTest, AreThoseOfTheSimulatedDevice) {
  const test::Programs programs{.kinds = 7, .operations = 200, .below_a = 48, .below_b = 8, .seeds = 200};
  test::CheckPrograms("DeviceRulesTest", "AscendingDifference", AscendingDifference, programs);
  test::CheckPrograms("DeviceRulesTest", "DescendingDifference", DescendingDifference, programs);
  test::CheckPrograms("DeviceRulesTest", "DriverDifference", DriverDifference, programs);
}

}  // namespace
}  // namespace ashlar::hollow
