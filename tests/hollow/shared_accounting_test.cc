// What the launcher reads of the shared accounting once the run is over: the peaks, and what those held that died.
#include "launcher/shared_accounting.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "hollow/model/shared_machine.h"
#include "tests/hollow/ranks.h"

namespace ashlar::hollow {
namespace {

void Hold(SharedMachine& machine, int device, std::uint64_t bytes) {
  const SharedMachine::Lock lock(machine);
  machine.SetMine(device, bytes);
}

TEST(SharedAccounting, PeaksAndWhatTheDeadHeldAreTold) {
  const test::RunFolder folder;
  EXPECT_EQ(cli::ReadSharedAccounting(folder.path()), std::nullopt) << "no process opened a device";
  auto* killed = test::Shared<std::int64_t>();
  test::RunRanks(3, [&](int rank) {
    SharedMachine machine(folder.path(), 3);
    Hold(machine, rank, 100 + rank);
    Hold(machine, rank, 10 + rank);
    if (rank == 1) {
      *killed = getpid();
      raise(SIGKILL);
    }
  });
  SharedMachine alive(folder.path(), 3);
  Hold(alive, 0, 7);
  const std::optional<cli::SharedAccounting> books = cli::ReadSharedAccounting(folder.path());
  ASSERT_TRUE(books.has_value());
  EXPECT_EQ(books->peaks, (std::map<int, std::uint64_t>{{0, 100}, {1, 101}, {2, 102}}));
  EXPECT_EQ(books->left_held, (std::map<std::int64_t, std::map<int, std::uint64_t>>{{*killed, {{1, 11}}}}))
      << "those that left in order closed their accounting, and this process lives";
}

}  // namespace
}  // namespace ashlar::hollow
