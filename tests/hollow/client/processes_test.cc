// Several processes over one machine, forks, peers, threads, and planned failures.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "ashlar/hollow.h"
#include "tests/hollow/client/in_hollow.h"

namespace ashlar::hollow::client {
namespace {

using ProcessesTest = InHollowTest;

// A function of include/ashlar/hollow.h, as a program finds it.
template <typename Function>
Function* HollowFunction(const char* name) {
  void* found = dlsym(RTLD_DEFAULT, name);
  EXPECT_NE(found, nullptr) << name;
  return reinterpret_cast<Function*>(found);
}

// Waits for all to come; the processes share `came`.
void Meet(std::atomic<int>* came, int ranks) {
  for (++*came; *came < ranks;) std::this_thread::yield();
}

TEST_F(ProcessesTest, ProcessesShareADevicesMemory) {
  auto* first = test::Shared<std::atomic<int>>();
  auto* last = test::Shared<std::atomic<int>>();
  RunRanks(3, {"total_bytes=104857600", "context_bytes=10485760"}, [&](int) {
    Malloc(20 * kMiB);
    Meet(first, 3);
    EXPECT_EQ(UsedBytes(), 90 * kMiB);
    void* none = nullptr;
    EXPECT_EQ(cudaMalloc(&none, 20 * kMiB), kOutOfMemory);
    Meet(last, 3);
  });
  for (const nlohmann::json& report : Reports()) EXPECT_EQ(report["devices"][0]["peak_bytes"], 90 * kMiB);
  EXPECT_EQ(Reports().size(), 3U);
}

TEST_F(ProcessesTest, AHandleOpensAnothersMemory) {
  struct Both {
    std::atomic<int> made, opened;
    abi::IpcHandle handle;
  };
  auto* both = test::Shared<Both>();
  RunRanks(2, {}, [&](int rank) {
    if (rank == 0) {
      void* memory = Malloc(5 * kMiB);
      EXPECT_EQ(cudaIpcGetMemHandle(&both->handle, memory), kSuccess);
      Meet(&both->made, 2);
      Meet(&both->opened, 2);
      EXPECT_EQ(UsedBytes(), 6 * kMiB) << "it is charged once";
    } else {
      Meet(&both->made, 2);
      void* opened = nullptr;
      EXPECT_EQ(cudaIpcOpenMemHandle(&opened, both->handle, 1), kSuccess);
      EXPECT_NE(opened, nullptr);
      EXPECT_EQ(cudaMemset(opened, 0, 5 * kMiB), kSuccess);
      EXPECT_EQ(cudaFree(opened), kInvalidValue);
      EXPECT_EQ(cudaIpcCloseMemHandle(opened), kSuccess);
      EXPECT_EQ(cudaIpcCloseMemHandle(opened), kInvalidValue);
      abi::IpcHandle wrong = both->handle;
      wrong.bytes[0] ^= 1;
      EXPECT_EQ(cudaIpcOpenMemHandle(&opened, wrong, 1), kInvalidValue);
      Meet(&both->opened, 2);
    }
  });
}

TEST_F(ProcessesTest, PeersAreEnabledOnce) {
  Run({"devices=2"}, [] {
    int can = 9;
    EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 0, 1), kSuccess);
    EXPECT_EQ(can, 1);
    EXPECT_EQ(cudaDeviceCanAccessPeer(&can, 0, 0), kSuccess);
    EXPECT_EQ(can, 0);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), kSuccess);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(1, 0), kPeerAlreadyEnabled);
    EXPECT_EQ(cudaDeviceEnablePeerAccess(0, 0), kInvalidDevice);
    EXPECT_EQ(cudaDeviceDisablePeerAccess(1), kSuccess);
    EXPECT_EQ(cudaDeviceDisablePeerAccess(1), kPeerNotEnabled);
    void* here = Malloc(10);
    EXPECT_EQ(cudaSetDevice(1), kSuccess);
    void* there = Malloc(10);
    WriteText(here, "peer");
    EXPECT_EQ(cudaMemcpy(there, here, 4, kDefaultCopy), kSuccess);
    EXPECT_EQ(ReadText(there, 4), "peer");
    EXPECT_EQ(cudaDeviceReset(), kSuccess);
    EXPECT_EQ(cudaFree(there), kInvalidValue) << "the reset took it";
    EXPECT_EQ(ReadText(here, 4), "peer");
  });
}

int ForkAndWait(const std::function<void()>& child) {
  return test::RunRanks(1, [&](int) { child(); })[0];
}

// Starts this program anew, in the run, with one of the tests below: the library is loaded in the run then.
void StartAnew(const std::string& test) {
  const std::string filter = "--gtest_filter=ProcessesTest.DISABLED_" + test;
  execl("/proc/self/exe", "anew", filter.c_str(), "--gtest_also_run_disabled_tests", nullptr);
  FAIL() << "not started";
}

void ExpectADevice() {
  EXPECT_EQ(cudaFree(Malloc(3 * kMiB)), kSuccess);
  void* held = Malloc(3 * kMiB);
  EXPECT_EQ(UsedBytes(), 4 * kMiB);
  EXPECT_EQ(cudaFree(held), kSuccess);
}

TEST_F(ProcessesTest, DISABLED_LivesOn) {
  std::filesystem::remove_all(std::getenv("ASHLAR_HOLLOW_RUN"));
  ExpectADevice();
}
TEST_F(ProcessesTest, DISABLED_GivesUpItsRights) {
  const int code = ForkAndWait([] {
    ASSERT_EQ(setgid(65534), 0);
    ASSERT_EQ(setuid(65534), 0);
    for (int file = 3; file < 64; ++file) close(file);
    ExpectADevice();
  });
  EXPECT_EQ(code, 0);
}

// As what `setpriv` starts.
TEST_F(ProcessesTest, DISABLED_BecomesAnotherWithoutRights) {
  const int code = ForkAndWait([] {
    ASSERT_EQ(chdir("/"), 0);
    ASSERT_EQ(setgid(65534), 0);
    ASSERT_EQ(setuid(65534), 0);
    StartAnew("HasADevice");
  });
  EXPECT_EQ(code, 0);
}
TEST_F(ProcessesTest, DISABLED_HasADevice) {
  std::size_t free_bytes = 0, total_bytes = 0;
  EXPECT_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), kSuccess);
  EXPECT_EQ(total_bytes, 104857600U) << "the run's";
  ExpectADevice();
}

// A daemon whose first use of a device comes after the run.
TEST_F(ProcessesTest, AProgramMayOutliveItsRun) {
  Run({"total_bytes=104857600"}, [] { StartAnew("LivesOn"); });
  EXPECT_FALSE(std::filesystem::exists(folder_.path())) << "nothing is left behind";
}

TEST_F(ProcessesTest, AProgramMayGiveUpItsRights) {
  if (geteuid() != 0) GTEST_SKIP() << "only root has another's to take";
  Run({"total_bytes=104857600"}, [] { StartAnew("GivesUpItsRights"); });
}

TEST_F(ProcessesTest, WhatAProgramBecomesMayHaveFewerRights) {
  if (geteuid() != 0) GTEST_SKIP() << "only root has another's to take";
  Run({"total_bytes=104857600"}, [] { StartAnew("BecomesAnotherWithoutRights"); });
}

// Nor does the library's own writing end a program that may write nothing.
TEST_F(ProcessesTest, ALimitOfFileSizesEndsNoProgram) {
  Run({}, [&] {
    const rlimit none = {0, 0};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
    setenv("ASHLAR_HOLLOW_CALLS", (folder_.path() + "/calls").c_str(), 1);
    ExpectADevice();
    sigset_t pending;
    ASSERT_EQ(sigpending(&pending), 0);
    EXPECT_EQ(sigismember(&pending, SIGXFSZ), 0);
    EXPECT_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &pending), 0);
    EXPECT_EQ(sigismember(&pending, SIGXFSZ), 0);
  });
}

void ExpectNotInitialized() {
  void* none = nullptr;
  std::uint64_t address = 0;
  EXPECT_EQ(cudaMalloc(&none, 100), kNotInitialized);
  EXPECT_EQ(cudaMallocAsync(&none, 100, nullptr), kNotInitialized);
  EXPECT_EQ(cudaSetDevice(0), kNotInitialized);
  EXPECT_EQ(cudaMemset(nullptr, 0, 1), kNotInitialized);
  EXPECT_EQ(Launch(), kNotInitialized);
  EXPECT_EQ(cudaDeviceSynchronize(), kNotInitialized);
  EXPECT_EQ(cudaStreamSynchronize(nullptr), kNotInitialized);
  EXPECT_EQ(cudaStreamQuery(nullptr), kNotInitialized);
  EXPECT_EQ(cudaEventQuery(nullptr), kNotInitialized);
  EXPECT_EQ(cuMemAlloc_v2(&address, 100), kNotInitialized);
}

// As a worker of a DataLoader, which may fork before and after.
TEST_F(ProcessesTest, AForkedChildHasADeviceOnlyWhereItsParentHadNone) {
  Run({}, [] {
    int count = 0;
    EXPECT_EQ(cudaGetDeviceCount(&count), kSuccess) << "counting is no use of a device";
    EXPECT_EQ(ForkAndWait([] { EXPECT_EQ(cudaFree(Malloc(100)), kSuccess); }), 0);
    void* memory = Malloc(100);
    const int code = ForkAndWait(ExpectNotInitialized);
    EXPECT_EQ(code, 0);
    EXPECT_EQ(UsedBytes(), 2 * kMiB) << "the child's end returns nothing of the parent's";
    EXPECT_EQ(cudaFree(memory), kSuccess);
  });
  EXPECT_EQ(Reports().size(), 2U) << "the parent's and the first child's";
}

// A process that has imported what runs import is forked for each of them, with another folder and another machine.
TEST_F(ProcessesTest, AForkMayBeARunOfItsOwn) {
  const test::RunFolder other;
  std::ofstream(other.path() + "/machine") << "devices=2\ncontext_bytes=0\ntotal_bytes=" << 100 * kMiB << "\n";
  Run({}, [&] {
    const auto begin_run = HollowFunction<bool()>("ashlar_hollow_begin_run");
    int count = 0;
    EXPECT_EQ(cudaGetDeviceCount(&count), kSuccess);
    EXPECT_EQ(count, 1);
    const auto run = [&] {
      setenv("ASHLAR_HOLLOW_RUN", other.path().c_str(), 1);
      EXPECT_TRUE(begin_run());
      EXPECT_EQ(cudaGetDeviceCount(&count), kSuccess);
      EXPECT_EQ(count, 2);
      std::size_t free_bytes = 0, total_bytes = 0;
      EXPECT_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), kSuccess);
      EXPECT_EQ(total_bytes, 100 * kMiB);
      EXPECT_EQ(cudaFree(Malloc(3 * kMiB)), kSuccess);
    };
    for (int i = 0; i < 3; ++i) EXPECT_EQ(ForkAndWait(run), 0);
    Malloc(100);
    EXPECT_EQ(ForkAndWait([&] { EXPECT_FALSE(begin_run()) << "a device is in use"; }), 0);
    EXPECT_EQ(UsedBytes(), 2 * kMiB);
  });
  EXPECT_EQ(Reports().size(), 1U);
  std::size_t theirs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(other.path())) {
    theirs += entry.path().filename().string().rfind("process-", 0) == 0 ? 1 : 0;
  }
  EXPECT_EQ(theirs, 3U);
}

TEST_F(ProcessesTest, EveryWayOutClosesTheAccounting) {
  void (*const ways[])(int) = {[](int) { std::exit(0); }, [](int) { _exit(0); }, [](int) { std::_Exit(0); },
                               [](int) { std::quick_exit(0); }};
  std::size_t reports = 0;
  for (const auto way : ways) {
    RunRanks(1, {}, [&](int) {
      Malloc(5 * kMiB);
      way(0);
    });
    EXPECT_EQ(Reports().size(), ++reports);
  }
}

TEST_F(ProcessesTest, TheAccountingAddsUpUnderThreads) {
  Run({}, [] {
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 8; ++thread) {
      threads.emplace_back([thread] {
        void* stream = NewStream(1);
        std::vector<void*> kept;
        for (int i = 0; i < 300; ++i) {
          void* block = nullptr;
          const std::size_t bytes = 1 + static_cast<std::size_t>((i * 37 + thread) % 5) * kMiB;
          EXPECT_EQ(i % 3 == 0 ? cudaMallocAsync(&block, bytes, stream) : cudaMalloc(&block, bytes), kSuccess);
          EXPECT_EQ(Launch(stream), kSuccess);
          kept.push_back(block);
          if (kept.size() < 10) continue;
          EXPECT_EQ(cudaFree(kept.front()), kSuccess);
          kept.erase(kept.begin());
        }
        for (void* block : kept) EXPECT_EQ(cudaFree(block), kSuccess);
        EXPECT_EQ(cudaStreamDestroy(stream), kSuccess);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(cudaDeviceSynchronize(), kSuccess);
    EXPECT_EQ(UsedBytes(), 0U);
  });
  EXPECT_EQ(Report()["launches"], 8 * 300);
}

TEST_F(ProcessesTest, CallsFailAsPlanned) {
  Run({"fail_call=2"}, [] {
    Malloc(100);
    void* block = nullptr;
    EXPECT_EQ(cudaMalloc(&block, 100), kOutOfMemory);
    EXPECT_EQ(cudaMalloc(&block, 100), kSuccess);
  });
  Run({"fail_after=10485760"}, [] {
    void *large = Malloc(10 * kMiB), *block = nullptr;
    EXPECT_EQ(cudaMalloc(&block, 1), kOutOfMemory);
    EXPECT_EQ(cudaMallocAsync(&block, 1, nullptr), kOutOfMemory);
    EXPECT_EQ(cudaFree(large), kSuccess);
    EXPECT_EQ(cudaMalloc(&block, 1), kSuccess);
  });
}

TEST_F(ProcessesTest, AProgramMayPlanAtRunTime) {
  Run({"devices=2"}, [] {
    const auto set_capacity = HollowFunction<bool(int, std::uint64_t)>("ashlar_hollow_set_capacity");
    const auto fail_call = HollowFunction<void(std::uint64_t)>("ashlar_hollow_fail_call");
    const auto used = HollowFunction<std::uint64_t(int)>("ashlar_hollow_used");
    Malloc(3 * kMiB);
    EXPECT_EQ(used(0), 4 * kMiB);
    EXPECT_EQ(used(1), 0U);
    EXPECT_EQ(used(7), 0U);
    EXPECT_TRUE(set_capacity(0, 8 * kMiB));
    EXPECT_FALSE(set_capacity(2, 8 * kMiB));
    void* block = nullptr;
    EXPECT_EQ(cudaMalloc(&block, 5 * kMiB), kOutOfMemory);
    fail_call(2);
    EXPECT_EQ(cudaMalloc(&block, kMiB), kSuccess);
    EXPECT_EQ(cudaMallocAsync(&block, kMiB, nullptr), kOutOfMemory);
    fail_call(1);
    fail_call(0);
    EXPECT_EQ(cudaMalloc(&block, kMiB), kSuccess);
  });
}

TEST_F(ProcessesTest, ValuesAreTaughtAndForgotten) {
  Run({"real_bytes=123"}, [] {
    EXPECT_EQ(HollowFunction<std::uint64_t()>("ashlar_hollow_real_bytes")(), 123U);
    const auto know = HollowFunction<void(std::uint64_t, std::uint64_t)>("ashlar_hollow_know");
    const auto forget = HollowFunction<void(std::uint64_t, std::uint64_t)>("ashlar_hollow_forget");
    const auto is_known = HollowFunction<bool(std::uint64_t, std::uint64_t)>("ashlar_hollow_is_known");
    void* block = Malloc(100);
    const std::uint64_t address = reinterpret_cast<std::uint64_t>(block);
    EXPECT_FALSE(is_known(address, 1));
    WriteText(block, "0123456789");
    EXPECT_TRUE(is_known(address, 10));
    forget(address + 4, 2);
    EXPECT_FALSE(is_known(address, 10));
    know(address + 4, 2);
    EXPECT_TRUE(is_known(address, 10));
    HollowFunction<void(ashlar_hollow_line)>("ashlar_hollow_set_line")([](char* text, std::size_t size) {
      std::snprintf(text, size, "my.py:7 step");
      return true;
    });
    ReadText(static_cast<char*>(block) + 50, 8);
    HollowFunction<void(ashlar_hollow_line)>("ashlar_hollow_set_line")([](char* text, std::size_t size) {
      std::snprintf(text, size, "%s", "");
      return true;
    });
    ReadText(static_cast<char*>(block) + 50, 8);
  });
  const nlohmann::json made_up = Report()["made_up"];
  ASSERT_EQ(made_up.size(), 1U) << "nobody looks at what the other one reads";
  EXPECT_EQ(made_up[0]["line"], "my.py:7 step");
  EXPECT_EQ(made_up[0]["bytes"], 8);
}

TEST_F(ProcessesTest, ReadsOfAThreadMayBeGivenANumber) {
  Run({}, [] {
    const auto read_as = HollowFunction<void(std::uint64_t)>("ashlar_hollow_read_as");
    const auto read_as_is = HollowFunction<void()>("ashlar_hollow_read_as_is");
    void* block = Malloc(100);
    WriteText(block, "0123456789");
    read_as(258);
    EXPECT_EQ(ReadText(block, 4), std::string("\2\1\0\0", 4)) << "known or not";
    EXPECT_EQ(ReadText(block, 1), std::string("\1", 1)) << "true";
    EXPECT_EQ(ReadText(static_cast<char*>(block) + 50, 10), std::string("\2\1\0\0\0\0\0\0\0\0", 10));
    std::thread([&] { EXPECT_EQ(ReadText(block, 4), "0123"); }).join();
    read_as_is();
    EXPECT_EQ(ReadText(block, 4), "0123");
  });
  EXPECT_TRUE(Report()["made_up"].empty());
}

// Lets the process have `gib` GiB of addresses more than it has.
void LimitAddresses(std::uint64_t gib) {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) + (gib << 30);
  const rlimit limit = {most, most};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

TEST_F(ProcessesTest, FewerAddressesAreEnoughForADevice) {
  Run({"total_bytes=1073741824", "devices=2"}, [] {
    LimitAddresses(100);
    for (const int device : {0, 1}) {
      EXPECT_EQ(cudaSetDevice(device), kSuccess);
      Malloc(1000 * kMiB);
      void* none = nullptr;
      EXPECT_EQ(cudaMalloc(&none, 100 * kMiB), kOutOfMemory);
    }
    std::uint64_t address = 0;
    EXPECT_EQ(cuMemAddressReserve(&address, std::size_t{2} << 30, 0, 0, 0), kSuccess);
    EXPECT_EQ(cuMemAddressReserve(&address, std::size_t{100} << 30, 0, 0, 0), kOutOfMemory);
  });
}

// A program whose machine cannot be made ends with exit code 3 at its first call, and these are the lines that it got.
class RefusedProgramTest : public InHollowTest {
 protected:
  std::string LinesOf(const Lines& machine, const std::function<void()>& before = [] {}) {
    WriteMachine(machine);
    const std::string said = folder_.path() + "/said";
    const std::vector<int> codes = test::RunRanks(1, [&](int) {
      setenv("ASHLAR_HOLLOW_RUN", folder_.path().c_str(), 1);
      const int file = open(said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      ASSERT_EQ(dup2(file, STDERR_FILENO), STDERR_FILENO);
      before();
      Malloc(100);
    });
    EXPECT_EQ(codes, std::vector<int>{3});
    std::ifstream in(said);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
};

TEST_F(RefusedProgramTest, TooFewAddressesAreOneLine) {
  EXPECT_THAT(LinesOf({"total_bytes=10737418240"}, [] { LimitAddresses(100); }),
              testing::MatchesRegex(
                  "ashlar: the system gives no 256 GiB of addresses for 1 devices: [^\n]*; lift `ulimit -v`[^\n]*\n"));
}

TEST_F(RefusedProgramTest, WrongSettingsAreOneLine) {
  for (const std::string line : {"no_such=1", "devices=many", "devices=0", "devices=65", "lag_ns"}) {
    EXPECT_THAT(LinesOf({line}), testing::MatchesRegex("ashlar: [^\n]*\n")) << line;
  }
}

}  // namespace
}  // namespace ashlar::hollow::client
