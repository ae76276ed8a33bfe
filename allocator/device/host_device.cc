#include "allocator/device/host_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"

namespace ashlar::device {
namespace {

// More than any user address space has: sums of a few such sizes do not pass 2^64.
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 60;

void* MappedPointer(std::uint64_t address) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)); }

std::string MmapFailed(const char* call, std::uint64_t size_bytes, int error) {
  return absl::StrCat(call, " of ", size_bytes, " bytes of host memory failed: ", std::strerror(error));
}

absl::Status OutOfCapacity(const char* call, std::uint64_t size_bytes, std::uint64_t free_bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat(call, "(", size_bytes, ") failed: ", free_bytes, " bytes are free on the host device"));
}

// ENOMEM says that the kernel has no memory, or no room in its tables, for us; anything else is an error of the call.
absl::Status KernelError(const char* call, std::uint64_t size_bytes, int error) {
  const std::string text = MmapFailed(call, size_bytes, error);
  return error == ENOMEM || error == EAGAIN ? absl::ResourceExhaustedError(text) : absl::InternalError(text);
}

// Fresh zeroed pages at a multiple of `alignment`; 0 with errno set where the kernel refuses.
std::uint64_t MapAligned(std::uint64_t size_bytes, std::uint64_t alignment, int protection) {
  const std::uint64_t whole_bytes = size_bytes + alignment;
  void* begin = mmap(nullptr, whole_bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) return 0;
  const auto first = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(begin));
  const std::uint64_t address = RoundUp(first, alignment);
  const std::uint64_t behind_bytes = first + whole_bytes - (address + size_bytes);
  // What is cut off was never touched: where the kernel refuses, only address space is wasted.
  if (address > first) munmap(begin, address - first);
  if (behind_bytes > 0) munmap(MappedPointer(address + size_bytes), behind_bytes);
  return address;
}

}  // namespace

HostDevice::HostDevice(HostDeviceOptions options) : options_(options) {
  ASHLAR_CHECK_EQ(options_.granularity_bytes & (options_.granularity_bytes - 1), std::uint64_t{0});
  ASHLAR_CHECK_GE(options_.granularity_bytes, static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
}

HostDevice::~HostDevice() {
  for (const auto& [address, size_bytes] : segments_) munmap(MappedPointer(address), size_bytes);
  for (const auto& [address, reservation] : reservations_) munmap(MappedPointer(address), reservation.size_bytes);
}

absl::StatusOr<std::uint64_t> HostDevice::AllocateSegment(std::uint64_t size_bytes) {
  const std::uint64_t free_bytes = FreeBytes();
  if (size_bytes > free_bytes || RoundUp(size_bytes, options_.granularity_bytes) > free_bytes) {
    return OutOfCapacity("AllocateSegment", size_bytes, free_bytes);
  }
  const std::uint64_t charged = RoundUp(size_bytes, options_.granularity_bytes);
  const std::uint64_t address = MapAligned(charged, options_.granularity_bytes, PROT_READ | PROT_WRITE);
  if (address == 0) return KernelError("mmap", charged, errno);
  used_ += charged;
  segments_.emplace(address, charged);
  return address;
}

absl::Status HostDevice::FreeSegment(std::uint64_t address) {
  const auto it = segments_.find(address);
  ASHLAR_CHECK(it != segments_.end());
  const std::uint64_t size_bytes = it->second;
  if (munmap(MappedPointer(address), size_bytes) != 0) {
    // Only where vm.max_map_count is reached. The pages can still go, and the address space stays ours for good.
    const int error = errno;
    if (madvise(MappedPointer(address), size_bytes, MADV_DONTNEED) != 0)
      return KernelError("munmap", size_bytes, error);
  }
  used_ -= size_bytes;
  segments_.erase(it);
  return absl::OkStatus();
}

absl::StatusOr<std::uint64_t> HostDevice::Reserve(std::uint64_t size_bytes) {
  if (size_bytes > kMaxBytes) return absl::UnavailableError(MmapFailed("mmap", size_bytes, ENOMEM));
  const std::uint64_t rounded = RoundUp(size_bytes, options_.granularity_bytes);
  const std::uint64_t address = MapAligned(rounded, options_.granularity_bytes, PROT_NONE);
  if (address == 0) return absl::UnavailableError(MmapFailed("mmap", rounded, errno));
  AddressSpace unmapped(address, address + rounded, AddressOrder::kAscending);
  reservations_.emplace(address, Reservation{rounded, 0, std::move(unmapped)});
  return address;
}

absl::Status HostDevice::ReleaseReservation(std::uint64_t address) {
  const auto it = reservations_.find(address);
  ASHLAR_CHECK(it != reservations_.end());
  ASHLAR_CHECK_EQ(it->second.mapped_bytes, std::uint64_t{0});
  const std::uint64_t size_bytes = it->second.size_bytes;
  // A refusal (vm.max_map_count) wastes address space, never memory: no page of it is mapped.
  const bool is_unmapped = munmap(MappedPointer(address), size_bytes) == 0;
  const int error = errno;
  reservations_.erase(it);
  return is_unmapped ? absl::OkStatus() : KernelError("munmap", size_bytes, error);
}

HostDevice::Reservation& HostDevice::ReservationOf(std::uint64_t address, std::uint64_t size_bytes) {
  auto it = reservations_.upper_bound(address);
  ASHLAR_CHECK(it != reservations_.begin());
  --it;
  ASHLAR_CHECK_LE(address + size_bytes, it->first + it->second.size_bytes);
  return it->second;
}

absl::Status HostDevice::Map(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) {
  if (page_bytes % options_.granularity_bytes != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a page of ", page_bytes, " bytes is no multiple of the device's ",
                                                   options_.granularity_bytes, " byte granularity"));
  }
  Reservation& reservation = ReservationOf(address, size_bytes);
  ASHLAR_CHECK_EQ(size_bytes % page_bytes, std::uint64_t{0});
  const std::uint64_t free_bytes = FreeBytes();
  if (size_bytes > free_bytes) return OutOfCapacity("Map", size_bytes, free_bytes);
  ASHLAR_CHECK(reservation.unmapped.TakeAt(address, size_bytes));
  if (mprotect(MappedPointer(address), size_bytes, PROT_READ | PROT_WRITE) != 0) {
    const int error = errno;
    mprotect(MappedPointer(address), size_bytes, PROT_NONE);
    reservation.unmapped.Give(address, size_bytes);
    return KernelError("mprotect", size_bytes, error);
  }
  reservation.mapped_bytes += size_bytes;
  used_ += size_bytes;
  return absl::OkStatus();
}

absl::Status HostDevice::Unmap(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) {
  Reservation& reservation = ReservationOf(address, size_bytes);
  ASHLAR_CHECK_EQ(size_bytes % page_bytes, std::uint64_t{0});
  // Every byte of it must be mapped: none can be taken from the unmapped ranges.
  reservation.unmapped.Give(address, size_bytes);
  reservation.mapped_bytes -= size_bytes;
  used_ -= size_bytes;
  // The pages go first: where the second call is refused (vm.max_map_count), they are gone all the same, and only a
  // stray access is not caught.
  if (madvise(MappedPointer(address), size_bytes, MADV_DONTNEED) != 0) return KernelError("madvise", size_bytes, errno);
  if (mprotect(MappedPointer(address), size_bytes, PROT_NONE) != 0) return KernelError("mprotect", size_bytes, errno);
  return absl::OkStatus();
}

MemoryInfo HostDevice::GetMemoryInfo() { return {FreeBytes(), options_.capacity_bytes}; }

DeviceEvent HostDevice::RecordEvent(Stream stream) {
  const DeviceEvent event = clock_.Record(stream);
  if (options_.events_complete_immediately) clock_.FinishEvent(event);
  return event;
}

bool HostDevice::QueryEvent(const DeviceEvent& event) { return clock_.IsDone(event); }

absl::Status HostDevice::SynchronizeEvent(const DeviceEvent& event) {
  clock_.FinishEvent(event);
  return absl::OkStatus();
}

absl::Status HostDevice::SynchronizeStream(Stream stream) {
  clock_.FinishStream(stream);
  return absl::OkStatus();
}

absl::Status HostDevice::MakeStreamWait(Stream stream, Stream awaited) {
  if (!options_.events_complete_immediately) clock_.Wait(stream, awaited);
  return absl::OkStatus();
}

// Host work is done when the call that does it returns: a copy too.
absl::Status HostDevice::CopyToHost(void* to, std::uint64_t address, std::uint64_t size_bytes, Stream /*stream*/) {
  std::memcpy(to, MappedPointer(address), size_bytes);
  return absl::OkStatus();
}

absl::Status HostDevice::CopyToDevice(std::uint64_t address, const void* from, std::uint64_t size_bytes,
                                      Stream /*stream*/) {
  std::memcpy(MappedPointer(address), from, size_bytes);
  return absl::OkStatus();
}

}  // namespace ashlar::device
