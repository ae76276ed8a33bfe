#include "commands/fleet/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ashlar::fleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FilesTest : public testing::Test {
 protected:
  FilesTest() {
    folder_ =
        testing::TempDir() + "ashlar_files_" + testing::UnitTest::GetInstance()->current_test_info()->name() + "/";
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "b");
    for (const char* name : {"rank10.pickle", "rank9.pickle.gz", "b/rank2.ashlar", "config.json", "run.log"}) {
      std::ofstream(folder_ + name) << "1234";
    }
  }
  ~FilesTest() override { std::filesystem::remove_all(folder_); }

  std::vector<std::string> Names(const std::vector<std::string>& inputs) const {
    const absl::StatusOr<FileListing> listing = ListFiles(inputs);
    EXPECT_TRUE(listing.ok()) << listing.status();
    std::vector<std::string> out;
    for (const FileStamp& file : listing->files) out.push_back(file.path.substr(folder_.size()));
    return out;
  }

  std::string folder_;
};

TEST_F(FilesTest, AFolderWithItsSubfolders) {
  EXPECT_THAT(Names({folder_}), ElementsAre("b/rank2.ashlar", "rank9.pickle.gz", "rank10.pickle"));
  const FileListing listing = *ListFiles({folder_});
  EXPECT_EQ(listing.left_out, 2u);
  EXPECT_EQ(listing.files[0].bytes, 4u);
  EXPECT_GT(listing.files[0].mtime_ns, 0);
}

TEST_F(FilesTest, PatternsAndNamesEachFileOnce) {
  EXPECT_THAT(Names({folder_ + "rank*", folder_ + "rank10.pickle", folder_ + "run.log"}),
              ElementsAre("rank9.pickle.gz", "rank10.pickle", "run.log"));
}

TEST_F(FilesTest, ALinkBesideItsFileIsNoSecondOne) {
  std::filesystem::create_symlink("rank9.pickle.gz", folder_ + "a_rank1.pickle.gz");
  std::filesystem::create_symlink("rank9.pickle.gz", folder_ + "z_rank1.pickle.gz");
  const std::vector<std::string> expected = {"b/rank2.ashlar", "rank9.pickle.gz", "rank10.pickle"};
  EXPECT_EQ(Names({folder_}), expected);
  EXPECT_EQ(Names({folder_ + "a_rank1.pickle.gz", folder_}), expected);
  EXPECT_THAT(Names({folder_ + "z_rank1.pickle.gz", folder_ + "a_rank1.pickle.gz"}), ElementsAre("a_rank1.pickle.gz"));
}

TEST_F(FilesTest, WhatCannotBeReadInAFolderIsNamedAndNotFatal) {
  std::filesystem::create_symlink("nothing", folder_ + "rank3.pickle");
  std::filesystem::create_directory_symlink("b", folder_ + "c");
  ASSERT_EQ(mkfifo((folder_ + "rank4.pickle").c_str(), 0600), 0);
  std::filesystem::permissions(folder_ + "b", std::filesystem::perms::none);
  // Root reads all: somebody else looks.
  if (geteuid() == 0) {
    ASSERT_EQ(seteuid(65534), 0);
  }
  const absl::StatusOr<FileListing> listing = ListFiles({folder_});
  if (getuid() == 0) {
    ASSERT_EQ(seteuid(0), 0);
  }
  std::filesystem::permissions(folder_ + "b", std::filesystem::perms::owner_all);
  ASSERT_TRUE(listing.ok()) << listing.status();
  EXPECT_EQ(listing->files.size(), 2u);
  EXPECT_THAT(listing->skipped,
              ElementsAre(HasSubstr("b: Permission denied"), HasSubstr("c: a link to a folder"),
                          HasSubstr("rank3.pickle: a link to nothing"), HasSubstr("rank4.pickle: no regular file")));
}

TEST_F(FilesTest, WhatStandsForNothingIsNamed) {
  EXPECT_THAT(std::string(ListFiles({folder_ + "none"}).status().message()), HasSubstr("none: no such file or folder"));
  EXPECT_THAT(std::string(ListFiles({folder_ + "x*"}).status().message()), HasSubstr("x*: matches no file"));
  std::filesystem::create_directories(folder_ + "empty");
  EXPECT_THAT(std::string(ListFiles({folder_ + "empty"}).status().message()),
              HasSubstr("no file in it ends in .pickle"));
}

}  // namespace
}  // namespace ashlar::fleet
