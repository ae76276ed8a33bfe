// `ashlar report` and its like, as a user calls them. What a page holds is tested in
// tests/commands/report/page_test.cc.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/console/program_run.h"

namespace ashlar {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr char kPageTrace[] = "a 1 1048577 0\na 2 30000000 0\nf 1\na 3 1048577 0\na 4 512 7\n";

// The document of a page that the program wrote.
json DocumentOf(const std::string& html) {
  const std::string begin = "id=\"ashlar-document\">";
  const std::size_t from = html.find(begin) + begin.size();
  return json::parse(html.substr(from, html.find("</script>", from) - from), nullptr, false);
}

class ReportTest : public CliTest {
 protected:
  json Page(const std::string& arguments) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 0) << result.error;
    return DocumentOf(FileBytes(folder_ + "out.html"));
  }
  std::string Out() const { return folder_ + "out.html"; }
};

TEST_F(ReportTest, APageHoldsTheJsonOfExplain) {
  const std::string trace = Write("trace.txt", kPageTrace);
  const json page = Page("report " + trace + " --capacity 1GiB -o " + Out());
  EXPECT_EQ(page["inputs"][0]["explanation"], json::parse(Run("explain --json --capacity 1GiB " + trace).out));
  EXPECT_EQ(page["inputs"][0]["explanation_text"], Run("explain --capacity 1GiB " + trace).out);
  EXPECT_EQ(page["title"], "trace.txt");
  EXPECT_EQ(page["runs"].size(), 1 + page["inputs"][0]["explanation"]["what_if"].size());
  EXPECT_EQ(Run("report " + trace + " --capacity 1GiB -o -").out.find(folder_), std::string::npos) << "a folder's name";
}

TEST_F(ReportTest, ThePageIsTheProgramOfThePageWithADocument) {
  const std::string html = Run("report " + Write("trace.txt", kPageTrace) + " -o -").out;
  EXPECT_THAT(html, StartsWith(FileBytes(ASHLAR_SOURCE_DIR "/page/dist/page.html").substr(0, 100)));
  EXPECT_EQ(html.find("<!--ashlar:"), std::string::npos);
  EXPECT_THAT(html, HasSubstr("<title>trace.txt"));
}

TEST_F(ReportTest, TwoTracesAreCompared) {
  const std::string a = Write("rank0.txt", "a 1 1048577 0\n");
  const std::string b = Write("job-rank_12.txt", kPageTrace);
  const json page = Page("report " + a + " " + b + " -o " + Out());
  ASSERT_EQ(page["inputs"].size(), 2U);
  EXPECT_EQ(page["inputs"][0]["rank"], 0);
  EXPECT_EQ(page["inputs"][1]["rank"], 12);
  json diff = json::parse(Run("diff --json " + a + " " + b).out);
  EXPECT_EQ(page["diff"], diff);
  EXPECT_TRUE(Page("report " + a + " " + b + " " + a + " -o " + Out())["diff"].is_null());
}

TEST_F(ReportTest, AMessageHasNoRuns) {
  const json page = Page("report " ASHLAR_SOURCE_DIR "/docs/examples/oom_message.txt -o " + Out());
  EXPECT_THAT(page["runs"], IsEmpty());
  EXPECT_EQ(page["inputs"][0]["explanation"]["verdict"].is_string(), true);
}

TEST_F(ReportTest, ALogAndItsSnapshotAreOne) {
  const std::string example = ASHLAR_SOURCE_DIR "/docs/examples/";
  const json page = Page("report " + example + "oom_message.txt " + example + "training_oom.pickle -o " + Out());
  EXPECT_EQ(
      page["inputs"].size(),
      json::parse(Run("explain --json " + example + "oom_message.txt " + example + "training_oom.pickle").out).size());
}

TEST_F(ReportTest, AFleetsAnswerIsShown) {
  const json page =
      Page("report " + Write("fleet.json", R"({"heat": {"a": "</script>"}, "ranks": []})") + " -o " + Out());
  EXPECT_EQ(page["fleet"]["heat"]["a"], "</script>");
  EXPECT_THAT(page["inputs"], IsEmpty());
  ExpectError(Run("report " + Write("other.json", R"({"heat": 1})") + " -o " + Out()), 3, {"other.json", "JSON"});
  const std::string deep = R"({"ranks": [], "heat": )" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  ExpectError(Run("report " + Write("deep.json", deep) + " -o " + Out()), 3, {"deep.json"});
}

TEST_F(ReportTest, AFleetWritesItsPage) {
  const std::string a = Write("rank0.txt", "a 1 1048577 0\n");
  const std::string b = Write("rank1.txt", kPageTrace);
  const json page = Page("fleet " + a + " " + b + " --report " + Out());
  EXPECT_EQ(page["fleet"], json::parse(Run("fleet --json " + a + " " + b).out));
}

// Its command names no folder, and pastes into a shell where the file lies.
TEST_F(ReportTest, TheCommandOfAPagePastes) {
  Write("my rank's $1.txt", kPageTrace);
  const std::string quoted = R"('my rank'\''s $1.txt')";
  const std::string flags = " --capacity=1GiB --conf max_split_size_mb:128,expandable_segments:False -o ";
  const json page = Page("report \"" + folder_ + "my rank's \\$1.txt\"" + flags + Out());
  const std::string command = page["command"];
  EXPECT_EQ(command, "ashlar report " + quoted + flags + "out.html");
  const std::string made = FileBytes(Out());
  std::filesystem::remove(Out());
  const std::string pasted =
      "cd '" + folder_ + "' && ashlar() { '" ASHLAR_PROGRAM "' \"$@\"; } && " + command + " > out";
  EXPECT_EQ(std::system(pasted.c_str()), 0) << pasted;
  EXPECT_EQ(FileBytes(Out()), made);
  EXPECT_EQ(Page("fleet " + Write("a 0.txt", "a 1 1048577 0\n").insert(0, "'") + "' --report " + Out())["command"],
            "ashlar fleet 'a 0.txt' --report out.html");
}

TEST_F(ReportTest, PipesAreReadOnce) {
  const std::string a = Write("a.txt", kPageTrace), b = Write("b.txt", "a 1 1048577 0\n");
  const std::string fleet = Write("fleet.json", Run("fleet --json " + a + " " + b).out);
  const auto piped = [&](const std::string& line) {
    const std::string command =
        "cd '" + folder_ + "' && bash -c '" ASHLAR_PROGRAM " report " + line + " -o out.html > out'";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return DocumentOf(FileBytes(Out()));
  };
  EXPECT_EQ(piped("<(cat a.txt)")["inputs"][0]["explanation"], json::parse(Run("explain --json " + a).out));
  const json two = piped("<(cat a.txt) <(cat b.txt)");
  EXPECT_EQ(two["inputs"].size(), 2U);
  EXPECT_TRUE(two["diff"].is_object());
  EXPECT_EQ(piped("- < a.txt")["runs"], piped("a.txt")["runs"]);
  EXPECT_EQ(piped("- < fleet.json")["fleet"], json::parse(FileBytes(fleet)));
  for (const std::string& inputs : {a + " " + fleet, fleet + " " ASHLAR_SOURCE_DIR "/docs/examples/oom_message.txt"}) {
    ExpectError(Run("report " + inputs + " -o " + folder_ + "none.html"), 2, {"fleet.json", "name it alone"});
  }
}

TEST_F(ReportTest, AnInputIsNotOverwritten) {
  const std::string trace = Write("trace.txt", kPageTrace);
  std::filesystem::create_symlink("trace.txt", folder_ + "link");
  const std::string link = folder_ + "link";
  for (const std::string& command :
       {"report " + trace + " -o " + link, "report - -o " + link + " < " + trace,
        "convert " + trace + " " + link + " --to csv", "explain " + trace + " --json-to " + link,
        "sweep " + trace + " --json-to " + trace, "check " + trace + " --max-ooms 0 --junit " + link,
        "bound " + trace + " --csv " + link, "fleet " + trace + " --report " + link,
        "fleet '" + folder_ + "*.txt' --json-to " + link, "estimate " + trace + " --report " + link}) {
    SCOPED_TRACE(command);
    ExpectError(Run(command), 2, {"is an input too"});
    EXPECT_EQ(FileBytes(trace), kPageTrace);
  }
}

TEST_F(ReportTest, ExplainPrintsBeforeItOpens) {
  const std::string trace = Write("trace.txt", kPageTrace);
  const std::string answer = Run("explain " + trace).out;
  setenv("TMPDIR", "/no/such/folder", 1);
  const Result result = Run("explain --open " + trace);
  unsetenv("TMPDIR");
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.out, answer);
  EXPECT_THAT(result.error, HasSubstr("/no/such/folder"));
}

TEST_F(ReportTest, WhatIsWrongIsOneLineAndLeavesTheOldPage) {
  const std::string trace = Write("trace.txt", kPageTrace);
  ExpectError(Run("report " + trace), 2, {"--output"});
  ExpectError(Run("report " + folder_ + "none -o " + Out()), 3, {"none"});
  ExpectError(Run("report " + trace + " -o " + folder_ + "no/such/out.html"), 3, {"no/such/out.html"});
  ExpectError(Run("report " + trace + " --device 1 -o " + Out()), 2, {"--device"});
  EXPECT_FALSE(std::filesystem::exists(Out()));
  Write("out.html", "old");
  Run("report " + folder_ + "none -o " + Out());
  EXPECT_EQ(FileBytes(Out()), "old");
}

TEST_F(ReportTest, EstimateWritesItsDryRunAsAPage) {
  const std::string model = ASHLAR_SOURCE_DIR "/tests/estimator/configs/distilbert-base-uncased.json";
  const std::string arguments = "estimate " + model + " --batch 1 --seq 8 --steps 2 --capacity 16GiB";
  const json page = Page(arguments + " --report " + Out());
  EXPECT_EQ(page["estimate"], json::parse(Run(arguments + " --json").out));
  ASSERT_EQ(page["inputs"].size(), 1U);
  EXPECT_GT(page["runs"][0]["moment_count"], 100);
  EXPECT_EQ(Page("estimate --parameters 7000 --report " + Out())["inputs"].size(), 0U);
  ExpectError(Run(arguments + " --report " + folder_ + "no/such", "> /dev/null"), 3, {"--report", "no/such"});
}

TEST_F(ReportTest, ExplainOpensThePageOrSaysWhereItLies) {
  const std::string trace = Write("trace.txt", kPageTrace);
  const std::string opener = Write("opener", "#!/bin/sh\ncp \"$1\" '" + folder_ + "seen.html'\nsleep 3\n");
  std::filesystem::permissions(opener, std::filesystem::perms::owner_all);
  const auto explain = [&](const std::string& environment) {
    const std::string command = environment + " '" ASHLAR_PROGRAM "' explain --open " + trace + " > '" + folder_ +
                                "out' 2> '" + folder_ + "error'";
    EXPECT_EQ(std::system(("TMPDIR='" + folder_ + "' " + command).c_str()), 0);
    return FileBytes(folder_ + "error");
  };
  EXPECT_THAT(explain("BROWSER= DISPLAY= WAYLAND_DISPLAY="), HasSubstr("open it in a browser: " + folder_));
  EXPECT_EQ(FileBytes(folder_ + "out"), Run("explain " + trace).out);
  EXPECT_THAT(explain("BROWSER=/no/such/program"), HasSubstr("open it in a browser: "));
  EXPECT_THAT(explain("BROWSER='" + opener + "'"), HasSubstr("page opened: "));
  for (int i = 0; i < 200 && !std::filesystem::exists(folder_ + "seen.html"); ++i) usleep(50'000);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "seen.html"));
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (!entry.is_directory()) continue;
    EXPECT_EQ(entry.status().permissions(), std::filesystem::perms::owner_all) << entry.path();
    EXPECT_FALSE(DocumentOf(FileBytes(entry.path().string() + "/report.html")).is_discarded());
  }
}

}  // namespace
}  // namespace ashlar
