// The virtual memory of one CUDA device: reserved addresses, and pages of memory behind them, a handle a page. The
// caller has made the device's context current.
//
// Every call that obtains leaves nothing behind when it fails. A call that returns something always rids the caller of
// it: what the driver did not take back is a leftover, which ReturnLeftovers tries again.
// Thread rule: not thread-safe; the device's caller serialises calls.
#ifndef ASHLAR_ALLOCATOR_DEVICE_CUDA_VMM_H_
#define ASHLAR_ALLOCATOR_DEVICE_CUDA_VMM_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "allocator/device/cuda_driver.h"

namespace ashlar::device {

class CudaVmm {
 public:
  // `must_share`: pages have the handle types of `kind`, or there are none.
  CudaVmm(const CudaDriver& cuda, const CudaAllocation& kind, std::uint64_t granularity_bytes, bool must_share)
      : cuda_(cuda), kind_(kind), granularity_bytes_(granularity_bytes), must_share_(must_share) {}

  absl::StatusOr<std::uint64_t> Reserve(std::uint64_t size_bytes);
  absl::Status ReleaseReservation(std::uint64_t address);
  absl::Status Map(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes);
  absl::Status Unmap(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes);

  // Device::ExportPage.
  absl::StatusOr<int> Export(std::uint64_t address);

  // The device is lost: these are leftovers without a call.
  void LoseReservation(std::uint64_t address);
  void LosePages(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes);

  // Stops at the first that fails again.
  absl::Status ReturnLeftovers();
  std::uint64_t leftover_bytes() const { return leftover_bytes_; }

  // Unmaps and releases everything.
  absl::Status ReturnAll();

 private:
  struct Page {
    CudaHandle handle{};
    std::uint64_t size_bytes = 0;
    int exported = -1;  // the file descriptor, once it is
  };
  absl::Status Answer(int code, const char* call, std::uint64_t size_bytes) const;
  int CreatePage(CudaHandle& handle, std::uint64_t page_bytes);
  absl::Status CheckMappable(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t page_bytes) const;
  absl::Status Create(std::uint64_t page_bytes, std::uint64_t count, std::vector<CudaHandle>& handles);
  absl::Status MapHandles(std::uint64_t address, std::uint64_t page_bytes, const std::vector<CudaHandle>& handles,
                          std::uint64_t& mapped);
  absl::Status ReturnPage(std::uint64_t address, const Page& page);
  absl::Status ReturnHandle(const Page& page);
  absl::Status ReturnRange(std::uint64_t address, std::uint64_t size_bytes);
  bool HasLeftoverPage(std::uint64_t address, std::uint64_t size_bytes) const;

  const CudaDriver& cuda_;
  CudaAllocation kind_;
  std::uint64_t granularity_bytes_;
  bool must_share_;
  std::map<std::uint64_t, std::uint64_t> reservations_;  // address -> size
  absl::flat_hash_map<std::uint64_t, Page> pages_;       // by address

  // What the driver did not take back.
  std::map<std::uint64_t, Page> leftover_pages_;  // still mapped at the address
  std::vector<Page> leftover_handles_;            // mapped nowhere
  std::map<std::uint64_t, std::uint64_t> leftover_ranges_;
  std::uint64_t leftover_bytes_ = 0;  // of pages and handles
};

}  // namespace ashlar::device

#endif  // ASHLAR_ALLOCATOR_DEVICE_CUDA_VMM_H_
