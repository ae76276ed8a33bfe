// What NCCL's calls leave of its memory: whom a communicator called, and its being suspended.
#include <dlfcn.h>

#include <cstdint>

#include "tests/hollow/client/in_hollow.h"

namespace ashlar::hollow::client {
namespace {

using NcclMemoryTest = InHollowTest;

constexpr int kInvalidArgument = 4, kInvalidUsage = 5;
constexpr int kFloat = 7, kSum = 0;  // ncclFloat32, ncclSum
constexpr int kSuspendMemory = 1, kIsSuspended = 1, kTotalBytes = 3;

template <typename... Arguments>
int Nccl(const char* name, Arguments... arguments) {
  void* function = dlsym(RTLD_DEFAULT, name);
  EXPECT_NE(function, nullptr) << name;
  return reinterpret_cast<int (*)(Arguments...)>(function)(arguments...);
}

TEST_F(NcclMemoryTest, AReportTellsWhatCommunicatorsWereCalledFor) {
  Run({"devices=2"}, [] {
    setenv("NCCL_BUFFSIZE", "1048576", 1);
    void* ranks[2] = {};
    ASSERT_EQ(Nccl("ncclCommInitAll", static_cast<void**>(ranks), 2, static_cast<const int*>(nullptr)), 0);
    void* const buffers[2] = {Malloc(64), Malloc(64)};
    ASSERT_EQ(Nccl("ncclGroupStart"), 0);
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(Nccl("ncclAllReduce", static_cast<const void*>(buffers[rank]), buffers[rank], std::size_t{4}, kFloat,
                     kSum, ranks[rank], static_cast<void*>(nullptr)),
                0);
    }
    EXPECT_EQ(Nccl("ncclGroupEnd"), 0);
    ASSERT_EQ(Nccl("ncclGroupStart"), 0);
    EXPECT_EQ(Nccl("ncclSend", static_cast<const void*>(buffers[0]), std::size_t{4}, kFloat, 1, ranks[0],
                   static_cast<void*>(nullptr)),
              0);
    EXPECT_EQ(Nccl("ncclRecv", buffers[1], std::size_t{4}, kFloat, 0, ranks[1], static_cast<void*>(nullptr)), 0);
    EXPECT_EQ(Nccl("ncclGroupEnd"), 0);
    for (void* rank : ranks) EXPECT_EQ(Nccl("ncclCommDestroy", rank), 0);
  });
  const nlohmann::json nccl = Report()["library_use"]["nccl"];
  EXPECT_EQ(nccl["settings"]["NCCL_BUFFSIZE"], "1048576");
  EXPECT_GT(nccl["version"], 0);
  ASSERT_EQ(nccl["communicators"].size(), 2U);
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(
        nccl["communicators"][rank],
        (nlohmann::json{{"device", rank}, {"ranks", 2}, {"collectives", true}, {"peers", 1}, {"suspended", false}}));
  }
}

TEST_F(NcclMemoryTest, ASuspendedCommunicatorMakesNoCallUntilItIsResumed) {
  Run({}, [] {
    void* rank = nullptr;
    ASSERT_EQ(Nccl("ncclCommInitAll", &rank, 1, static_cast<const int*>(nullptr)), 0);
    auto* buffer = static_cast<float*>(Malloc(64));
    const auto all_reduce = [&] {
      return Nccl("ncclAllReduce", static_cast<const void*>(buffer), static_cast<void*>(buffer), std::size_t{4}, kFloat,
                  kSum, rank, static_cast<void*>(nullptr));
    };
    const auto stat = [&](int which) {
      std::uint64_t value = 77;
      EXPECT_EQ(Nccl("ncclCommMemStats", rank, which, &value), 0);
      return value;
    };
    EXPECT_EQ(Nccl("ncclCommResume", rank), kInvalidUsage);
    EXPECT_EQ(Nccl("ncclCommSuspend", rank, 0), kInvalidArgument);
    EXPECT_EQ(stat(kIsSuspended), 0U);
    EXPECT_EQ(Nccl("ncclCommSuspend", rank, kSuspendMemory), 0);
    EXPECT_EQ(Nccl("ncclCommSuspend", rank, kSuspendMemory), kInvalidUsage);
    EXPECT_EQ(stat(kIsSuspended), 1U);
    EXPECT_EQ(stat(kTotalBytes), 0U);
    EXPECT_EQ(all_reduce(), kInvalidUsage);
    EXPECT_EQ(Nccl("ncclCommResume", rank), 0);
    EXPECT_EQ(all_reduce(), 0);
    std::uint64_t value = 0;
    EXPECT_EQ(Nccl("ncclCommMemStats", rank, 9, &value), kInvalidArgument);
    EXPECT_EQ(Nccl("ncclCommDestroy", rank), 0);
  });
}

}  // namespace
}  // namespace ashlar::hollow::client
