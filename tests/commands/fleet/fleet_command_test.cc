// `ashlar fleet` as a user runs it: the same answer from any number of processes, alone and under mpirun; files that
// are broken; a run that was killed and goes on; a launcher without its module.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/console/program_run.h"

namespace ashlar {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Small requests and a large one in between, more of them by rank.
std::string RankTrace(int rank) {
  std::string out;
  for (int i = 0; i < 20 + rank; ++i) absl::StrAppend(&out, "a ", i, " ", 3145728 + 1048576 * (i % 5), " 0\n");
  for (int i = 0; i < 20 + rank; i += 2) absl::StrAppend(&out, "f ", i, "\n");
  absl::StrAppend(&out, "a 1000 ", rank == 5 ? 900 : 40, "000000 0\n");
  return out;
}

class FleetTest : public CliTest {
 protected:
  FleetTest() {
    std::filesystem::create_directories(folder_ + "ranks");
    for (int rank = 0; rank < 12; ++rank) {
      Write(absl::StrCat("ranks/rank", rank, ".trace"), RankTrace(rank));
    }
  }

  std::string Fleet(const std::string& more = "") const {
    return absl::StrCat("fleet '", folder_, "ranks' --capacity 600MiB ", more);
  }
};

TEST_F(FleetTest, AnyNumberOfProcessesGivesTheSameAnswer) {
  const Result one = Run(Fleet("--jobs 1"));
  ASSERT_EQ(one.code, 0) << one.error;
  EXPECT_THAT(one.error, IsEmpty());
  EXPECT_THAT(one.out, HasSubstr("FLEET   12 files"));
  EXPECT_THAT(one.out, HasSubstr("1 of 12 ranks ran out of memory: rank 5"));
  const Result one_json = Run(Fleet("--json --jobs 1"));
  for (const char* jobs : {"--jobs 2", "--jobs 5", ""}) {
    EXPECT_EQ(Run(Fleet(jobs)).out, one.out) << jobs;
    EXPECT_EQ(Run(Fleet(std::string("--json ") + jobs)).out, one_json.out) << jobs;
  }
  const json answer = json::parse(one_json.out);
  EXPECT_EQ(answer["ranks"].size(), 12u);
  EXPECT_EQ(answer["failures"][0]["member"], 5);
  EXPECT_EQ(answer["heat"]["rows"].size(), 12u);
}

// One machine needs no remote shell, and Open MPI does not start where it finds none. What MPI keeps at its end is its
// own.
void SetUpMpi() {
  setenv("OMPI_MCA_plm_rsh_agent", "", 1);
  setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
}

TEST_F(FleetTest, UnderMpirunTheAnswerIsTheSame) {
  if (!std::filesystem::exists(ASHLAR_MPI_MODULE)) GTEST_SKIP() << "MPI is not installed: the module was not built";
  if (std::system("mpirun --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "mpirun is not installed";
  SetUpMpi();
  const Result alone = Run(Fleet("--json"));
  for (const int processes : {1, 2, 3}) {
    const std::string command =
        absl::StrCat("OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -n ", processes,
                     " --oversubscribe '", ASHLAR_PROGRAM, "' ", Fleet(), " --json-to '", folder_, "mpi.json' > '",
                     folder_, "mpi.txt' 2> '", folder_, "mpi.error'");
    ASSERT_EQ(std::system(command.c_str()), 0) << FileBytes(folder_ + "mpi.error");
    EXPECT_EQ(FileBytes(folder_ + "mpi.json"), alone.out) << processes;
    EXPECT_EQ(FileBytes(folder_ + "mpi.txt"), Run(Fleet()).out) << processes;
  }
}

TEST_F(FleetTest, ALauncherWithoutTheModuleIsOneLine) {
  setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
  setenv("ASHLAR_MPI_LIB", "/no/such/libashlar_mpi.so", 1);
  setenv("OMPI_COMM_WORLD_RANK", "0", 1);
  ExpectError(Run(Fleet()), 2, {"mpirun", "as 4 processes", "/no/such/libashlar_mpi.so", "--mpi off"});
  // Off: it runs alone all the same.
  EXPECT_EQ(Run(Fleet("--mpi off")).code, 0);
  setenv("OMPI_COMM_WORLD_RANK", "1", 1);
  const Result other = Run(Fleet());
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.error, IsEmpty());
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "ASHLAR_MPI_LIB", "OMPI_COMM_WORLD_RANK"}) unsetenv(name);
}

TEST_F(FleetTest, ALauncherThatMpiDoesNotJoinIsOneLine) {
  if (!std::filesystem::exists(ASHLAR_MPI_MODULE)) GTEST_SKIP() << "MPI is not installed: the module was not built";
  SetUpMpi();
  setenv("PMI_SIZE", "3", 1);
  for (const char* rank : {"0", "1"}) {
    setenv("PMI_RANK", rank, 1);
    const Result result = Run(Fleet());
    EXPECT_EQ(result.code, 2) << result.error;
    EXPECT_THAT(result.out, IsEmpty());
    const bool speaks = *rank == '0';
    EXPECT_EQ(absl::StrContains(result.error, "started 3 processes, and MPI joined 1"), speaks);
    EXPECT_EQ(result.error.empty(), !speaks);
  }
  unsetenv("PMI_SIZE");
  unsetenv("PMI_RANK");
}

TEST_F(FleetTest, ANameThatIsNoUtf8IsRead) {
  std::filesystem::rename(folder_ + "ranks/rank3.trace", folder_ + "ranks/\xff_rank3.trace");
  const std::string results = "--json --results '" + folder_ + "done' ";
  const json answer = json::parse(Run(Fleet(results)).out);
  EXPECT_THAT(answer["broken"], IsEmpty());
  EXPECT_THAT(Run(Fleet(results)).error, HasSubstr("12 of 12 files were done before"));
}

TEST_F(FleetTest, WhatCouldNotBeReadIsReadAgain) {
  const std::string results = "--json --results '" + folder_ + "done' ";
  const std::string link = folder_ + "rank99.trace";
  std::filesystem::create_symlink(folder_ + "later.trace", link);
  // The pattern stands for a link to nothing: its stamp is all zeros, before and after.
  EXPECT_EQ(json::parse(Run(absl::StrCat("fleet '", folder_, "ran*' ", results)).out)["broken"].size(), 1u);
  const Result again = Run(absl::StrCat("fleet '", folder_, "ran*' ", results));
  EXPECT_THAT(again.error, HasSubstr("12 of 13 files were done before"));
}

TEST_F(FleetTest, NewDeviceCostsInTheSameFileTakeNoResults) {
  const std::string costs = Write("costs.txt", "segment_alloc_ns 1000\n");
  const std::string more = "--results '" + folder_ + "done' --device-costs '" + costs + "'";
  EXPECT_EQ(Run(Fleet(more)).code, 0);
  EXPECT_THAT(Run(Fleet(more)).error, HasSubstr("12 of 12 files were done before"));
  Write("costs.txt", "segment_alloc_ns 2000\n");
  EXPECT_THAT(Run(Fleet(more)).error, IsEmpty());
}

TEST_F(FleetTest, OfASnapshotTheLastEventsAreHeld) {
  const std::string line = "fleet '" ASHLAR_SOURCE_DIR "/docs/examples/training_oom.pickle' --json --max-events 1000";
  EXPECT_EQ(json::parse(Run(line).out)["ranks"][0]["events"], 1000);
}

TEST_F(FleetTest, APageThatCannotBeWrittenCostsNoAnswer) {
  const Result result = Run(Fleet("--report /no/such/folder/page.html --json-to '" + folder_ + "a.json'"));
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.error, HasSubstr("--report"));
  EXPECT_THAT(result.out, HasSubstr("FLEET   12 files"));
  EXPECT_THAT(FileBytes(folder_ + "a.json"), HasSubstr("\"answer\""));
}

TEST_F(FleetTest, ABrokenFileIsNamedAndNotFatal) {
  Write("ranks/rank3.trace", "a 1 512 0\nq 7\n");
  Write("ranks/rank4.trace", "");
  const Result result = Run(Fleet());
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("2 files could not be used"));
  EXPECT_THAT(result.out, testing::ContainsRegex("rank3.trace:[ \n]+trace[ \n]+2:1:[ \n]+unknown"));  // lines wrap
  const json answer = json::parse(Run(Fleet("--json")).out);
  EXPECT_THAT(answer["broken"], ElementsAre(3, 4));
  EXPECT_EQ(answer["ranks"][3]["events"], nullptr);
  EXPECT_THAT(answer["ranks"][3]["error"].get<std::string>(), HasSubstr("trace 2:1: unknown request"));
}

TEST_F(FleetTest, OnlyBrokenFilesAreAnError) {
  Write("note.pickle", "no pickle");
  EXPECT_EQ(Run("fleet '" + folder_ + "note.pickle'").code, 3);
}

TEST_F(FleetTest, WrongLinesAreUsageErrors) {
  ExpectError(Run("fleet"), 2, {"files"});
  ExpectError(Run("fleet '" + folder_ + "none'"), 3, {"none: no such file or folder"});
  ExpectError(Run(Fleet("--jobs 0")), 2, {"--jobs"});
  ExpectError(Run(Fleet("--confs 'max_split_size_mb:1'")), 2, {"--confs", "max_split_size_mb"});
  ExpectError(Run(Fleet("--mpi maybe")), 2, {"--mpi"});
}

TEST_F(FleetTest, GivenSettingsAreTried) {
  const json answer = json::parse(Run(Fleet("--json --confs 'expandable_segments:True;max_split_size_mb:20'")).out);
  std::vector<std::string> confs;
  for (const json& row : answer["tried"]["rows"]) confs.push_back(row["conf"]);
  EXPECT_THAT(confs, testing::UnorderedElementsAre("", "expandable_segments:True", "max_split_size_mb:20"));
}

TEST_F(FleetTest, ResultsAreTakenFromTheFolderWhereNothingChanged) {
  const std::string results = "--results '" + folder_ + "done' ";
  const Result first = Run(Fleet(results + "--jobs 2"));
  EXPECT_THAT(first.error, IsEmpty());
  const Result again = Run(Fleet(results + "--jobs 1"));
  EXPECT_EQ(again.out, first.out);
  EXPECT_THAT(again.error, HasSubstr("12 of 12 files were done before"));
  // A file that changed is read again, and other settings take nothing.
  Write("ranks/rank2.trace", RankTrace(6));
  const Result changed = Run(Fleet(results));
  EXPECT_THAT(changed.error, HasSubstr("11 of 12 files were done before"));
  EXPECT_EQ(changed.out, Run(Fleet()).out);
  EXPECT_THAT(Run(Fleet(results + "--compat torch-2.6")).error, IsEmpty());
}

// The last file is a pipe that gives nothing: the run is killed while it waits there.
TEST_F(FleetTest, ARunThatWasKilledGoesOn) {
  const std::string pipe = folder_ + "ranks/rank11.trace";
  std::filesystem::remove(pipe);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string results = folder_ + "done";
  const std::string pattern = folder_ + "ranks/*";
  const pid_t child = fork();
  if (child == 0) {
    execl(ASHLAR_PROGRAM, "ashlar", "fleet", pattern.c_str(), "--capacity", "600MiB", "--jobs", "2", "--results",
          results.c_str(), nullptr);
    _exit(127);
  }
  const auto count = [&](const std::string& what) {
    std::size_t out = 0;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(results, ignored)) {
      const std::string text = FileBytes(entry.path());
      for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++out;
    }
    return out;
  };
  for (int i = 0; i < 600 && (count("\"entry\":\"done\"") < 11 || count("\"entry\":\"begin\"") < 12); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  ASSERT_EQ(count("\"entry\":\"done\""), 11u);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  std::filesystem::remove(pipe);
  Write("ranks/rank11.trace", RankTrace(11));
  const Result resumed = Run(absl::StrCat("fleet '", pattern, "' --capacity 600MiB --results '", results, "'"));
  EXPECT_EQ(resumed.code, 0);
  EXPECT_THAT(resumed.error, HasSubstr("was lost while it read " + std::filesystem::canonical(pipe).string()));
  EXPECT_THAT(resumed.error, HasSubstr("11 of 12 files were done before"));
  EXPECT_EQ(resumed.out, Run(absl::StrCat("fleet '", pattern, "' --capacity 600MiB")).out);
}

}  // namespace
}  // namespace ashlar
