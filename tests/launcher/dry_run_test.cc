// `ashlar dry-run` from the outside: what the program gets, what of it is kept, what is refused, what is left behind.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/launcher/launched_test.h"

namespace ashlar {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class DryRunCommandTest : public LaunchedTest {
 protected:
  // The run folder of the program whose output this is, which printed it in a line of its own.
  static void ExpectGone(const std::string& folder) {
    EXPECT_THAT(folder, StartsWith("/"));
    EXPECT_FALSE(std::filesystem::exists(folder)) << folder;
  }
};

TEST_F(DryRunCommandTest, TheProgramsOutputAndExitCodeAreItsOwn) {
  const Result fine = Run("dry-run -- sh -c 'echo $0 $1; echo problem >&2' 'a b' '--device'");
  EXPECT_EQ(fine.code, 0);
  EXPECT_EQ(fine.out, "a b --device\n");
  EXPECT_THAT(fine.error, AllOf(StartsWith("problem\n"), HasSubstr("DRY RUN"), HasSubstr("no process used a device")));
  EXPECT_EQ(Run("dry-run -- sh -c 'exit 7'").code, 7);
  const Result killed = Run("dry-run -- sh -c 'kill -9 $$'");
  EXPECT_EQ(killed.code, 137);
  EXPECT_THAT(killed.error, AllOf(HasSubstr("exit code 137: signal 9"),
                                  HasSubstr("not known: the program ended before its end, with signal 9 (SIGKILL)")));
  EXPECT_THAT(killed.error, HasSubstr("\nTRY FIRST      mend what ended the program"));
  const Result markdown = Run("dry-run --format markdown -- sh -c 'echo said; exit 7'");
  EXPECT_EQ(markdown.code, 7);
  EXPECT_THAT(markdown.out, AllOf(StartsWith("### Dry run: not known: "), HasSubstr("\n- exit code: 7\n")));
  EXPECT_EQ(markdown.error, "said\n") << "beside the answer";
  const Result input = Run("dry-run -- cat", "< " + Write("input", "from the user\n"));
  EXPECT_EQ(input.out, "from the user\n");
}

// As of SGLang, whose scheduler has the memory: a device's peak is the same for each process on it.
TEST_F(DryRunCommandTest, OfTheProcessesOnADeviceTheOneThatHoldsMostByItselfIsExplained) {
  constexpr std::uint64_t kOneGiB = std::uint64_t{1} << 30;
  std::string lines;
  for (const auto& [pid, bytes] : {std::pair("7", kOneGiB / 8), std::pair("8", kOneGiB)}) {
    lines += LeavingText(absl::StrCat("process-", pid, ".json"), Books(3 * kOneGiB)) +
             LeavingText(absl::StrCat("info-", pid, ".json"), Info(nullptr, bytes)) +
             Leaving(absl::StrCat("history-", pid, ".pickle"), OutOfMemorySnapshot());
  }
  EXPECT_THAT(Run("dry-run --capacity 16GiB -- " + Script("program", lines)).error,
              HasSubstr("explained below: process 8"));
}

// As time, torchrun and others take it: its words are its own from its name on.
TEST_F(DryRunCommandTest, AProgramNeedsNoDashesBeforeIt) {
  EXPECT_EQ(Run("dry-run sh -c 'echo $0 $1' 'a b' --device").out, "a b --device\n");
  EXPECT_EQ(Run("dry-run --device T4 sh -c 'echo $0 $1' -- --json").out, "-- --json\n");
  EXPECT_EQ(Run("dry-run sh -c 'exit 7'").code, 7);
  ExpectError(Run("dry-run /nowhere/p --device T4"), 127, {"/nowhere/p"});
}

TEST_F(DryRunCommandTest, ProgramsThatDoNotStartEndAsInAShell) {
  ExpectError(Run("dry-run -- no_such_program"), 127, {"no_such_program", "PATH"});
  ExpectError(Run("dry-run -- ./no/such/file"), 127, {"./no/such/file", "No such file"});
  ExpectError(Run("dry-run -- " + Write("plain", "text")), 126, {"plain", "Permission denied"});
  ExpectError(Run("dry-run -- " + folder_), 126, {"folder"});
}

TEST_F(DryRunCommandTest, TheMachineIsWrittenAsAsked) {
  const std::string cat = " -- sh -c 'cat $ASHLAR_HOLLOW_RUN/machine'";
  EXPECT_EQ(Run("dry-run" + cat).out, "total_bytes=8796093022208\ncontext_bytes=428867584\naddresses=driver\n");
  const std::string given =
      Run("dry-run --capacity 16GiB --context 500MiB --devices 4 --lag queries:6 --values "
          "random:7 --segment-addresses ascending --fail-call 3 --fail-request 4 --fail-after 1GiB" +
          cat)
          .out;
  EXPECT_EQ(given,
            "devices=4\ntotal_bytes=17179869184\ncontext_bytes=524288000\naddresses=ascending\nlag_queries=6\nvalues="
            "random:7\n"
            "fail_call=3\nfail_request=4\nfail_after=1073741824\n");
  EXPECT_THAT(Run("dry-run --device 'Tesla t4' --lag time:2000" + cat).out,
              AllOf(HasSubstr("name=Tesla T4\n"), HasSubstr("compute_major=7\ncompute_minor=5\nsm_count=40\n"),
                    HasSubstr("threads_per_sm=1024\nclock_khz=1590000\n"), HasSubstr("lag_ns=2000\n")));
  EXPECT_THAT(Run("dry-run --lag until-waited" + cat).out, HasSubstr("lag_ns=1000000000\n"));
  const std::string profile =
      Write("own", "# a card of mine\nname=Mine\ntotal_bytes=2GiB\n\nsm_count=9\naddresses=descending\n");
  const Result own = Run("dry-run --context 1MiB --profile " + profile + cat);
  EXPECT_EQ(own.out, "name=Mine\ntotal_bytes=2147483648\ncontext_bytes=1048576\nsm_count=9\naddresses=descending\n");
}

TEST_F(DryRunCommandTest, TheProgramGetsTheHollowDevice) {
  setenv("PYTHONPATH", "/mine", 1);
  const Result result =
      Run("dry-run --conf backend:native --history 12 --names 3s --skip-init --calls calls.%p --reproducible -- env");
  unsetenv("PYTHONPATH");
  const auto has = [&](const std::string& line) { EXPECT_THAT("\n" + result.out, HasSubstr("\n" + line + "\n")); };
  has("LD_PRELOAD=" + folder_ + "libashlar_hollow.so");
  has("LD_LIBRARY_PATH=" + folder_ + "shims");
  has("TRITON_LIBCUDA_PATH=" + folder_ + "shims");
  has("PYTHONPATH=" + folder_ + "python:/mine");
  for (const char* line : {"PYTORCH_CUDA_ALLOC_CONF=backend:native", "PYTORCH_ALLOC_CONF=backend:native",
                           "ASHLAR_HISTORY=12", "ASHLAR_NAMES=3s", "ASHLAR_SKIP_INIT=1", "ASHLAR_HOLLOW_CALLS=calls.%p",
                           "ASHLAR_REPRODUCIBLE=1", "PYTHONHASHSEED=0", "OMP_NUM_THREADS=1"}) {
    has(line);
  }
  const std::string plain = Run("dry-run -- env").out;
  for (const char* name : {"PYTORCH_ALLOC_CONF", "ASHLAR_HOLLOW_CALLS", "ASHLAR_SKIP_INIT", "PYTHONHASHSEED",
                           "ASHLAR_HISTORY=", "ASHLAR_NAMES="}) {
    EXPECT_THAT(plain, Not(HasSubstr(name)));
  }
}

TEST_F(DryRunCommandTest, LooksAreATimePeaksOrOff) {
  for (const char* command : {"dry-run", "record"}) {
    for (const char* given : {"soon", "-1s", "3600s", "3m", "''", "peak,peak", "off,peak", "peak,", "3s,4s"}) {
      const Result refused = Run(absl::StrCat(command, " --names ", given, " -- true"));
      EXPECT_EQ(refused.code, 2) << command << " " << given;
      EXPECT_THAT(refused.error, HasSubstr("--names")) << command << " " << given;
    }
    for (const char* given : {"off", "peak", "peak,3s", "0.5,peak"}) {
      EXPECT_THAT(Run(absl::StrCat(command, " --names ", given, " -- env")).out,
                  HasSubstr(absl::StrCat("\nASHLAR_NAMES=", given, "\n")));
    }
    EXPECT_THAT(Run(absl::StrCat(command, " --redact -- env")).out, HasSubstr("\nASHLAR_REDACT=1\n"));
    EXPECT_THAT(Run(absl::StrCat(command, " -- env")).out, Not(HasSubstr("ASHLAR_REDACT")));
  }
}

// ADDR_NO_RANDOMIZE is bit 0x0040000 of the personality.
TEST_F(DryRunCommandTest, ReproducibleTakesTheRandomAddressesAway) {
  EXPECT_EQ(Run("dry-run --reproducible -- cat /proc/self/personality").out.substr(3, 1), "4");
}

TEST_F(DryRunCommandTest, TheRunFolderIsGoneAfterwards) {
  ExpectGone(Run("dry-run -- sh -c 'printf %s $ASHLAR_HOLLOW_RUN; mkdir $ASHLAR_HOLLOW_RUN/more'").out);
  ExpectGone(Run("dry-run -- sh -c 'printf %s $ASHLAR_HOLLOW_RUN; kill -9 $$'").out);
}

// A signal to the command is the program's: it may end by it, or tidy up.
TEST_F(DryRunCommandTest, SignalsGoToTheProgram) {
  for (const char* signal : {"TERM", "INT", "HUP", "USR1"}) {
    const std::string script =
        Script("waits", "trap 'exit 9' " + std::string(signal) + "\nprintf %s $ASHLAR_HOLLOW_RUN\nkill -" + signal +
                            " $PPID\nwhile :; do sleep 0.05; done\n");
    const Result caught = Run("dry-run -- " + script);
    EXPECT_EQ(caught.code, 9) << signal << caught.error;
    ExpectGone(caught.out);
  }
  const Result ended = Run("dry-run -- sh -c 'printf %s $ASHLAR_HOLLOW_RUN; kill -TERM $PPID; sleep 5'");
  EXPECT_EQ(ended.code, 143);
  ExpectGone(ended.out);
}

// Made of a real program: its bytes say it all, nothing here is run.
class NotServedTest : public LaunchedTest {
 protected:
  std::string Program(const std::string& name, const std::string& bytes) const {
    const std::string path = Write(name, bytes);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  void ExpectRefused(const std::string& path, const std::string& why) const {
    ExpectError(Run("dry-run -- " + path), 3, {path, why});
  }
  const std::string shell_ = FileBytes("/bin/sh");
};

TEST_F(NotServedTest, OtherKindsOfProgramsAreNotStarted) {
  std::string other = shell_;
  other[4] = 1;  // EI_CLASS
  ExpectRefused(Program("small", other), "32-bit");
  other = shell_;
  other[18] = 8;  // e_machine: MIPS
  ExpectRefused(Program("foreign", other), "another processor");
  const std::string privileged = Program("privileged", shell_);
  std::filesystem::permissions(privileged, std::filesystem::perms::set_uid, std::filesystem::perm_options::add);
  ExpectRefused(privileged, "setuid");
}

TEST_F(NotServedTest, AStaticProgramIsNotStartedNorAScriptOfIt) {
  std::string other = shell_;
  const std::size_t headers = static_cast<std::uint8_t>(other[32]);  // e_phoff: small, in one byte
  for (std::size_t i = 0; i < static_cast<std::uint8_t>(other[56]); ++i) {
    if (other[headers + i * 56] == 3) other[headers + i * 56] = 4;  // PT_INTERP to PT_NOTE
  }
  const std::string linked = Program("linked", other);
  ExpectRefused(linked, "statically linked");
  ExpectRefused(Program("by_linked", "#!" + linked + " -x\n"), "its interpreter " + linked);
  ExpectRefused(Program("by_env", "#!/usr/bin/env A=b " + linked + "\n"), "its interpreter " + linked);
}

// Without symbols its functions are found by the names in its text, but for those that register kernels.
TEST_F(NotServedTest, ARuntimeOfItsOwnWithKernelsAndWithoutSymbolsIsNotServed) {
  const std::string own_runtime = shell_ + "/cudart" + ".shm.%s";
  EXPECT_EQ(Run("dry-run -- " + Program("no_kernels", own_runtime) + " -c 'exit 5'").code, 5);
  std::string with_kernels = own_runtime;
  const std::string section = ".init_array", kernels(".nv_fatbin\0", section.size());
  const std::size_t at = with_kernels.find(section);
  ASSERT_NE(at, std::string::npos);
  with_kernels.replace(at, section.size(), kernels);
  const std::string program = Program("own_runtime", with_kernels);
  ExpectRefused(program, "nvcc -cudart shared");
  EXPECT_EQ(Run("record -- " + program + " -c 'exit 5'").code, 5) << "a recorded one is not preloaded";
}

TEST_F(NotServedTest, AnIncompleteDeviceIsOneLine) {
  std::filesystem::remove(folder_ + "shims/libcuda.so.1");
  ExpectError(Run("dry-run -- true"), 3, {"shims/libcuda.so.1", "ASHLAR_HOLLOW_LIB"});
  setenv("ASHLAR_HOLLOW_LIB", (folder_ + "nowhere.so").c_str(), 1);
  ExpectError(Run("dry-run -- true"), 3, {"nowhere.so", "ashlar_hollow"});
}

TEST_F(DryRunCommandTest, NoFileMayGrowAtAll) {
  const std::string command = "bash -c \"ulimit -f 0; exec '" ASHLAR_PROGRAM "' dry-run -- echo started\" 2>&1";
  std::FILE* const pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string said(4096, ' ');
  said.resize(std::fread(said.data(), 1, said.size(), pipe));
  EXPECT_EQ(WEXITSTATUS(pclose(pipe)), 3);
  EXPECT_THAT(said, testing::AllOf(testing::StartsWith("ashlar: "), HasSubstr("File too large")));
}

TEST_F(DryRunCommandTest, WrongFlagsAreOneLine) {
  const auto refused = [&](const std::string& flags, const std::vector<std::string>& parts) {
    ExpectError(Run("dry-run " + flags + " -- true"), 2, parts);
  };
  refused("--device Z9", {"--device", "Z9", "A100-80GB"});
  refused("--capacity 16GB?", {"--capacity: "});
  refused("--capacity 0", {"--capacity: ", "between"});
  refused("--capacity 10TiB", {"--capacity: ", "8.00 TiB"});
  refused("--capacity 100MiB", {"--capacity: ", "CUDA context"});
  refused("--context many", {"--context: "});
  refused("--devices 0", {"--devices: 0"});
  refused("--devices 65", {"--devices: 65"});
  refused("--lag soon", {"--lag: 'soon'", "queries:6", "until-waited"});
  refused("--values random:x", {"--values: 'random:x'"});
  for (const std::string value : {"train.py", "train.py=3", "train.py:x=3", "train.py:0=3", ":7=3"}) {
    refused("--value " + value, {"--value: '" + value + "' is not FILE:LINE=VALUE, such as train.py:88=0.5"});
  }
  for (const std::string value : {"", "x", "0x1", "[1,]", "[1", "--3", "nano"}) {
    refused("--value train.py:8=" + value, {"--value train.py:8: '" + value + "' is neither a number, such as 0.5"});
  }
  refused("--fail-call 0", {"--fail-call"});
  refused("--fail-request 0", {"--fail-request"});
  refused("--fail-call -1", {"--fail-call", "-1 is negative"});
  refused("--fail-call 18446744073709551615", {"--fail-call", "18446744073709551615"});
  refused("--fail-call 18446744073709551616", {"--fail-call", "18446744073709551616 is too large"});
  refused("--fail-request=-3", {"--fail-request", "-3 is negative"});
  refused("--devices -1", {"--devices", "-1 is negative"});
  refused("--fail-after none", {"--fail-after"});
  refused("--fail-on leak", {"--fail-on: 'leak'", "--fail-on oom"});
  refused("--profile " + Write("bad", "name=x\nsize=3\n"), {"bad, line 2", "there is no key 'size'"});
  refused("--profile " + Write("worse", "sm_count=many\n"), {"worse, line 1", "sm_count: 'many'"});
  refused("--no-such-flag", {"--no-such-flag"});
  ExpectError(Run("dry-run --profile " + folder_ + "none -- true"), 3, {"--profile: ", "none"});
  ExpectError(Run("dry-run --device T4"), 2, {"dry-run", "--"});
}

}  // namespace
}  // namespace ashlar
