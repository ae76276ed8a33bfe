#include "hollow/model/library_use.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <thread>
#include <vector>

namespace ashlar::hollow {
namespace {

TEST(LibraryUseTest, HandlesCountByDeviceWhenTheyAreMost) {
  LibraryUse use;
  use.AddCublas(0);
  use.AddCublas(0);
  use.RemoveCublas(0);
  use.AddCublas(1);
  const LibraryUse::Summary most = use.Most();
  EXPECT_EQ(most.cublas_handles.at(0), 2);
  EXPECT_EQ(most.cublas_handles.at(1), 1);
  EXPECT_FALSE(most.has_cudnn);
}

TEST(LibraryUseTest, CommunicatorsAreThoseThatWereThereTogether) {
  LibraryUse use;
  use.Remove(use.AddCommunicator({.ranks = 4}));
  const int first = use.AddCommunicator({.ranks = 8});
  EXPECT_EQ(use.Most().communicators.size(), 1U) << "one was gone before the other came";
  const int second = use.AddCommunicator({.ranks = 2});
  use.NoteCollective(first);
  use.NotePeer(second, 1);
  use.NotePeer(second, 1);
  use.Suspend(second);
  const LibraryUse::Summary most = use.Most();
  ASSERT_EQ(most.communicators.size(), 2U);
  EXPECT_TRUE(most.communicators[0].has_collectives);
  EXPECT_EQ(most.communicators[1].peers.size(), 1U);
}

TEST(LibraryUseTest, ASuspendedCommunicatorCountsBesideThoseThatAreNot) {
  LibraryUse use;
  const int first = use.AddCommunicator({.ranks = 8});
  use.Suspend(first);
  const int second = use.AddCommunicator({.ranks = 2});
  const LibraryUse::Summary beside = use.Most();
  ASSERT_EQ(beside.communicators.size(), 2U);
  EXPECT_EQ(beside.communicators[0].ranks, 2);
  EXPECT_FALSE(beside.communicators[0].is_suspended);
  EXPECT_EQ(beside.communicators[1].ranks, 8);
  EXPECT_TRUE(beside.communicators[1].is_suspended);
  use.Resume(first);
  use.Suspend(second);
  ASSERT_EQ(use.Most().communicators.size(), 2U);
  EXPECT_FALSE(use.Most().communicators[0].is_suspended) << "both were active together";
  EXPECT_FALSE(use.Most().communicators[1].is_suspended);
  use.Remove(first);
  use.Suspend(first);  // of what is gone nothing stays
  EXPECT_EQ(use.Most().communicators.size(), 2U);
}

TEST(LibraryUseTest, PlansOfCudnnAreKeptOnceEachAndNotWithoutEnd) {
  LibraryUse use;
  use.AddCudnn({.library = "/lib/libcudnn.so.9", .device = "{}"});
  use.AddCudnn({.library = "/other"});
  use.NoteCudnnPlan("");
  for (std::size_t i = 0; i < LibraryUse::kMostGraphs + 2; ++i) use.NoteCudnnPlan(std::to_string(i));
  use.NoteCudnnPlan("1");
  const LibraryUse::Cudnn cudnn = use.Most().cudnn;
  EXPECT_EQ(cudnn.library, "/lib/libcudnn.so.9");
  EXPECT_EQ(cudnn.graphs.size(), LibraryUse::kMostGraphs);
  EXPECT_EQ(cudnn.more, 2U);
}

TEST(LibraryUseTest, OfThePlansOfAGraphTheLargestWorkspaceIsKept) {
  LibraryUse use;
  use.NoteCudnnPlan("none");
  use.NoteCudnnPlan("some", 5);
  use.NoteCudnnPlan("some", 7);
  use.NoteCudnnPlan("some", 6);
  use.NoteCudnnSilence("first");
  use.NoteCudnnSilence("second");
  const LibraryUse::Cudnn cudnn = use.Most().cudnn;
  EXPECT_EQ(cudnn.graphs.size(), 2U);
  EXPECT_EQ(cudnn.answered, 1U);
  EXPECT_EQ(cudnn.most_bytes, 7U);
  EXPECT_EQ(cudnn.why_silent, "first");
  for (std::size_t i = 0; i < LibraryUse::kMostGraphs; ++i) use.NoteCudnnPlan(std::to_string(i), 9);
  EXPECT_EQ(use.Most().cudnn.more, 2U);
  EXPECT_EQ(use.Most().cudnn.answered, LibraryUse::kMostGraphs + 1) << "those that are not kept, too";
}

TEST(LibraryUseTest, AForkedChildKnowsNothingOfTheParentsCommunicators) {
  LibraryUse use;
  const int parents = use.AddCommunicator({.ranks = 8});
  use.Clear();
  use.Resume(parents);
  use.NoteCollective(parents);
  use.NotePeer(parents, 1);
  EXPECT_TRUE(use.Most().communicators.empty());
}

TEST(LibraryUseTest, ThreadsMayCallAtOnce) {
  LibraryUse use;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&use] {
      for (int round = 0; round < 100; ++round) {
        const int number = use.AddCommunicator({});
        use.NoteCollective(number);
        use.Suspend(number);
        use.Remove(number);
        use.AddCublas(0);
        use.RemoveCublas(0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(use.Most().communicators.size(), 4U);
  EXPECT_LE(use.Most().cublas_handles.at(0), 4);
}

}  // namespace
}  // namespace ashlar::hollow
