#include "hollow/model/shared_machine.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/hollow/ranks.h"

namespace ashlar::hollow {
namespace {

using test::RunFolder;
using test::RunRanks;
using test::Shared;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// A charge as a device makes it.
bool Charge(SharedMachine& machine, int device, std::uint64_t mine, std::uint64_t bytes, std::uint64_t total) {
  const SharedMachine::Lock lock(machine);
  if (mine + bytes + machine.UsedByOthers(device) > total) machine.ForgetDead();
  if (mine + bytes + machine.UsedByOthers(device) > total) return false;
  machine.SetMine(device, mine + bytes);
  return true;
}

std::uint64_t Others(SharedMachine& machine, int device) {
  const SharedMachine::Lock lock(machine);
  return machine.UsedByOthers(device);
}

TEST(SharedMachine, ProcessesNeverHaveMoreThanTheDeviceHas) {
  const RunFolder folder;
  constexpr std::uint64_t kTotal = 1000;
  struct Counts {
    std::atomic<std::uint64_t> used, most, granted, came;
  };
  Counts* counts = Shared<Counts>();
  const auto codes = RunRanks(4, [&](int rank) {
    SharedMachine machine(folder.path(), 2);
    std::uint64_t mine = 0;
    for (++counts->came; counts->came < 4;) std::this_thread::yield();  // all at the same time
    for (int step = 0; step < 20'000; ++step) {
      const std::uint64_t bytes = 1 + (step * 7 + rank * 13) % 97;
      if (mine >= 400) {
        counts->used -= mine;  // before the others can have them
        const SharedMachine::Lock lock(machine);
        machine.SetMine(1, mine = 0);
      } else if (Charge(machine, 1, mine, bytes, kTotal)) {
        mine += bytes;
        ++counts->granted;
        const std::uint64_t used = counts->used += bytes;
        std::uint64_t most = counts->most;
        while (used > most && !counts->most.compare_exchange_weak(most, used)) {
        }
      }
    }
    counts->used -= mine;  // which it gives back as it leaves
    EXPECT_EQ(machine.Processes(0).size(), 0U);
  });
  EXPECT_EQ(codes, std::vector<int>(4, 0));
  EXPECT_LE(counts->most, kTotal);
  EXPECT_GT(counts->granted, 1'000U);
  SharedMachine after(folder.path(), 2);
  EXPECT_TRUE(after.Processes(1).empty()) << "all have left";
  EXPECT_EQ(Others(after, 1), 0U);
  EXPECT_LE(after.Peak(1), kTotal);
  EXPECT_GE(after.Peak(1), counts->most);
  EXPECT_EQ(after.Peak(0), 0U);
}

TEST(SharedMachine, AKilledProcessGivesBackWhatItHad) {
  const RunFolder folder;
  std::atomic<int>* charged = Shared<std::atomic<int>>();
  const pid_t child = fork();
  if (child == 0) {
    SharedMachine machine(folder.path(), 1);
    Charge(machine, 0, 0, 600, 1000);
    *charged = 1;
    pause();
  }
  while (*charged == 0) std::this_thread::yield();
  SharedMachine machine(folder.path(), 1);
  EXPECT_EQ(machine.Processes(0), (std::vector<ProcessBytes>{{child, 600}}));
  EXPECT_FALSE(Charge(machine, 0, 0, 500, 1000));
  kill(child, SIGKILL);
  siginfo_t ended;
  waitid(P_PID, child, &ended, WEXITED | WNOWAIT);  // it stays as a zombie: its number is still taken
  EXPECT_TRUE(Charge(machine, 0, 0, 500, 1000));
  EXPECT_EQ(machine.Processes(0), (std::vector<ProcessBytes>{{getpid(), 500}}));
  EXPECT_EQ(machine.Peak(0), 600U);
  waitpid(child, nullptr, 0);
}

TEST(SharedMachine, AProcessThatDiesWithTheLockLeavesTheAccountingRight) {
  const RunFolder folder;
  const auto codes = RunRanks(1, [&](int) {
    SharedMachine machine(folder.path(), 1);
    Charge(machine, 0, 0, 70, 1000);
    const SharedMachine::Lock lock(machine);
    machine.SetMine(0, 90);
    kill(getpid(), SIGKILL);
  });
  EXPECT_EQ(codes, std::vector<int>{128 + SIGKILL});
  SharedMachine machine(folder.path(), 1);
  EXPECT_TRUE(Charge(machine, 0, 0, 1000, 1000));
  EXPECT_EQ(machine.Processes(0), (std::vector<ProcessBytes>{{getpid(), 1000}}));
}

TEST(SharedMachine, AChildStartsWithNothingAndChargesForItself) {
  for (const bool with_folder : {true, false}) {
    const RunFolder folder;
    SharedMachine machine(with_folder ? folder.path() : "", 1);
    EXPECT_EQ(machine.shared(), with_folder);
    ASSERT_TRUE(Charge(machine, 0, 0, 300, 1000));
    const int parent = getpid();
    const auto codes = RunRanks(2, [&](int) {
      EXPECT_GE(Others(machine, 0), 300U) << "the parent is another now";
      EXPECT_TRUE(Charge(machine, 0, 0, 200, 1000));
      const auto uses = machine.Processes(0);
      EXPECT_NE(std::find(uses.begin(), uses.end(), ProcessBytes{parent, 300}), uses.end());
      EXPECT_NE(std::find(uses.begin(), uses.end(), ProcessBytes{getpid(), 200}), uses.end());
      machine.Leave();
    });
    EXPECT_EQ(codes, std::vector<int>(2, 0));
    EXPECT_EQ(Others(machine, 0), 0U);
    EXPECT_EQ(machine.Processes(0), (std::vector<ProcessBytes>{{parent, 300}}));
  }
}

TEST(SharedMachine, HandlesAreFoundByOtherProcessesUntilRemoved) {
  const RunFolder folder;
  SharedMachine machine(folder.path(), 1);
  const SharedMemory memory{.pid = getpid(), .device = 0, .bytes = 5 * kMiB, .offset = 512};
  ShareHandle first;
  ShareHandle second;
  ASSERT_TRUE(machine.Export(memory, first));
  ASSERT_TRUE(machine.Export(memory, second));
  EXPECT_NE(first, second);
  const auto codes = RunRanks(1, [&](int) {
    SharedMachine other(folder.path(), 1);
    EXPECT_EQ(other.Find(first), memory);
    ShareHandle wrong = first;
    wrong[63] ^= 1;
    EXPECT_EQ(other.Find(wrong), std::nullopt);
    EXPECT_TRUE(other.Remove(second));
    EXPECT_FALSE(other.Remove(second));
  });
  EXPECT_EQ(codes, std::vector<int>{0});
  EXPECT_EQ(machine.Find(second), std::nullopt);
  EXPECT_EQ(machine.Find(first), memory);
}

TEST(SharedMachine, HandlesOfADeadProcessAreForgottenAndTheirNumberIsBounded) {
  const RunFolder folder;
  ShareHandle* handle = Shared<ShareHandle>();
  const auto codes = RunRanks(1, [&](int) {
    SharedMachine machine(folder.path(), 1);
    for (int i = 0; i < SharedMachine::kMostHandles; ++i) EXPECT_TRUE(machine.Export({}, *handle));
    ShareHandle one_more;
    EXPECT_FALSE(machine.Export({}, one_more));
    kill(getpid(), SIGKILL);
  });
  EXPECT_EQ(codes, std::vector<int>{128 + SIGKILL});
  SharedMachine machine(folder.path(), 1);
  EXPECT_NE(machine.Find(*handle), std::nullopt);
  machine.Processes(0);
  EXPECT_EQ(machine.Find(*handle), std::nullopt);
}

TEST(SharedMachine, AFolderThatCannotBeUsedIsOneLineAndAccountingOfItsOwn) {
  ::testing::internal::CaptureStderr();
  SharedMachine machine("/nowhere/at/all", 1);
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_NE(text.find("/nowhere/at/all/books"), std::string::npos);
  EXPECT_FALSE(machine.shared());
  EXPECT_TRUE(Charge(machine, 0, 0, 10, 10));
}

// The cost is printed; the bound is wide, for a machine that does other things.
TEST(SharedMachine, AChargeCostsLittle) {
  const RunFolder folder;
  SharedMachine machine(folder.path(), 8);
  constexpr int kCharges = 200'000;
  double least = 1e9;
  for (int round = 0; round < 7; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kCharges; ++i) Charge(machine, 3, i % 2, 1, 1000);
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    least = std::min(least, time.count() / kCharges);
  }
  std::printf("a charge takes %.1f ns\n", least);
  EXPECT_LT(least, 2000);
}

}  // namespace
}  // namespace ashlar::hollow
