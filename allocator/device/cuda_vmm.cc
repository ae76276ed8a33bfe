#include "allocator/device/cuda_vmm.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/check.h"
#include "allocator/base/units.h"
#include "allocator/device/cuda_driver.h"

namespace ashlar::device {

absl::Status CudaVmm::Answer(int code, const char* call, std::uint64_t size_bytes) const {
  if (code == kCudaSuccess) [[likely]]
    return absl::OkStatus();
  // The page tables of a mapping are device memory as well: cuMemMap and cuMemSetAccess can exhaust it too.
  return CudaStatus(cuda_, kind_.location.ordinal, code, absl::StrCat(call, "(", FormatBytes(size_bytes), ")"),
                    OutOfMemoryMeans::kDeviceMemory);
}

absl::StatusOr<std::uint64_t> CudaVmm::Reserve(std::uint64_t size_bytes) {
  const std::uint64_t rounded = RoundUp(size_bytes, granularity_bytes_);
  std::uint64_t address = 0;
  const int code = cuda_.mem_address_reserve(&address, rounded, 0, 0, 0);
  if (code != kCudaSuccess) {
    return CudaStatus(cuda_, kind_.location.ordinal, code,
                      absl::StrCat("cuMemAddressReserve(", FormatBytes(rounded), " of addresses)"));
  }
  reservations_.emplace(address, rounded);
  return address;
}

absl::Status CudaVmm::ReleaseReservation(std::uint64_t address) {
  const auto it = reservations_.find(address);
  ASHLAR_CHECK(it != reservations_.end());
  const std::uint64_t size_bytes = it->second;
  reservations_.erase(it);
  if (!HasLeftoverPage(address, size_bytes)) return ReturnRange(address, size_bytes);
  leftover_ranges_.emplace(address, size_bytes);
  return absl::InternalError(absl::StrCat("a reservation of ", FormatBytes(size_bytes), " on CUDA device ",
                                          kind_.location.ordinal, " still has pages that cuMemUnmap did not take"));
}

bool CudaVmm::HasLeftoverPage(std::uint64_t address, std::uint64_t size_bytes) const {
  const auto it = leftover_pages_.lower_bound(address);
  return it != leftover_pages_.end() && it->first < address + size_bytes;
}

absl::Status CudaVmm::CheckMappable(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) const {
  if (page_bytes % granularity_bytes_ != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a page of ", page_bytes, " bytes is no multiple of the device's ",
                                                   granularity_bytes_, " byte granularity"));
  }
  ASHLAR_CHECK_EQ(size_bytes % page_bytes, std::uint64_t{0});
  auto reservation = reservations_.upper_bound(address);
  ASHLAR_CHECK(reservation != reservations_.begin());
  --reservation;
  ASHLAR_CHECK_LE(address + size_bytes, reservation->first + reservation->second);
  for (std::uint64_t page = address; page < address + size_bytes; page += page_bytes) {
    ASHLAR_CHECK(!pages_.contains(page));
  }
  if (!HasLeftoverPage(address, size_bytes)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("a page in the range to map on CUDA device ", kind_.location.ordinal,
                                          " is still mapped: cuMemUnmap did not take it, nor when tried again"));
}

absl::Status CudaVmm::Map(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) {
  if (absl::Status status = CheckMappable(address, size_bytes, page_bytes); !status.ok()) return status;
  std::vector<CudaHandle> handles;
  std::uint64_t mapped = 0;
  absl::Status status = Create(page_bytes, size_bytes / page_bytes, handles);
  if (status.ok()) status = MapHandles(address, page_bytes, handles, mapped);
  if (status.ok()) {
    const CudaAccess access{.location = kind_.location};
    status = Answer(cuda_.mem_set_access(address, size_bytes, &access, 1), "cuMemSetAccess", size_bytes);
  }
  for (std::size_t i = 0; i < handles.size(); ++i) {
    const std::uint64_t page_address = address + i * page_bytes;
    const Page page{handles[i], page_bytes};
    if (status.ok()) {
      pages_.emplace(page_address, page);
    } else if (i < mapped) {
      ReturnPage(page_address, page).IgnoreError();  // a leftover, if not returned
    } else {
      ReturnHandle(page).IgnoreError();
    }
  }
  return status;
}

// A machine may refuse memory that can be exported, such as in some containers, and have other memory.
int CudaVmm::CreatePage(CudaHandle& handle, std::uint64_t page_bytes) {
  const int code = cuda_.mem_create(&handle, page_bytes, &kind_, 0);
  const bool is_refused = code == kCudaErrorNotSupported || code == kCudaErrorNotPermitted;
  if (!is_refused || must_share_ || kind_.handle_types == 0) return code;
  kind_.handle_types = 0;
  return cuda_.mem_create(&handle, page_bytes, &kind_, 0);
}

absl::StatusOr<int> CudaVmm::Export(std::uint64_t address) {
  const auto it = pages_.find(address);
  if (it == pages_.end()) return absl::InvalidArgumentError(absl::StrFormat("no page is mapped at 0x%x", address));
  if ((kind_.handle_types & kCudaHandlePosixFd) == 0 || !cuda_.mem_export.is_there()) {
    return absl::FailedPreconditionError(absl::StrCat("pages of CUDA device ", kind_.location.ordinal,
                                                      " cannot be shared with other processes: it has or grants no ",
                                                      "memory that a file descriptor exports"));
  }
  Page& page = it->second;
  if (page.exported >= 0) return page.exported;
  const int code = cuda_.mem_export(&page.exported, page.handle, kCudaHandlePosixFd, 0);
  if (code == kCudaSuccess) return page.exported;
  page.exported = -1;
  return CudaStatus(cuda_, kind_.location.ordinal, code, "cuMemExportToShareableHandle");
}

absl::Status CudaVmm::Create(std::uint64_t page_bytes, std::uint64_t count, std::vector<CudaHandle>& handles) {
  for (std::uint64_t i = 0; i < count; ++i) {
    CudaHandle handle{};
    const int code = CreatePage(handle, page_bytes);
    if (code != kCudaSuccess) return Answer(code, "cuMemCreate", page_bytes);
    handles.push_back(handle);
  }
  return absl::OkStatus();
}

absl::Status CudaVmm::MapHandles(std::uint64_t address, std::uint64_t page_bytes,
                                 const std::vector<CudaHandle>& handles, std::uint64_t& mapped) {
  for (const CudaHandle handle : handles) {
    const int code = cuda_.mem_map(address + mapped * page_bytes, page_bytes, 0, handle, 0);
    if (code != kCudaSuccess) return Answer(code, "cuMemMap", page_bytes);
    ++mapped;
  }
  return absl::OkStatus();
}

absl::Status CudaVmm::Unmap(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) {
  ASHLAR_CHECK_EQ(size_bytes % page_bytes, std::uint64_t{0});
  absl::Status first_error;
  for (std::uint64_t at = address; at < address + size_bytes; at += page_bytes) {
    const auto it = pages_.find(at);
    ASHLAR_CHECK(it != pages_.end());
    ASHLAR_CHECK_EQ(it->second.size_bytes, page_bytes);
    const Page page = it->second;
    pages_.erase(it);
    first_error.Update(ReturnPage(at, page));
  }
  return first_error;
}

void CudaVmm::LosePages(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) {
  for (std::uint64_t at = address; at < address + size_bytes; at += page_bytes) {
    const auto it = pages_.find(at);
    ASHLAR_CHECK(it != pages_.end());
    leftover_pages_.emplace(at, it->second);
    leftover_bytes_ += it->second.size_bytes;
    pages_.erase(it);
  }
}

void CudaVmm::LoseReservation(std::uint64_t address) {
  const auto it = reservations_.find(address);
  ASHLAR_CHECK(it != reservations_.end());
  leftover_ranges_.insert(*it);
  reservations_.erase(it);
}

absl::Status CudaVmm::ReturnPage(std::uint64_t address, const Page& page) {
  const int code = cuda_.mem_unmap(address, page.size_bytes);
  if (code == kCudaSuccess) return ReturnHandle(page);
  leftover_pages_.emplace(address, page);
  leftover_bytes_ += page.size_bytes;
  return CudaStatus(cuda_, kind_.location.ordinal, code, "cuMemUnmap");
}

absl::Status CudaVmm::ReturnHandle(const Page& page) {
  if (page.exported >= 0) close(page.exported);
  const int code = cuda_.mem_release(page.handle);
  if (code == kCudaSuccess) return absl::OkStatus();
  leftover_handles_.push_back(page);
  leftover_bytes_ += page.size_bytes;
  return CudaStatus(cuda_, kind_.location.ordinal, code, "cuMemRelease");
}

absl::Status CudaVmm::ReturnRange(std::uint64_t address, std::uint64_t size_bytes) {
  const int code = cuda_.mem_address_free(address, size_bytes);
  if (code == kCudaSuccess) return absl::OkStatus();
  leftover_ranges_.emplace(address, size_bytes);
  return CudaStatus(cuda_, kind_.location.ordinal, code, "cuMemAddressFree");
}

absl::Status CudaVmm::ReturnLeftovers() {
  while (!leftover_pages_.empty()) {
    const auto [address, page] = *leftover_pages_.begin();
    leftover_pages_.erase(leftover_pages_.begin());
    leftover_bytes_ -= page.size_bytes;
    if (absl::Status status = ReturnPage(address, page); !status.ok()) return status;
  }
  while (!leftover_handles_.empty()) {
    const Page page = leftover_handles_.back();
    leftover_handles_.pop_back();
    leftover_bytes_ -= page.size_bytes;
    if (absl::Status status = ReturnHandle(page); !status.ok()) return status;
  }
  while (!leftover_ranges_.empty()) {  // no page of them is left
    const auto [address, size_bytes] = *leftover_ranges_.begin();
    leftover_ranges_.erase(leftover_ranges_.begin());
    if (absl::Status status = ReturnRange(address, size_bytes); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CudaVmm::ReturnAll() {
  absl::Status first_error;
  for (const auto& [address, page] : std::exchange(pages_, {})) first_error.Update(ReturnPage(address, page));
  for (const auto& [address, size_bytes] : std::exchange(reservations_, {})) {
    leftover_ranges_.emplace(address, size_bytes);
  }
  first_error.Update(ReturnLeftovers());
  return first_error;
}

}  // namespace ashlar::device
