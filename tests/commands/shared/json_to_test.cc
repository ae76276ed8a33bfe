// --json-to: the same JSON in a file, and the text as without it.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/console/program_run.h"

namespace ashlar {
namespace {

using JsonToTest = CliTest;

TEST_F(JsonToTest, TheJsonGoesToAFileAsWell) {
  const std::string trace = Write("trace.txt", "a 1 1048577 0\nf 1\na 2 1048577 0\na 3 512 7\n");
  const std::string file = folder_ + "answer.json";
  for (const std::string& command : {"explain " + trace, "sweep --confs default " + trace,
                                     std::string("estimate --parameters 7000"), "explain " + trace + " " + trace}) {
    SCOPED_TRACE(command);
    const Result both = Run(command + " --json-to " + file);
    EXPECT_EQ(both.code, 0);
    EXPECT_EQ(both.out, Run(command).out);
    EXPECT_EQ(FileBytes(file), Run(command + " --json").out);
    ExpectError(Run(command + " --json-to " + folder_ + "no/such/file", "> /dev/null"), 3,
                {"--json-to", "no/such/file"});
  }
}

}  // namespace
}  // namespace ashlar
