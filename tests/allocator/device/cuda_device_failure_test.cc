// What the CUDA device does when a CUDA call fails: the status, what is left behind, and how it is made up for.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "allocator/device/cuda_device.h"
#include "gtest/gtest.h"
#include "tests/fake_cuda/fake_cuda.h"

namespace ashlar::device {
namespace {

constexpr std::uint64_t kCudaDeviceFailurePage = 2 * kMiB;
constexpr int kUnknown = 999;  // CUDA_ERROR_UNKNOWN

class CudaDeviceFailureTest : public testing::Test {
 protected:
  CudaDeviceFailureTest() { cuda_.MakeCurrent(cuda_.ContextOf(0)); }
  // Of the calls that do something, once the context is current, the one behind `n` others fails.
  void FailAfterContext(std::uint64_t n, int code) { cuda_.FailWork(n, code); }

  FakeCuda cuda_{{.device_count = 2, .capacity_bytes = 64 * kMiB}};
  std::unique_ptr<CudaDevice> device_ = *CudaDevice::Open({.ordinal = 0});
};

TEST_F(CudaDeviceFailureTest, OutOfMemoryNamesTheCallAndTheReason) {
  const absl::Status status = device_->AllocateSegment(65 * kMiB).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(status.message(), "cuMemAlloc(65.00 MiB) failed on CUDA device 0: CUDA_ERROR_OUT_OF_MEMORY: out of memory");
}

TEST_F(CudaDeviceFailureTest, OnlyExhaustionIsOutOfMemory) {
  FailAfterContext(0, kUnknown);
  const absl::Status status = device_->AllocateSegment(kCudaDeviceFailurePage).status();
  EXPECT_TRUE(absl::IsInternal(status));
  EXPECT_EQ(status.message(), "cuMemAlloc(2.00 MiB) failed on CUDA device 0: an error unknown to the driver: code 999");
  EXPECT_EQ(device_->last_error(), status);
  FailAfterContext(0, kCudaErrorOutOfMemory);
  EXPECT_TRUE(absl::IsInternal(device_->Reserve(kCudaDeviceFailurePage).status())) << "addresses are no device memory";
  cuda_.FailCall(0, kCudaErrorOutOfMemory);
  EXPECT_TRUE(absl::IsInternal(device_->AllocateSegment(kCudaDeviceFailurePage).status())) << "nor is a context";
  EXPECT_EQ(cuda_.used_bytes(), 0u);
}

TEST_F(CudaDeviceFailureTest, MapIsAllOrNothingAtEachOfItsCalls) {
  const std::uint64_t base = *device_->Reserve(4 * kCudaDeviceFailurePage);
  for (const int code : {kUnknown, kCudaErrorOutOfMemory}) {
    for (std::uint64_t n = 0; n < 9; ++n) {  // 4 x cuMemCreate, 4 x cuMemMap, cuMemSetAccess
      FailAfterContext(n, code);
      const absl::Status status = device_->Map(base, 4 * kCudaDeviceFailurePage, kCudaDeviceFailurePage);
      ASSERT_TRUE(cuda_.has_failed());
      EXPECT_EQ(absl::IsResourceExhausted(status), code == kCudaErrorOutOfMemory) << n << ": " << status;
      EXPECT_NE(status.message().find(n < 4   ? "cuMemCreate"
                                      : n < 8 ? "cuMemMap"
                                              : "cuMemSetAccess"),
                absl::string_view::npos)
          << status;
      EXPECT_EQ(cuda_.used_bytes(), 0u) << n;
      EXPECT_EQ(device_->unreturned_bytes(), 0u) << n;
      for (std::uint64_t page = 0; page < 4; ++page)
        EXPECT_FALSE(cuda_.IsAccessible(base + page * kCudaDeviceFailurePage));
    }
  }
  EXPECT_TRUE(device_->Map(base, 4 * kCudaDeviceFailurePage, kCudaDeviceFailurePage).ok());
}

TEST_F(CudaDeviceFailureTest, ASegmentThatWasNotTakenIsReturnedLater) {
  const std::uint64_t segment = *device_->AllocateSegment(4 * kCudaDeviceFailurePage);
  FailAfterContext(0, kUnknown);
  EXPECT_TRUE(absl::IsInternal(device_->FreeSegment(segment)));
  EXPECT_EQ(cuda_.failed_call(), "cuMemFree");
  EXPECT_EQ(device_->unreturned_bytes(), 4 * kCudaDeviceFailurePage);
  EXPECT_EQ(cuda_.used_bytes(), 4 * kCudaDeviceFailurePage);
  ASSERT_TRUE(device_->AllocateSegment(kCudaDeviceFailurePage).ok());
  EXPECT_EQ(device_->unreturned_bytes(), 0u);
  EXPECT_EQ(cuda_.used_bytes(), kCudaDeviceFailurePage);
}

TEST_F(CudaDeviceFailureTest, ASegmentWithoutAContextIsReturnedLater) {
  const std::uint64_t segment = *device_->AllocateSegment(kCudaDeviceFailurePage);
  cuda_.FailCall(0, kUnknown);
  EXPECT_TRUE(absl::IsInternal(device_->FreeSegment(segment)));
  EXPECT_EQ(cuda_.failed_call(), "cuCtxGetId");
  EXPECT_EQ(device_->unreturned_bytes(), kCudaDeviceFailurePage);
  ASSERT_TRUE(device_->Reserve(kCudaDeviceFailurePage).ok());
  EXPECT_EQ(device_->unreturned_bytes(), 0u);
}

TEST_F(CudaDeviceFailureTest, APageThatWasNotTakenIsReturnedLater) {
  const std::uint64_t base = *device_->Reserve(4 * kCudaDeviceFailurePage);
  for (std::uint64_t n = 0; n < 8; ++n) {  // cuMemUnmap, cuMemRelease, four times
    ASSERT_TRUE(device_->Map(base, 4 * kCudaDeviceFailurePage, kCudaDeviceFailurePage).ok());
    FailAfterContext(n, kUnknown);
    EXPECT_TRUE(absl::IsInternal(device_->Unmap(base, 4 * kCudaDeviceFailurePage, kCudaDeviceFailurePage)));
    EXPECT_EQ(cuda_.failed_call(), n % 2 == 0 ? "cuMemUnmap" : "cuMemRelease");
    EXPECT_EQ(device_->unreturned_bytes(), kCudaDeviceFailurePage);
    EXPECT_EQ(cuda_.used_bytes(), kCudaDeviceFailurePage) << "the others went";
  }
  EXPECT_TRUE(device_->ReleaseReservation(base).ok()) << "a handle is left, but no page";
  EXPECT_EQ(device_->unreturned_bytes(), kCudaDeviceFailurePage);
  ASSERT_TRUE(device_->AllocateSegment(kCudaDeviceFailurePage).ok());
  EXPECT_EQ(device_->unreturned_bytes(), 0u);
}

TEST_F(CudaDeviceFailureTest, APageThatStaysMappedCannotBeMappedAgain) {
  const std::uint64_t base = *device_->Reserve(2 * kCudaDeviceFailurePage);
  ASSERT_TRUE(device_->Map(base, 2 * kCudaDeviceFailurePage, kCudaDeviceFailurePage).ok());
  FailAfterContext(0, kUnknown);
  EXPECT_FALSE(device_->Unmap(base, kCudaDeviceFailurePage, kCudaDeviceFailurePage).ok());
  FailAfterContext(0, kUnknown);
  const absl::Status status = device_->Map(base, kCudaDeviceFailurePage, kCudaDeviceFailurePage);
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_EQ(cuda_.failed_call(), "cuMemUnmap") << "it was tried again";
  EXPECT_TRUE(device_->Map(base, kCudaDeviceFailurePage, kCudaDeviceFailurePage).ok()) << "and again";
  EXPECT_EQ(cuda_.used_bytes(), 2 * kCudaDeviceFailurePage);
}

TEST_F(CudaDeviceFailureTest, AReservationThatWasNotTakenIsReturnedLater) {
  const std::uint64_t base = *device_->Reserve(2 * kCudaDeviceFailurePage);
  FailAfterContext(0, kUnknown);
  EXPECT_TRUE(absl::IsInternal(device_->ReleaseReservation(base)));
  EXPECT_EQ(cuda_.live_reservations(), 1u);
  const std::uint64_t other = *device_->Reserve(2 * kCudaDeviceFailurePage);
  EXPECT_EQ(cuda_.live_reservations(), 1u);
  ASSERT_TRUE(device_->Map(other, kCudaDeviceFailurePage, kCudaDeviceFailurePage).ok());
  FailAfterContext(0, kUnknown);
  EXPECT_FALSE(device_->Unmap(other, kCudaDeviceFailurePage, kCudaDeviceFailurePage).ok());
  EXPECT_TRUE(absl::IsInternal(device_->ReleaseReservation(other))) << "a page of it is still mapped";
  ASSERT_TRUE(device_->AllocateSegment(kCudaDeviceFailurePage).ok());
  EXPECT_EQ(cuda_.live_reservations(), 0u);
  EXPECT_EQ(cuda_.used_bytes(), kCudaDeviceFailurePage);
}

TEST_F(CudaDeviceFailureTest, AnEventThatCannotBeRecordedIsWaitedFor) {
  const DeviceEvent earlier = device_->RecordEvent(Stream{3});
  for (const std::uint64_t n : {0, 1}) {
    FailAfterContext(n, kUnknown);
    const DeviceEvent event = device_->RecordEvent(Stream{3});
    EXPECT_EQ(cuda_.failed_call(), n == 0 ? "cuEventCreate" : "cuEventRecord");
    EXPECT_TRUE(device_->QueryEvent(event)) << "its stream was synchronised";
    EXPECT_TRUE(device_->QueryEvent(earlier));
    for (int i = 0; i < 2; ++i) device_->RecordEvent(Stream{4});  // so that the pool is empty
  }
}

TEST_F(CudaDeviceFailureTest, AnEventThatCannotEvenBeWaitedForIsRecordedLater) {
  cuda_.FailFrom(2, kUnknown);
  const DeviceEvent event = device_->RecordEvent(Stream{3});
  EXPECT_FALSE(device_->QueryEvent(event));
  EXPECT_FALSE(device_->SynchronizeEvent(event).ok());
  cuda_.StopFailing();
  EXPECT_FALSE(device_->QueryEvent(event)) << "recorded only now";
  cuda_.CompleteAllWork();
  EXPECT_TRUE(device_->QueryEvent(event));
}

TEST_F(CudaDeviceFailureTest, AnEventWithoutAContextIsRecordedLater) {
  cuda_.FailCall(0, kUnknown);
  const DeviceEvent event = device_->RecordEvent(Stream{3});
  EXPECT_FALSE(device_->QueryEvent(event));
  EXPECT_TRUE(device_->SynchronizeEvent(event).ok());
  EXPECT_TRUE(device_->QueryEvent(event));
}

// device.h and docs/library/devices.md: of a later point than asked, never of an earlier one.
TEST_F(CudaDeviceFailureTest, AnEventThatFailedIsNeverOfAnEarlierPoint) {
  const DeviceEvent asked = device_->RecordEvent(Stream{3});
  cuda_.FailFrom(2, kUnknown);
  const DeviceEvent failed = device_->RecordEvent(Stream{3});
  cuda_.StopFailing();
  cuda_.CompleteAllWork();
  EXPECT_TRUE(device_->QueryEvent(asked)) << "all that the stream had been given is done";
  EXPECT_FALSE(device_->QueryEvent(failed)) << "recorded only now, behind work that was given since";
  const DeviceEvent later = device_->RecordEvent(Stream{3});
  EXPECT_TRUE(device_->SynchronizeEvent(later).ok());
  EXPECT_TRUE(device_->QueryEvent(failed));
}

// What a failure leaves behind, by call: from cells of "| calls | text |" or lines of "//   calls  text".
std::map<std::string, std::string> FailureTable(const std::string& path, const std::string& margin) {
  std::ifstream file(ASHLAR_SOURCE_DIR + path);
  std::map<std::string, std::string> out;
  std::string* last = nullptr;
  for (std::string line; std::getline(file, line);) {
    line.erase(std::remove(line.begin(), line.end(), '`'), line.end());
    if (out.empty() && line.find("AllocateSegment, Reserve, Map") == std::string::npos) continue;
    if (line.rfind(margin, 0) != 0) break;
    line = line.substr(margin.size());
    const std::size_t gap = line.find(margin == "| " ? " | " : "  ");
    const std::string text = line.substr(line.find_first_not_of(" |", gap));
    if (gap != 0) last = &out[line.substr(0, gap)];
    *last += (last->empty() ? "" : " ") + text.substr(0, text.find(" |"));
  }
  return out;
}

TEST(DeviceDocumentTest, TheHeaderAndTheDocumentSayTheSameOfFailures) {
  const std::map<std::string, std::string> header = FailureTable("/include/ashlar/device.h", "//   ");
  EXPECT_EQ(header.size(), 7u);
  EXPECT_EQ(header, FailureTable("/docs/library/devices.md", "| "));
}

TEST_F(CudaDeviceFailureTest, AFailedQueryOrSynchroniseProvesNothing) {
  const DeviceEvent event = device_->RecordEvent(Stream{3});
  cuda_.CompleteAllWork();
  FailAfterContext(0, kCudaErrorIllegalAddress);
  EXPECT_FALSE(device_->QueryEvent(event));
  EXPECT_NE(device_->last_error().message().find("cuEventQuery failed"), absl::string_view::npos);
  FailAfterContext(0, kCudaErrorIllegalAddress);
  EXPECT_TRUE(absl::IsInternal(device_->SynchronizeEvent(event)));
  FailAfterContext(0, kCudaErrorIllegalAddress);
  EXPECT_TRUE(absl::IsInternal(device_->SynchronizeStream(Stream{3})));
  EXPECT_TRUE(device_->QueryEvent(event));
}

TEST_F(CudaDeviceFailureTest, MemoryInfoThatIsNotToBeHad) {
  FailAfterContext(0, kUnknown);
  const MemoryInfo info = device_->GetMemoryInfo();
  EXPECT_EQ(info.total_bytes, 64 * kMiB);
  EXPECT_EQ(info.free_bytes, 0u);
  EXPECT_FALSE(device_->last_error().ok());
  EXPECT_EQ(device_->GetMemoryInfo().free_bytes, 64 * kMiB);
}

TEST_F(CudaDeviceFailureTest, OpeningLeavesNothingBehindAtEachOfItsCalls) {
  cuda_.MakeCurrent(nullptr);
  std::uint64_t failures = 0;
  for (std::uint64_t n = 0;; ++n) {
    cuda_.FailCall(n, kUnknown);
    const absl::StatusOr<std::unique_ptr<CudaDevice>> device =
        CudaDevice::Open({.ordinal = 1, .posix_fd_handles = true});
    if (!cuda_.has_failed()) break;
    ++failures;
    const bool is_right =
        cuda_.failed_call() == "cuInit" ? absl::IsUnavailable(device.status()) : absl::IsInternal(device.status());
    EXPECT_TRUE(is_right) << cuda_.failed_call() << ": " << device.status();
    EXPECT_FALSE(cuda_.HasContext(1)) << cuda_.failed_call();
    const bool is_restored = cuda_.current() == nullptr || cuda_.failed_call() == "cuCtxPopCurrent";
    EXPECT_TRUE(is_restored) << cuda_.failed_call();
    cuda_.MakeCurrent(nullptr);
  }
  cuda_.StopFailing();
  EXPECT_EQ(failures, 13u);
}

// A kernel of the program wrote where it may not: from now on every call answers so.
TEST_F(CudaDeviceFailureTest, ABrokenContextIsSurvived) {
  const std::uint64_t segment = *device_->AllocateSegment(kCudaDeviceFailurePage);
  const std::uint64_t base = *device_->Reserve(4 * kCudaDeviceFailurePage);
  ASSERT_TRUE(device_->Map(base, 2 * kCudaDeviceFailurePage, kCudaDeviceFailurePage).ok());
  const DeviceEvent event = device_->RecordEvent(Stream{3});
  cuda_.FailFrom(0, kCudaErrorIllegalAddress);
  EXPECT_FALSE(device_->QueryEvent(event));
  EXPECT_FALSE(device_->SynchronizeEvent(event).ok());
  EXPECT_TRUE(absl::IsInternal(device_->AllocateSegment(kCudaDeviceFailurePage).status()));
  EXPECT_TRUE(absl::IsInternal(
      device_->Map(base + 2 * kCudaDeviceFailurePage, kCudaDeviceFailurePage, kCudaDeviceFailurePage)));
  EXPECT_FALSE(device_->FreeSegment(segment).ok());
  EXPECT_FALSE(device_->Unmap(base, 2 * kCudaDeviceFailurePage, kCudaDeviceFailurePage).ok());
  EXPECT_FALSE(device_->ReleaseReservation(base).ok());
  EXPECT_EQ(device_->unreturned_bytes(), 3 * kCudaDeviceFailurePage);
  cuda_.StopFailing();  // no real context comes back; the fake one does, to see that nothing was forgotten
  ASSERT_TRUE(device_->AllocateSegment(kCudaDeviceFailurePage).ok());
  EXPECT_EQ(device_->unreturned_bytes(), 0u);
  EXPECT_EQ(cuda_.used_bytes(), kCudaDeviceFailurePage);
  EXPECT_EQ(cuda_.live_reservations(), 0u);
}

}  // namespace
}  // namespace ashlar::device
