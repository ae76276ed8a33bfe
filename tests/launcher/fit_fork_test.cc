// ashlar fit whose runs are forked from a process that has imported what they import. The program is Python's own, its
// libraries are two small ones, and each run says whether it imported them itself.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/launcher/launched_test.h"

namespace ashlar {
namespace {

using nlohmann::json;

constexpr const char* kTorch = R"(
import types
def get_device_properties(device=None):
    cuda._lazy_init()
    return types.SimpleNamespace(major=7, minor=5)
def get_device_capability(device=None):
    properties = cuda.get_device_properties(device)
    return properties.major, properties.minor
cuda = types.SimpleNamespace(is_initialized=lambda: False, _lazy_init=lambda: None, _get_device_index=lambda device, optional: device,
                             get_device_properties=get_device_properties, get_device_capability=get_device_capability)
defined = []
class _C:
    _cuda_getDeviceCount = staticmethod(lambda: 1)
)";

constexpr const char* kSlow = R"(
import os
import torch
from os import mkdir
pid = os.getpid()
)";

// A run of 20 GiB that fails on the card. A change is never made: `how` is why.
constexpr const char* kProgram = R"(
import json, os, signal, sys
import torch
import slow
libraries = []
how = "alone" if slow.pid == os.getpid() else "forked"
requests = [[1, 100]] * 6
names = os.environ["ASHLAR_FIT"]
is_reached = slow.mkdir is os.mkdir
%s
is_on_card = "ASHLAR_APART" in os.environ and names == "watch" and "ASHLAR_FIT_STOP" not in os.environ
def leave(name, content):
    with open(os.path.join(os.environ["ASHLAR_RECORD"], name), "w") as out:
        json.dump(content, out)
books, info, facts = json.loads(%s)
books["devices"][0]["out_of_memory"] = info["devices"][0]["num_ooms"] = int(is_on_card)
facts["requests"] = requests
facts["changes"] = [dict(one, applies=names == "watch", why_not="" if names == "watch" else how) for one in facts["changes"]]
from ashlar_hollow import imported
imported.look()
facts["imported"] = dict(imported.told(), modules=["torch", "slow"] + libraries, seconds=100.0)
leave("process-7.json", books)
leave("info-7.json", info)
leave("fit-7.json", facts)
sys.exit(int(is_on_card))
)";

class FitForkTest : public LaunchedTest {
 protected:
  void SetUp() override {
    constexpr long kCreateRuleset = 444;  // asked for its version
    if (syscall(kCreateRuleset, nullptr, 0, 1) < 1)
      GTEST_SKIP() << "this Linux keeps no program from writing (Landlock)";
    unsetenv("ASHLAR_HOLLOW_LIB");  // the hollow device itself
    std::filesystem::create_directories(folder_ + "libraries/torch");
    setenv("PYTHONPATH", (folder_ + "libraries").c_str(), 1);
    Write("libraries/torch/__init__.py", kTorch);
    Write("libraries/slow.py", kSlow);
  }
  void TearDown() override { unsetenv("PYTHONPATH"); }

  // Why a change was not made, in a program that does `lines` as well.
  std::string How(const std::string& lines) const {
    constexpr std::uint64_t kPeak = std::uint64_t{20} << 30;
    const json change = {{"name", "one"}, {"title", "one"},  {"group", ""},   {"price", 1},     {"costs", "time"},
                         {"alters", ""},  {"applies", true}, {"why_not", ""}, {"where", "a:1"}, {"lines", {"one"}}};
    const json facts = {{"steps", 6},
                        {"failed_step", nullptr},
                        {"phases", {{{"what", "training"}, {"steps", 0}}}},
                        {"peaks", {{{"steps", 2}, {"allocated", kPeak}, {"reserved", kPeak}}}},
                        {"changes", json::array({change})}};
    const std::string left = json::array({Books(kPeak), Info(nullptr, kPeak), facts}).dump();
    std::string text = kProgram;
    text.replace(text.find("%s"), 2, lines);
    text.replace(text.find("%s"), 2, absl::StrCat("r'''", left, "'''"));
    const Result result = Run("fit --device T4 --jobs 1 --only one --json -- python3 " + Write("program.py", text));
    const json answer = json::parse(result.out, nullptr, false);
    if (answer.is_discarded() || answer["rows"].empty()) return result.error;
    return answer["rows"][0]["why_not"];
  }
};

TEST_F(FitForkTest, RunsBeginWhereTheirImportsEnd) {
  EXPECT_EQ(How(""), "one was not made: forked");
  EXPECT_EQ(How("how += ', ' + os.environ['ASHLAR_FIT']"), "one was not made: forked, one");
}

// os.mkdir goes into the run's folder (ashlar_hollow/apart.py) for libraries that took it by name before.
TEST_F(FitForkTest, WhatHooksPutInReachesWhatWasImportedBefore) {
  EXPECT_EQ(How("how += ', reached' if is_reached and hasattr(os.mkdir, '__wrapped__') else ''"),
            "one was not made: forked, reached");
}

// What it does once in a process, as PyTorch's operators are defined, it does in each fork.
TEST_F(FitForkTest, AnImportThatUsesADeviceIsTheForks) {
  std::filesystem::create_directories(folder_ + "libraries/defines");
  Write("libraries/defines/once.py", "import torch\nassert not torch.defined\ntorch.defined.append(1)\n");
  Write("libraries/defines/__init__.py",
        "import os, torch\nfrom . import once\ntorch.cuda._lazy_init()\npid = os.getpid()\n");
  const std::string use =
      "import defines; libraries = ['defines.once', 'defines']\n"
      "how += ', its own' if defines.pid == os.getpid() else ', of before'";
  EXPECT_EQ(How(use), "one was not made: forked, its own");
}

TEST_F(FitForkTest, AnImportThatAsksForTheCapabilityIsMadeOnce) {
  Write("libraries/asks.py", "import os, torch\npid, kind = os.getpid(), torch.cuda.get_device_capability(0)\n");
  EXPECT_EQ(
      How("import asks; libraries = ['asks']; how += ', %d.%d' % asks.kind + ', its own' * (asks.pid == os.getpid())"),
      "one was not made: forked, 7.5");
}

TEST_F(FitForkTest, ForksAreNotUsedWhereNoneEndsAsTheProgramDoes) {
  EXPECT_EQ(How("if how == 'forked': sys.exit(3)"), "one was not made: alone");
}

TEST_F(FitForkTest, ForksAreNotUsedWhereTheyAskForOtherMemory) {
  EXPECT_EQ(How("if how == 'forked': requests = [[1, 101]] * 6"), "one was not made: alone");
}

TEST_F(FitForkTest, AForkThatFailsIsRunByItself) {
  for (const char* end :
       {"sys.exit(3)", "os.kill(os.getpid(), signal.SIGKILL)", "os.kill(os.getppid(), signal.SIGKILL)"}) {
    EXPECT_EQ(How(absl::StrCat("if how == 'forked' and names == 'one': ", end)), "one was not made: alone") << end;
  }
}

TEST_F(FitForkTest, LibrariesThatCannotBeImportedBeforeAreImportedByEachRun) {
  for (const char* line : {"import torch; torch.cuda._lazy_init()", "raise ImportError('not now')", "os._exit(1)",
                           "os.kill(os.getpid(), 9)"}) {
    Write("libraries/slow.py",
          absl::StrCat(kSlow, "import sys\nif not hasattr(sys.modules['__main__'], '__file__'):\n    ", line, "\n"));
    EXPECT_EQ(How(""), "one was not made: alone") << line;
  }
}

}  // namespace
}  // namespace ashlar
