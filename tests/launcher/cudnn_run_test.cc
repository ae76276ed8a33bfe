// ashlar dry-run --workspaces cudnn, with a program over the hollow device whose cuDNN is a small stand-in.
#include <string>

#include "tests/commands/schema_check.h"
#include "tests/console/program_run.h"

namespace ashlar {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

class CudnnRunTest : public CliTest {
 protected:
  json JsonOf(const std::string& flags, int mode = 0) const {
    const Result result = Run("dry-run --device T4 --once --json " + flags + " -- '" + ASHLAR_CUDNN_PROGRAM + "' " +
                              std::to_string(mode));
    EXPECT_EQ(result.code, 0) << result.error;
    workspace_ = result.error.substr(0, result.error.find('\n'));  // the program's own output
    return json::parse(result.out, nullptr, /*allow_exceptions=*/false);
  }
  mutable std::string workspace_;
};

std::string SaidOfWorkspaces(const json& report) {
  for (const json& assumption : report["assumptions"]) {
    if (assumption["what"] == "workspaces of cuDNN") return assumption["source"];
  }
  return "";
}

TEST_F(CudnnRunTest, ThePeakHasTheWorkspaceThatTheLibraryNames) {
  const json without = JsonOf("");
  EXPECT_EQ(workspace_, "0");
  EXPECT_EQ(without["cudnn_workspaces"], nullptr);
  EXPECT_THAT(SaidOfWorkspaces(without), IsEmpty());
  EXPECT_EQ(JsonOf("--workspaces none")["peak_bytes"], without["peak_bytes"]);
  const json with = JsonOf("--workspaces cudnn");
  EXPECT_EQ(workspace_, "10000") << "of the configuration that does not convert inputs down";
  EXPECT_GT(with["peak_bytes"].get<std::uint64_t>(), without["peak_bytes"].get<std::uint64_t>());
  const json expected = {
      {"plans", 1}, {"answered", 1}, {"largest_bytes", 10'000}, {"version", 91234}, {"why_not", nullptr}};
  EXPECT_EQ(with["cudnn_workspaces"], expected);
  EXPECT_THAT(SaidOfWorkspaces(with), HasSubstr("1 of 1 plan had the workspace that cuDNN 9.12 names"));
  for (const json& part : with["account"]["parts"]) {
    if (part["name"] != "cuDNN") continue;
    EXPECT_EQ(part["most_bytes"], 0) << "it is in the peak, and so not on top";
  }
}

TEST_F(CudnnRunTest, ALibraryThatEndsItsProcessLeavesTheRunAsItWas) {
  constexpr int kEnds = 7;
  const json report = JsonOf("--workspaces cudnn", kEnds);
  EXPECT_EQ(workspace_, "0");
  EXPECT_EQ(report["cudnn_workspaces"]["answered"], 0);
  EXPECT_EQ(report["cudnn_workspaces"]["why_not"], "its library ended its process");
  EXPECT_THAT(SaidOfWorkspaces(report), HasSubstr("0 B for 1 plan, as without it: cuDNN 9.12: its library ended its"));
}

TEST_F(CudnnRunTest, AnotherRuleIsNotKnown) {
  const Result result = Run("dry-run --workspaces cublas -- true");
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.error, testing::AllOf(HasSubstr("--workspaces"), HasSubstr("none"), HasSubstr("cudnn")));
}

}  // namespace
}  // namespace ashlar
