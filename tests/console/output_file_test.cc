#include "console/output_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "console/output_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/console/program_run.h"

namespace ashlar::cli {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class OutputFileTest : public CliTest {
 protected:
  std::vector<std::string> Names() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder_)) out.push_back(entry.path().filename());
    std::sort(out.begin(), out.end());
    return out;
  }

  absl::Status WriteAll(const std::string& name, const std::string& bytes) const {
    auto file = OutputFile::Open(folder_ + name);
    if (!file.ok()) return file.status();
    for (const char c : bytes) (*file)->Append(std::string(1, c));
    return (*file)->Commit();
  }

  // What `in_child` does in a process of its own; how that ended.
  template <typename Function>
  static int StatusOf(Function in_child) {
    const pid_t child = fork();
    if (child == 0) {
      in_child();
      _exit(9);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  }
};

TEST_F(OutputFileTest, TheOldFileStaysUntilTheNewOneIsWhole) {
  const std::string path = Write("a.txt", "old");
  {
    auto file = OutputFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    (*file)->Append("ne");
    EXPECT_EQ(FileBytes(path), "old");
    (*file)->Append("w");
    EXPECT_TRUE((*file)->Commit().ok());
  }
  EXPECT_EQ(FileBytes(path), "new");
  { (*OutputFile::Open(path))->Append("given up"); }
  EXPECT_EQ(FileBytes(path), "new");
  EXPECT_THAT(Names(), ElementsAre("a.txt"));
}

TEST_F(OutputFileTest, RightsAndLinksStay) {
  const std::string path = Write("a.txt", "old");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("a.txt", folder_ + "link");
  EXPECT_TRUE(WriteAll("link", "new").ok());
  EXPECT_TRUE(fs::is_symlink(folder_ + "link"));
  EXPECT_EQ(FileBytes(path), "new");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  const mode_t mask = umask(027);
  EXPECT_TRUE(WriteAll("b.txt", "").ok());
  umask(mask);
  EXPECT_EQ(static_cast<int>(fs::status(folder_ + "b.txt").permissions()), 0640);
}

TEST_F(OutputFileTest, ALinkToNothingLeadsToTheNewFile) {
  fs::create_directory(folder_ + "there");
  fs::create_symlink("there/a.txt", folder_ + "first");
  fs::create_symlink(folder_ + "first", folder_ + "link");
  EXPECT_TRUE(WriteAll("link", "new").ok());
  EXPECT_TRUE(fs::is_symlink(folder_ + "link") && fs::is_symlink(folder_ + "first"));
  EXPECT_EQ(FileBytes(folder_ + "there/a.txt"), "new");
  fs::create_symlink("circle", folder_ + "circle");
  EXPECT_FALSE(WriteAll("circle", "new").ok());
  EXPECT_TRUE(fs::is_symlink(folder_ + "circle"));
}

TEST_F(OutputFileTest, AnInputIsNoOutput) {
  const std::string path = Write("a.txt", "old"), other = Write("b.txt", "old");
  fs::create_symlink("a.txt", folder_ + "link");
  fs::create_hard_link(path, folder_ + "name");
  for (const char* name : {"a.txt", "link", "name", "./a.txt"}) {
    const absl::Status status = NoInputIsWritten({other, path}, {{"-o", ""}, {"-o", folder_ + name}});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(status.message(), HasSubstr("-o: " + folder_ + name + " is an input too"));
  }
  EXPECT_TRUE(NoInputIsWritten({path, "/dev/null", "-"}, {{"-o", other}, {"-o", "-"}, {"-o", "/dev/null"}}).ok());
}

TEST_F(OutputFileTest, EndingSignalsTakeTheUnfinishedFileAway) {
  const std::string path = Write("a.txt", "old");
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const int status = StatusOf([&] {
      auto file = OutputFile::Open(path);
      auto other = PendingName::Make(folder_ + "b.db");
      (*file)->Append(std::string(1 << 20, 'x'));
      std::raise(signal);
    });
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    EXPECT_EQ(FileBytes(path), "old");
    EXPECT_THAT(Names(), ElementsAre("a.txt"));
  }
}

// A limit on the size of files stands for a full disk: a write fails in the middle.
TEST_F(OutputFileTest, AFullDiskLeavesTheOldFile) {
  const std::string path = Write("a.txt", "old");
  const int status = StatusOf([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    const absl::Status written = WriteAll("a.txt", std::string(10'000, 'x'));
    _exit(written.ok() ? 1 : std::string(written.message()).find("a.txt: File too large") == std::string::npos ? 2 : 0);
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(FileBytes(path), "old");
  EXPECT_THAT(Names(), ElementsAre("a.txt"));
}

TEST_F(OutputFileTest, APipeThatNobodyReadsIsRefused) {
  const std::string path = folder_ + "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(WriteAll("pipe", "x").message(), HasSubstr("pipe: nobody reads this pipe"));
  const int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  EXPECT_TRUE(WriteAll("pipe", "read").ok());
  std::string bytes(9, '\0');
  EXPECT_EQ(read(reader, bytes.data(), bytes.size()), 4);
  EXPECT_EQ(bytes.substr(0, 4), "read");
  close(reader);
  const Result page = Run("explain --report '" + path + "' " ASHLAR_SOURCE_DIR "/docs/examples/oom_message.txt");
  EXPECT_EQ(page.code, 3);
  EXPECT_EQ(page.error, "ashlar: --report: cannot write " + path + ": nobody reads this pipe\n");
}

// In a folder where others may put links, the new file's name is used once.
TEST_F(OutputFileTest, ALinkInThePlaceOfTheNewFileLeadsNowhere) {
  const std::string path = Write("a.txt", "old"), other = Write("other", "not ours");
  auto file = OutputFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const std::string beside = Names().front();
  fs::remove(folder_ + beside);
  fs::create_symlink("other", folder_ + beside);
  (*file)->Append("new");
  EXPECT_THAT((*file)->Commit().message(), HasSubstr("a.txt: another file took the place"));
  EXPECT_EQ(FileBytes(path), "old");
  EXPECT_EQ(FileBytes(other), "not ours");
}

TEST_F(OutputFileTest, WhatIsNoRegularFileIsWrittenTo) {
  auto file = OutputFile::Open("/dev/null");
  (*file)->Append("gone");
  EXPECT_TRUE((*file)->Commit().ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  file = OutputFile::Open("/dev/full");
  (*file)->Append("more than nothing");
  EXPECT_THAT((*file)->Commit().message(), HasSubstr("cannot write /dev/full: No space left"));
  EXPECT_THAT(OutputFile::Open(folder_ + "no/a.txt").status().message(), HasSubstr("No such file or directory"));
}

TEST_F(OutputFileTest, LongNamesHaveRoomBeside) {
  const std::string name(255, 'n');
  EXPECT_TRUE(WriteAll(name, "long").ok());
  EXPECT_EQ(FileBytes(folder_ + name), "long");
}

}  // namespace
}  // namespace ashlar::cli
