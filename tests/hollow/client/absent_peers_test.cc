// A communicator whose other ranks have no process: what one rank makes alone, and hears of those that ran before it.
#include <dlfcn.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <string>

#include "tests/hollow/client/in_hollow.h"

namespace ashlar::hollow::client {
namespace {

constexpr int kFloatType = 7, kSumOp = 0;  // ncclFloat32, ncclSum
constexpr int kInvalidUsageResult = 5, kHostToDeviceCopy = 1, kDeviceToHostCopy = 2;
constexpr int kWorld = 4;

using Floats = std::array<float, 8>;

struct UniqueId {
  char bytes[128] = "ashlar-nccl-00112233445566778899aabbccddeeff";
};

template <typename... Arguments>
int CallNccl(const char* name, Arguments... arguments) {
  void* function = dlsym(RTLD_DEFAULT, name);
  EXPECT_NE(function, nullptr) << name;
  return reinterpret_cast<int (*)(Arguments...)>(function)(arguments...);
}

void* const kNoStream = nullptr;

class AbsentPeersTest : public InHollowTest {
 protected:
  // Runs one rank of four, alone. The folder that the ranks share outlives it.
  void RunAlone(int rank, const std::function<void(void* communicator, float* buffer)>& program) {
    const std::string ranks = folder_.path() + "/ranks";
    std::filesystem::create_directory(ranks);
    Run({"devices=1"}, [&] {
      setenv("ASHLAR_RANKS", ranks.c_str(), 1);
      void* communicator = nullptr;
      ASSERT_EQ(CallNccl("ncclCommInitRank", &communicator, kWorld, UniqueId(), rank), 0);
      program(communicator, static_cast<float*>(Malloc(sizeof(Floats))));
      EXPECT_EQ(CallNccl("ncclCommDestroy", communicator), 0);
    });
  }
  static void Put(float* buffer, const Floats& values) {
    ASSERT_EQ(cudaMemcpy(buffer, values.data(), sizeof(values), kHostToDeviceCopy), 0);
  }
  static Floats Read(const float* buffer) {
    Floats out{};
    EXPECT_EQ(cudaMemcpy(out.data(), buffer, sizeof(out), kDeviceToHostCopy), 0);
    return out;
  }
  static int Broadcast(float* buffer, int root, void* communicator) {
    return CallNccl("ncclBcast", static_cast<void*>(buffer), std::size_t{8}, kFloatType, root, communicator, kNoStream);
  }
  static int Receive(float* buffer, int from, void* communicator) {
    return CallNccl("ncclRecv", static_cast<void*>(buffer), std::size_t{8}, kFloatType, from, communicator, kNoStream);
  }
};

TEST_F(AbsentPeersTest, EachPeersPartIsACopyOfOurs) {
  RunAlone(2, [](void* communicator, float* buffer) {
    Put(buffer, {5, 6});
    ASSERT_EQ(CallNccl("ncclAllGather", static_cast<const void*>(buffer), static_cast<void*>(buffer), std::size_t{2},
                       kFloatType, communicator, kNoStream),
              0);
    EXPECT_EQ(Read(buffer), (Floats{5, 6, 5, 6, 5, 6, 5, 6}));
    ASSERT_EQ(CallNccl("ncclAllReduce", static_cast<const void*>(buffer), static_cast<void*>(buffer), std::size_t{8},
                       kFloatType, kSumOp, communicator, kNoStream),
              0);
    EXPECT_EQ(Read(buffer), (Floats{20, 24, 20, 24, 20, 24, 20, 24})) << "of four";
  });
}

TEST_F(AbsentPeersTest, WhatARankSaidIsHeardByThoseThatRunAfterIt) {
  RunAlone(0, [](void* communicator, float* buffer) {
    Put(buffer, {1, 2, 3});
    ASSERT_EQ(Broadcast(buffer, 0, communicator), 0);
    Put(buffer, {4, 5, 6});
    ASSERT_EQ(
        CallNccl("ncclSend", static_cast<const void*>(buffer), std::size_t{8}, kFloatType, 1, communicator, kNoStream),
        0);
  });
  RunAlone(1, [](void* communicator, float* buffer) {
    ASSERT_EQ(Broadcast(buffer, 0, communicator), 0);
    EXPECT_EQ(Read(buffer), (Floats{1, 2, 3}));
    ASSERT_EQ(Receive(buffer, 0, communicator), 0);
    EXPECT_EQ(Read(buffer), (Floats{4, 5, 6}));
  });
}

TEST_F(AbsentPeersTest, WhatNobodySaidIsNotWaitedFor) {
  RunAlone(1, [](void* communicator, float* buffer) {
    Put(buffer, {7, 8});
    ASSERT_EQ(Broadcast(buffer, 3, communicator), 0);
    EXPECT_EQ(Read(buffer), (Floats{7, 8})) << "a broadcast leaves what is there";
    ASSERT_EQ(Receive(buffer, 2, communicator), 0);
    EXPECT_EQ(Read(buffer), Floats{}) << "what is received reads as zeros";
  });
  EXPECT_GT(Report()["made_up_total"], 0) << "and is told as made up";
}

// An all-to-all by pairs.
TEST_F(AbsentPeersTest, InAGroupEachPeerSendsWhatThisRankSendsToItself) {
  RunAlone(2, [](void* communicator, float* buffer) {
    Put(buffer, {1, 2, 3, 4});
    ASSERT_EQ(CallNccl("ncclGroupStart"), 0);
    for (int peer = 0; peer < kWorld; ++peer) {
      ASSERT_EQ(CallNccl("ncclSend", static_cast<const void*>(buffer + peer), std::size_t{1}, kFloatType, peer,
                         communicator, kNoStream),
                0);
      ASSERT_EQ(CallNccl("ncclRecv", static_cast<void*>(buffer + 4 + peer), std::size_t{1}, kFloatType, peer,
                         communicator, kNoStream),
                0);
    }
    ASSERT_EQ(CallNccl("ncclGroupEnd"), 0);
    EXPECT_EQ(Read(buffer), (Floats{1, 2, 3, 4, 3, 3, 3, 3}));
    ASSERT_EQ(Receive(buffer, 0, communicator), 0);
    EXPECT_EQ(Read(buffer), Floats{}) << "out of the group it is not known";
  });
}

TEST_F(AbsentPeersTest, AReportTellsOfTheWholeCommunicator) {
  RunAlone(3, [](void* communicator, float* buffer) {
    ASSERT_EQ(Broadcast(buffer, 3, communicator), 0);
    ASSERT_EQ(Receive(buffer, 2, communicator), 0);
  });
  EXPECT_EQ(Report()["library_use"]["nccl"]["communicators"][0],
            (nlohmann::json{{"device", 0}, {"ranks", 4}, {"collectives", true}, {"peers", 1}, {"suspended", false}}));
}

TEST_F(AbsentPeersTest, ASplitAsksThoseThatAreNotThereAndIsRefused) {
  RunAlone(0, [](void* communicator, float*) {
    void* part = nullptr;
    EXPECT_EQ(CallNccl("ncclCommSplit", communicator, 0, 0, &part, static_cast<void*>(nullptr)), kInvalidUsageResult);
  });
}

}  // namespace
}  // namespace ashlar::hollow::client
