#include "hollow/model/tally.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "hollow/model/device_model.h"

namespace ashlar::hollow {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(TallyTest, CountsByNameAndByLine) {
  Tally tally;
  tally.AddLaunch();
  tally.AddRefused("cudaB");
  tally.AddRefused("cudaA");
  tally.AddRefused("cudaB");
  tally.AddMadeUp("train.py:3", 4);
  tally.AddMadeUp("train.py:3", 8);
  EXPECT_EQ(tally.launches(), 1U);
  EXPECT_THAT(tally.refused(), ElementsAre(Pair("cudaA", 1), Pair("cudaB", 2)));
  ASSERT_EQ(tally.made_up().size(), 1U);
  EXPECT_EQ(tally.made_up().at("train.py:3").count, 2U);
  EXPECT_EQ(tally.made_up().at("train.py:3").bytes, 12U);
  tally.Clear();
  EXPECT_EQ(tally.launches(), 0U);
  EXPECT_THAT(tally.refused(), IsEmpty());
  EXPECT_THAT(tally.made_up(), IsEmpty());
}

TEST(TallyTest, ThreadsCountTogether) {
  Tally tally;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&tally, thread] {
      for (int i = 0; i < 2000; ++i) {
        tally.AddLaunch();
        tally.AddRefused(i % 2 == 0 ? "even" : "odd");
        tally.AddMadeUp("line " + std::to_string(thread), 2);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(tally.launches(), 16'000U);
  EXPECT_THAT(tally.refused(), ElementsAre(Pair("even", 8000), Pair("odd", 8000)));
  EXPECT_EQ(tally.made_up().size(), 8U);
  EXPECT_EQ(tally.made_up().at("line 3").bytes, 4000U);
}

TEST(PeersTest, AccessIsOneWayAndSaidOnce) {
  Peers peers;
  EXPECT_EQ(peers.Enable(0, 1, 2), Error::kNone);
  EXPECT_EQ(peers.Enable(0, 1, 2), Error::kPeerAccessAlreadyEnabled);
  EXPECT_EQ(peers.Disable(1, 0), Error::kPeerAccessNotEnabled);
  EXPECT_EQ(peers.Enable(1, 0, 2), Error::kNone);
  EXPECT_EQ(peers.Disable(0, 1), Error::kNone);
  EXPECT_EQ(peers.Disable(0, 1), Error::kPeerAccessNotEnabled);
  EXPECT_EQ(peers.Enable(0, 1, 2), Error::kNone);
  for (const int peer : {-1, 0, 2}) EXPECT_EQ(peers.Enable(0, peer, 2), Error::kInvalidDevice) << peer;
}

}  // namespace
}  // namespace ashlar::hollow
