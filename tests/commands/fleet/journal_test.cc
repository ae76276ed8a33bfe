#include "commands/fleet/journal.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ashlar::fleet {
namespace {

class JournalTest : public testing::Test {
 protected:
  JournalTest() {
    folder_ =
        testing::TempDir() + "ashlar_journal_" + testing::UnitTest::GetInstance()->current_test_info()->name() + "/";
    std::filesystem::remove_all(folder_);
  }
  ~JournalTest() override { std::filesystem::remove_all(folder_); }

  FleetJournal Open(std::size_t process, const std::string& settings = "s") const {
    absl::StatusOr<FleetJournal> out = FleetJournal::Open(folder_, process, settings);
    EXPECT_TRUE(out.ok()) << out.status();
    return *std::move(out);
  }

  JournalEntries Read(const std::string& settings = "s") const {
    const absl::StatusOr<JournalEntries> out = ReadJournals(folder_, settings);
    EXPECT_TRUE(out.ok()) << out.status();
    return *out;
  }

  void Append(const std::string& journal, const std::string& text) const {
    std::ofstream(folder_ + journal, std::ios::app) << text;
  }

  std::string folder_;
};

const FileStamp kFile{"/no/such/rank0.pickle", 100, 5};
const FileStamp kOther{"/no/such/rank1.pickle", 200, 6};

TEST_F(JournalTest, ResultsOfAllProcessesAreFound) {
  ASSERT_TRUE(Open(0).Begin(kFile).ok());
  ASSERT_TRUE(Open(0).Done(kFile, "{\"a\":1}").ok());
  ASSERT_TRUE(Open(7).Done(kOther, "[2]").ok());
  const JournalEntries entries = Read();
  EXPECT_EQ(entries.done.size(), 2u);
  EXPECT_EQ(entries.done.at(kFile), "{\"a\":1}");
  EXPECT_EQ(entries.done.at(kOther), "[2]");
  EXPECT_THAT(entries.held, testing::IsEmpty());
}

TEST_F(JournalTest, WhatWasBegunAndNeverDoneIsHeld) {
  ASSERT_TRUE(Open(3).Begin(kFile).ok());
  const JournalEntries entries = Read();
  ASSERT_EQ(entries.held.size(), 1u);
  EXPECT_EQ(entries.held[0].path, kFile.path);
  EXPECT_EQ(entries.held[0].journal, "process-3");
  ASSERT_TRUE(Open(1).Done(kFile, "1").ok());
  EXPECT_THAT(Read().held, testing::IsEmpty());
}

TEST_F(JournalTest, ALineThatWasCutOffCostsItselfAlone) {
  ASSERT_TRUE(Open(0).Done(kOther, "1").ok());
  Append("process-0.jsonl", R"({"entry":"done","file":"/no/such/rank0.pickle","bytes":100,"mti)");
  ASSERT_TRUE(Open(0).Done(kFile, "2").ok());
  const JournalEntries entries = Read();
  EXPECT_EQ(entries.done.at(kOther), "1");
  EXPECT_EQ(entries.done.at(kFile), "2");
}

TEST_F(JournalTest, OtherSettingsAndChangedFilesAreNotTaken) {
  ASSERT_TRUE(Open(0).Done(kFile, "1").ok());
  EXPECT_THAT(Read("other").done, testing::IsEmpty());
  const JournalEntries entries = Read();
  FileStamp longer = kFile;
  longer.bytes = 101;
  FileStamp later = kFile;
  later.mtime_ns = 6;
  EXPECT_EQ(entries.done.count(longer), 0u);
  EXPECT_EQ(entries.done.count(later), 0u);
}

TEST_F(JournalTest, ANameThatIsNoUtf8IsFoundAgain) {
  const FileStamp odd{"/no/such/rank\xff.pickle", 100, 5};
  const FileStamp other{"/no/such/rank\xfe.pickle", 100, 5};
  ASSERT_TRUE(Open(0).Done(odd, "1").ok());
  ASSERT_TRUE(Open(0).Done(other, "2").ok());
  const JournalEntries entries = Read();
  EXPECT_EQ(entries.done.at(odd), "1");
  EXPECT_EQ(entries.done.at(other), "2");
}

TEST_F(JournalTest, NoFolderIsNoResult) { EXPECT_THAT(Read().done, testing::IsEmpty()); }

TEST_F(JournalTest, AFolderThatCannotBeMadeIsNamed) {
  const absl::StatusOr<FleetJournal> journal = FleetJournal::Open("/proc/none", 0, "s");
  ASSERT_FALSE(journal.ok());
  EXPECT_THAT(std::string(journal.status().message()), testing::HasSubstr("/proc/none/process-0.jsonl"));
}

}  // namespace
}  // namespace ashlar::fleet
