// `ashlar page`: finds the analyzer's page, copies it, shows it.
#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/console/program_run.h"

namespace ashlar {
namespace {

class PageCommandTest : public CliTest {
 protected:
  PageCommandTest() : page_(Write("page.html", "<title>the page</title>")) { setenv("ASHLAR_PAGE", page_.c_str(), 1); }
  ~PageCommandTest() override { unsetenv("ASHLAR_PAGE"); }

  std::string page_;
};

TEST_F(PageCommandTest, SaysWhereThePageLies) { EXPECT_EQ(Run("page").out, page_ + "\n"); }

TEST_F(PageCommandTest, CopiesIt) {
  EXPECT_EQ(Run("page -o '" + folder_ + "copy.html'").out, folder_ + "copy.html\n");
  EXPECT_EQ(FileBytes(folder_ + "copy.html"), FileBytes(page_));
  EXPECT_EQ(Run("page -o -").out, FileBytes(page_));
}

TEST_F(PageCommandTest, OpensIt) {
  const std::string browser = Write("browser", "#!/bin/sh\necho \"$1\" > '" + folder_ + "shown'\n");
  const std::string command = "chmod +x '" + browser + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  setenv("BROWSER", browser.c_str(), 1);
  const Result result = Run("page --open");
  unsetenv("BROWSER");
  EXPECT_EQ(result.error, "page opened: " + page_ + "\n");
  for (int i = 0; i < 100 && FileBytes(folder_ + "shown").empty(); ++i) ASSERT_EQ(std::system("sleep 0.1"), 0);
  EXPECT_EQ(FileBytes(folder_ + "shown"), page_ + "\n");
}

TEST_F(PageCommandTest, WhereItIsMissingOneLineSaysWhatToInstall) {
  setenv("ASHLAR_PAGE", (folder_ + "none.html").c_str(), 1);
  ExpectError(Run("page --open"), 3, {"none.html", "pip install ashlar-gpu", "tools/web"});
}

}  // namespace
}  // namespace ashlar
