#include "hollow/model/library_use.h"

#include <gtest/gtest.h>

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
  const int first = use.AddCommunicator({.ranks = 8});
  use.Suspend(first);
  const int second = use.AddCommunicator({.ranks = 2});
  EXPECT_EQ(use.Most().communicators.size(), 1U) << "one was gone before the other came";
  use.Resume(first);
  use.NoteCollective(first);
  use.NotePeer(second, 1);
  use.NotePeer(second, 1);
  use.Suspend(second);
  const LibraryUse::Summary most = use.Most();
  ASSERT_EQ(most.communicators.size(), 2U);
  EXPECT_TRUE(most.communicators[0].has_collectives);
  EXPECT_EQ(most.communicators[1].peers.size(), 1U);
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
