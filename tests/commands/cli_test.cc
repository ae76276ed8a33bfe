// The program itself, from the outside: exit codes (0 fine, 2 usage, 3 unreadable input), one line for every error, the
// same bytes every time.
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/console/program_run.h"

namespace ashlar {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr char kCliExample[] = ASHLAR_SOURCE_DIR "/docs/examples/training_oom.pickle";
constexpr char kMessage[] = ASHLAR_SOURCE_DIR "/docs/examples/oom_message.txt";
// Two requests of the large pool, one of the small; the first is reused.
constexpr char kTrace[] = "a 1 1048577 0\nf 1\na 2 1048577 0\na 3 512 7\n";

TEST_F(CliTest, UnreadableInputsAreThree) {
  const std::string example = FileBytes(kCliExample);
  const std::string cut = Write("cut.pickle", example.substr(0, example.size() / 2));
  const std::string hostile =
      Write("hostile.pickle", std::string("\x80\x02") + "cos\nsystem\n(X\x04" + std::string(3, '\0') + "echotR.");
  const std::string note = Write("note.log", "nothing of interest\n");
  const std::string bad = Write("bad.txt", "a 1 512 0\nf 1\n  zz 3\n");
  for (const std::string command : {"explain ", "replay ", "check --max-ooms 0 ", "bound "}) {
    SCOPED_TRACE(command);
    ExpectError(Run(command + folder_ + "none"), 3, {folder_ + "none", "No such file"});
    ExpectError(Run(command + folder_), 3, {"folder"});
    ExpectError(Run(command + cut), 3, {cut, "byte " + std::to_string(example.size() / 2), "truncated"});
    ExpectError(Run(command + hostile), 3, {hostile, "GLOBAL at byte 2"});
    ExpectError(Run(command + note), 3, {note, "not a PyTorch memory snapshot"});
    ExpectError(Run(command + bad), 3, {bad, "3:3", "zz"});
  }
  ExpectError(Run("explain " + Write("empty", "")), 3, {"empty input", "_dump_snapshot"});
  ExpectError(Run("explain " + Write("cut.gz", std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03zz", 12))), 3, {"cut.gz"});
}

// What a file or a flag quotes cannot break the line.
TEST_F(CliTest, ErrorsStayOneLine) {
  ExpectError(Run("explain '" + folder_ + "a\nb'"), 3, {"No such file"});
  ExpectError(Run("replay - --capacity '1\n2\033[31m'", "< /dev/null"), 2, {"--capacity"});
  ExpectError(Run("'fro\nb'"), 2, {"fro"});
}

// The list has the index of the causes, and not each of them.
TEST_F(CliTest, TheGuideHasAPageOfEachCause) {
  EXPECT_THAT(Run("guide graph_kept_alive").out, StartsWith("# graph_kept_alive: "));
  EXPECT_THAT(Run("guide causes").out, HasSubstr("[graph_kept_alive](causes/graph_kept_alive.md)"));
  EXPECT_THAT(Run("guide").out, AllOf(HasSubstr("\ncauses "), Not(HasSubstr("graph_kept_alive"))));
  ExpectError(Run("guide graph_kept_aliv"), 2, {"did you mean"});
}

// What nothing but our own keys can say.
TEST_F(CliTest, ConfTakesOurKeys) {
  const std::string trace = Write("trace.txt", "a 1 20971520 0\nf 1\na 2 20971520 7\n");
  const auto replay = [&](const std::string& flags) {
    return nlohmann::json::parse(Run("replay --json " + trace + " " + flags).out);
  };
  EXPECT_EQ(replay("--conf memory_limit_mb:30")["cudaFree"], 1);
  EXPECT_EQ(replay("--conf memory_limit_mb:30,borrow_across_streams:True")["cudaFree"], 0);
  EXPECT_EQ(replay("--conf compat:torch-2.6")["compat"], "torch-2.6");
  EXPECT_EQ(replay("--conf free_order:per-block-counter")["free_order"], "per-block-counter");
  const nlohmann::json sweep = nlohmann::json::parse(
      Run("sweep --json --capacity 30MiB " + trace + " --confs 'borrow_across_streams:True;search_after_sync:True'")
          .out);
  EXPECT_EQ(sweep["rows"].size(), 3u);
}

// Two requests of a segment each: the table's costs, added up.
TEST_F(CliTest, DeviceCostsComeFromATable) {
  const std::string trace = Write("trace.txt", "a 1 20971520 0\na 2 20971520 7\n");
  const std::string costs = Write("costs", "# a GPU\nsegment_alloc_ns 1234567\n");
  const nlohmann::json replay = nlohmann::json::parse(Run("replay --json " + trace + " --device-costs " + costs).out);
  EXPECT_EQ(replay["estimated_driver_ns"], 2 * 1234567);
  const nlohmann::json sweep =
      nlohmann::json::parse(Run("sweep --json " + trace + " --confs default --device-costs " + costs).out);
  EXPECT_EQ(sweep["rows"][0]["traces"][0]["estimated_driver_ns"], 2 * 1234567);
}

TEST_F(CliTest, UsageErrorsAreTwo) {
  const std::string trace = Write("trace.txt", kTrace);
  const std::string example = std::string("'") + kCliExample + "'";
  ExpectError(Run("frob"), 2, {"there is no command 'frob': give one of explain, ", "; see ashlar --help"});
  ExpectError(Run("explian x"), 2, {"there is no command 'explian': did you mean 'explain'? One of explain, "});
  ExpectError(Run("explain " + example + " --capacty 16GiB"), 2,
              {"there is no flag '--capacty': did you mean '--capacity'? See ashlar explain --help"});
  ExpectError(Run("explain " + example + " --frobnicate=1"), 2, {"there is no flag '--frobnicate'; see "});
  EXPECT_EQ(Run("check " + example + " --max-leak-per-step 4096").error, "") << "a size that may be small";
  ExpectError(Run("explain " + example + " --capacity 16"), 2, {"--capacity: '16' is 16 bytes", "16GiB"});
  ExpectError(Run("estimate --parameters 1000 --device H10-80GB"), 2, {"did you mean 'H100-80GB'?"});
  ExpectError(Run("frob --help"), 2, {"there is no command 'frob'"});
  ExpectError(Run("dry-run --devcie T4 ./p"), 2, {"there is no flag '--devcie': did you mean '--device'?"});
  ExpectError(Run("dry-run"), 2, {"give the program, as in: ashlar dry-run python train.py"});
  ExpectError(Run("check " + example + " --max-reserved"), 2, {"--max-reserved needs a value: "});
  ExpectError(Run("diff " + trace), 2, {"b is required, as in: ashlar diff [flags] a b"});
  ExpectError(Run("replay " + example + " more words"), 2, {"not expected: more words; see ashlar replay --help"});
  ExpectError(Run("--frob"), 2, {"there is no flag '--frob'"});
  ExpectError(Run("run"), 2, {"a command is missing: give one of ", "bert_training", "; see ashlar run --help"});
  ExpectError(Run("run frob --steps 1"), 2, {"there is no command 'frob'", "bert_training", "; see ashlar run --help"});
  ExpectError(Run("explain"), 2, {"input", "; see ashlar explain --help"});
  ExpectError(Run("replay " + Write("nothing", "")), 3, {"nothing: this is an empty input"});
  ExpectError(Run("replay " + trace + " --warm --cold"), 2, {"--warm", "--cold"});
  ExpectError(Run("replay " + trace + " --warm"), 2, {"--warm needs a snapshot"});
  ExpectError(Run("replay " + example + " --warm --print-events"), 2, {"--print-events"});
  for (const std::string command : {"explain ", "replay "}) {
    SCOPED_TRACE(command);
    ExpectError(Run(command + trace + " --frob"), 2, {"--frob", "--help"});
    if (command != "explain ") ExpectError(Run(command + trace + " " + trace), 2, {"--help"});
    ExpectError(Run(command + trace + " --conf max_split_size_mb:1"), 2, {"--conf", "max_split_size_mb", "'1'", "20"});
    ExpectError(Run(command + trace + " --conf search_after_sink:True"), 2, {"--conf", "'search_after_sync'?"});
    ExpectError(Run(command + trace + " --conf memory_limit_mb:none"), 2, {"--conf", "memory_limit_mb", "'none'"});
    ExpectError(Run(command + trace + " --compat torch-2.6 --conf compat:torch-1.13"), 2, {"--conf", "--compat"});
    ExpectError(Run(command + trace + " --device-costs " + folder_ + "none"), 2, {"--device-costs", "No such file"});
    ExpectError(Run(command + trace + " --device-costs " + Write("bad_costs", "event_ns 1\nevents 2\n")), 2,
                {"--device-costs", "bad_costs: line 2", "no such key"});
    ExpectError(Run(command + trace + " --device-costs " + Write("no_costs", "# skipped\n")), 2, {"no cost in it"});
    ExpectError(Run(command + trace + " --conf garbage_collection_threshold:2"), 2, {"'2'", "between 0 and 1"});
    ExpectError(Run(command + trace + " --conf frob:1"), 2, {"--conf", "'frob'", "torch-2.10"});
    ExpectError(Run(command + trace + " --conf frob"), 2, {"--conf", "key:value"});
    ExpectError(Run(command + trace + " --compat torch-1.13 --conf expandable_segments:True"), 2, {"torch-1.13"});
    ExpectError(Run(command + trace + " --capacity 12parsecs"), 2, {"--capacity", "'12parsecs'", "16GiB"});
    ExpectError(Run(command + trace + " --capacity 0"), 2, {"--capacity", "between"});
    ExpectError(Run(command + trace + " --memory-fraction 1.5"), 2, {"--memory-fraction", "1.5"});
    ExpectError(Run(command + trace + " --memory-fraction nan"), 2, {"--memory-fraction"});
    ExpectError(Run(command + trace + " --compat torch-9"), 2, {"--compat", "torch-9", "torch-2.6"});
    ExpectError(Run(command + trace + " --free-order size"), 2, {"--free-order", "size", "address"});
    ExpectError(Run(command + trace + " --segment-addresses up"), 2, {"--segment-addresses", "descending"});
    ExpectError(Run(command + trace + " --device x"), 2,
                {"--device: neither the index of a device, such as 0, nor a card: "});
    ExpectError(Run(command + trace + " --memory-fraction x"), 2, {"--memory-fraction: 'x' is not a number"});
    for (const char* flag : {"--capacity", "--compat", "--free-order", "--segment-addresses", "--device-costs"}) {
      ExpectError(Run(command + trace + " " + flag + " ''"), 2, {flag, "the value is empty: give one"});
    }
    ExpectError(Run(command + trace + " --device 0"), 2, {"--device needs a snapshot"});
    ExpectError(Run(command + example + " --device 1"), 2, {"--device", "no device 1", "it has 1"});
    ExpectError(Run(command + example + " --device -1"), 2, {"no device -1"});
  }
}

TEST_F(CliTest, ABriefAnswerEndsWithWhy) {
  const Result brief = Run("explain '" + std::string(kCliExample) + "' --brief");
  EXPECT_THAT(brief.out,
              AllOf(HasSubstr("VERDICT"), HasSubstr("\nFIX "), HasSubstr("\nWHY"), Not(HasSubstr("WHO HOLDS"))));
  ExpectError(Run("explain '" + std::string(kCliExample) + "' --brief --format markdown"), 2, {"--brief", "--format"});
}

// A number is an index and a name a card, which is asked about.
TEST_F(CliTest, ADeviceIsAnIndexOrACard) {
  const std::string explain = "explain '" + std::string(kCliExample) + "' ";
  const auto elsewhere = [&](const std::string& flags) {
    const Result result = Run(explain + "--json " + flags);
    EXPECT_EQ(result.code, 0) << result.error;
    return nlohmann::json::parse(result.out)["elsewhere"];
  };
  EXPECT_TRUE(elsewhere("").is_null());
  EXPECT_TRUE(elsewhere("--device 0").is_null());
  EXPECT_TRUE(elsewhere("--capacity 12GiB").is_null()) << "the recorded device";
  const nlohmann::json card = elsewhere("--device L4");
  EXPECT_EQ(card, elsewhere("--capacity l4"));
  EXPECT_EQ(card["card"], "L4");
  EXPECT_EQ(card["fits"], true);
  EXPECT_EQ(card["peak_bytes"].get<std::uint64_t>() <= card["allocator_bytes"].get<std::uint64_t>(), true);
  EXPECT_EQ(elsewhere("--capacity 8GiB")["fits"], false) << "less than was held";
  EXPECT_EQ(elsewhere("--capacity 24GiB")["fits"], true);
  EXPECT_THAT(Run(explain + "--device T4").out, HasSubstr("\nWOULD IT FIT   yes, on T4 (14.76 GiB): peak "));
  EXPECT_THAT(Run(explain + "--device T4 --format markdown").out, HasSubstr("**Would it fit?** yes, on T4"));

  ExpectError(Run(explain + "--device L5"), 2, {"--device", "neither the index of a device", "'L5'"});
  ExpectError(Run(explain + "--device L4 --capacity 24GiB"), 2, {"--device", "--capacity"});
  ExpectError(Run("diff --device L4 '" + std::string(kCliExample) + "' '" + kCliExample + "'"), 2,
              {"as it was recorded", "ashlar explain --device L4"});
  ExpectError(Run("bound --device L4 '" + std::string(kCliExample) + "'"), 2, {"--device", "no index"});
  ExpectError(Run("estimate nobody/Model-3"), 3, {"No such file", "hf download nobody/Model-3 config.json"});
  ExpectError(Run(explain + "--device-used 99TiB"), 2, {"--device-used", "'99TiB' is not between"});
  EXPECT_THAT(Run("estimate --parameters 1000 --device GTX1080").error, Not(HasSubstr("did you mean")));
  ExpectError(Run("estimate --parameters 1000 --device 0"), 2, {"'0' is the index of a device", "a card by its name"});
  const std::string trace = Write("trace.txt", kTrace);
  EXPECT_EQ(Run("check " + trace + " --max-ooms 0 --device L4").code, 0) << "requests run on the card";
}

TEST_F(CliTest, MarkdownIsForIssues) {
  const std::string trace = Write("a_b.txt", kTrace);
  const Result check = Run("check --format markdown --max-reserved 21MiB --max-ooms 0 " + trace);
  EXPECT_EQ(check.code, 1);
  EXPECT_THAT(check.out,
              AllOf(StartsWith("### Failed: of 2: 1 broken, 1 not in this trace\n"), HasSubstr("a\\_b.txt**"),
                    HasSubstr("| max-reserved | 21.00 MiB | 22.00 MiB | **broken** | over by 1.00 MiB")));
  const Result sweep = Run("sweep --format markdown --budget 4 '" + std::string(kCliExample) + "'");
  EXPECT_THAT(sweep.out, AllOf(StartsWith("### "), HasSubstr("\n```\nexport PYTORCH_CUDA_ALLOC_CONF="),
                               HasSubstr("| settings | peak | driver calls |"), HasSubstr("as recorded |")));
  ExpectError(Run("sweep --format markdown --json " + trace), 2, {"--format", "--json"});
}

TEST_F(CliTest, ACheckThatFailsIsOne) {
  const std::string trace = Write("trace.txt", kTrace);  // reserves 22 MiB
  const Result holds = Run("check " + trace + " --max-reserved 22MiB");
  EXPECT_EQ(holds.code, 0) << holds.error;
  EXPECT_THAT(holds.out, HasSubstr("PASSED"));
  const std::string xml = folder_ + "junit.xml";
  const Result broken = Run("check " + trace + " --max-reserved 21MiB --junit " + xml);
  EXPECT_EQ(broken.code, 1);
  EXPECT_THAT(broken.out,
              AllOf(HasSubstr("over by 1.00 MiB"), StartsWith("FAILED  of 1: 1 broken, 0 not in this trace\n"
                                                              "NEXT    ashlar explain ")));
  EXPECT_THAT(broken.error, IsEmpty());
  EXPECT_THAT(FileBytes(xml), HasSubstr("failures=\"1\""));
  EXPECT_EQ(Run("check " + trace + " --max-ooms 0").code, 4) << "not known without a capacity";
  EXPECT_EQ(Run("check " + trace + " --max-ooms 0 --max-reserved 21MiB").code, 1) << "broken goes before not known";
  EXPECT_EQ(Run("check " + trace + " --baseline " + trace + " --max-growth 0%").code, 0);
  ExpectError(Run("check " + trace + " --max-growth 3%"), 2, {"--baseline", "go together"});
  ExpectError(Run("check " + trace + " --baseline " + trace + " --max-growth 3x"), 2, {"--max-growth", "'3x'"});
  ExpectError(Run("check " + trace + " --baseline " + trace + " --max-growth -1%"), 2, {"--max-growth", "'-1%'"});
  EXPECT_EQ(Run("check " + trace + " --max-ooms 0 --capacity 1GiB").code, 0);
  EXPECT_EQ(nlohmann::json::parse(Run("check --json --max-retries 0 " + trace).out)["passed"], false);

  ExpectError(Run("check " + trace), 2, {"--max-reserved"});
  ExpectError(Run("check " + trace + " --max-reserved x"), 2, {"--max-reserved", "'x'"});
  ExpectError(Run("check " + trace + " --min-utilisation 90"), 2, {"--min-utilisation", "90", "0 and 1"});
  ExpectError(Run("check " + trace + " --max-ooms -1"), 2, {"--max-ooms: Value -1 not in range 0 to 1000000000"});
  ExpectError(Run("check '" + std::string(kCliExample) + "' --max-ooms 0 --capacity 1GiB"), 2,
              {"--capacity needs a request trace"});
  ExpectError(Run("check " + trace + " --max-ooms 0 --junit " + folder_ + "none/x"), 3,
              {"--junit", "cannot write", "No such file"});
}

TEST_F(CliTest, WhatLiesOutsideIsToldBesideTheTrace) {
  const std::string example = "'" + std::string(kCliExample) + "'";
  const auto finding = [](const Result& result, const std::string& name) {
    const nlohmann::json document = nlohmann::json::parse(result.out);
    for (const nlohmann::json& cause : document["causes"]) {
      if (cause["name"] == name) return cause;
    }
    return nlohmann::json();
  };
  EXPECT_EQ(finding(Run("explain --json " + example), "other_process")["finding"], "not_in_trace");
  // 30 GiB in use, of which this process held at most 11.22 GiB.
  const nlohmann::json other = finding(Run("explain --json --device-used 30GiB " + example), "other_process");
  EXPECT_EQ(other["finding"], "found");
  EXPECT_NEAR(other["bytes"].get<double>() / (1 << 30), 30 - 11.22 - 0.5, 0.01);
  EXPECT_EQ(Run("explain " + example + " --rank " + example + " --rank " + example).code, 0);
  ExpectError(Run("explain " + example + " --device-used x"), 2, {"--device-used", "'x'"});
  ExpectError(Run("explain " + example + " --rank " + folder_ + "none"), 3, {"none", "No such file"});
  ExpectError(Run("explain " + example + " --rank " + std::string(kMessage)), 3, {"oom_message.txt"});
}

TEST_F(CliTest, EstimatesAModel) {
  const std::string models = ASHLAR_SOURCE_DIR "/tests/estimator/configs/";
  const std::string bert = models + "bert-base-uncased.json --architecture BertForSequenceClassification ";
  const Result text = Run("estimate " + bert + "--seq 64");
  EXPECT_EQ(text.code, 0) << text.error;
  EXPECT_THAT(text.out, AllOf(StartsWith("ESTIMATE  BertForSequenceClassification, 109,483,778"), HasSubstr("PEAK")));
  EXPECT_EQ(Run("estimate " + bert + "--seq 64").out, text.out);
  const nlohmann::json document = nlohmann::json::parse(Run("estimate --json " + bert + "--capacity 2GiB").out);
  EXPECT_EQ(document["ascending"]["fits"], false);
  EXPECT_EQ(Run("estimate --parameters 1000").code, 0);
  EXPECT_EQ(Run("estimate - --seq 8", "< " + models + "t5-small.json").code, 0);
  ExpectError(Run("estimate"), 2, {"--parameters"});
  ExpectError(Run("estimate --parameters 0"), 2, {"--parameters"});
  ExpectError(Run("estimate " + bert + "--precision int4"), 2, {"--precision", "bf16"});
  ExpectError(Run("estimate " + bert + "--batch 0"), 2, {"--batch"});
  ExpectError(Run("estimate " + bert + "--capacity much"), 2, {"--capacity"});
  ExpectError(Run("estimate " + bert + "--fit 1B"), 2, {"--fit: 1 B is no more than"});
  ExpectError(Run("estimate " + bert + "--device T4 --context 20GiB"), 2, {"--context: 14.76 GiB is no more than"});
  ExpectError(Run("estimate " + bert + "--layers 10001"), 2, {"--layers: 10001 is not from 1 to 10000"});
  ExpectError(Run("estimate " + folder_ + "none"), 3, {"none", "No such file"});
  ExpectError(Run("estimate " + Write("bad.json", "{\n x")), 3, {"bad.json", "2:2"});
  EXPECT_THAT(Run("explain '" + std::string(kMessage) + "' --model " + models + "gpt2.json").out,
              HasSubstr("no parameter of GPT2LMHeadModel has the size"));
  ExpectError(Run("explain '" + std::string(kMessage) + "' --model " + folder_ + "none"), 3, {"none"});
}

TEST_F(CliTest, TwoTracesDiffer) {
  const std::string a = Write("a.txt", kTrace);
  const std::string b = Write("b.txt", std::string(kTrace) + "a 4 30000000 0\n");
  const Result text = Run("diff " + a + " " + b);
  EXPECT_EQ(text.code, 0) << text.error;
  EXPECT_THAT(text.out, StartsWith("DIFF  reserved +30.00 MiB, allocated +28.61 MiB\n"));
  const nlohmann::json json = nlohmann::json::parse(Run("diff --json - " + b, "< " + a).out);
  EXPECT_EQ(json["difference"]["live_bytes"], 30000000);
  ExpectError(Run("diff " + a), 2, {"b is required"});
  ExpectError(Run("diff - -", "< " + a), 2, {"standard input"});
  ExpectError(Run("diff " + a + " " + b + " --at noon"), 2, {"--at", "'noon'", "peak"});
  ExpectError(Run("diff " + a + " " + b + " --at oom"), 2, {a, "--at oom"});
  ExpectError(Run("diff " + a + " " + folder_ + "none"), 3, {"none", "No such file"});
}

TEST_F(CliTest, ABoundAndItsCertificate) {
  const std::string trace = Write("trace.txt", kTrace);
  const std::string certificate = folder_ + "certificate.csv";
  const Result text = Run("bound " + trace + " --csv " + certificate);
  EXPECT_EQ(text.code, 0) << text.error;
  EXPECT_THAT(text.out, HasSubstr("equals the bound"));
  const nlohmann::json json = nlohmann::json::parse(Run("bound --json " + certificate).out);
  EXPECT_EQ(json["given_packing"], 1048577 + 512);
  EXPECT_EQ(json["packing"], json["given_packing"]);
  ExpectError(Run("bound " + trace + " --seconds -1"), 2, {"--seconds", "-1"});
  ExpectError(Run("bound " + trace + " --capacity 1GiB"), 2, {"--capacity"});
  ExpectError(Run("bound " + trace + " --csv " + folder_ + "none/x"), 3, {"--csv", "cannot write", "No such file"});
  ExpectError(Run("bound " + Write("bad.csv", "id,lower,upper,size\na,0,9,x\n")), 3, {"bad.csv", "2:7", "'x'"});
}

TEST_F(CliTest, HelpAndVersionAreFine) {
  for (const char* arguments :
       {"", "help", "--help", "explain --help", "help explain", "replay --help", "check --help", "help bound"}) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 0);
    EXPECT_THAT(result.out, HasSubstr("Usage: ashlar"));
    EXPECT_THAT(result.error, IsEmpty());
  }
  for (const char* arguments : {"--version", "version"}) {
    const Result version = Run(arguments);
    EXPECT_EQ(version.code, 0);
    EXPECT_THAT(version.out, testing::ContainsRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  }
  EXPECT_EQ(Run("help diff").out, Run("diff --help").out);
  for (const absl::string_view line : absl::StrSplit(Run("dry-run --help", "").out, '\n')) {
    EXPECT_LE(line.size(), 100u) << line;
  }
}

TEST_F(CliTest, EventsOfATinyTrace) {
  const std::string trace = Write("trace.txt", kTrace);
  // Two segments at the simulated device's base, 0x7f0000000000 = 139637976727552, one behind the other.
  const std::string expected =
      "0 segment_alloc 139637976727552 20971520 0\n"
      "0 alloc 139637976727552 1048577 0 1049088\n"
      "1 free_requested 139637976727552 1048577 0\n"
      "1 free_completed 139637976727552 1048577 0\n"
      "2 alloc 139637976727552 1048577 0 1049088\n"
      "3 segment_alloc 139637997699072 2097152 7\n"
      "3 alloc 139637997699072 512 7 512\n";
  const Result result = Run("replay --print-events " + trace);
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out, expected);
  EXPECT_THAT(result.error, IsEmpty());
  EXPECT_EQ(Run("replay --print-events -", "< " + trace).out, expected);
  const std::string packed = folder_ + "trace.bin";  // gzip is told from content
  gzFile file = gzopen(packed.c_str(), "wb");
  gzwrite(file, kTrace, sizeof(kTrace) - 1);
  gzclose(file);
  EXPECT_EQ(Run("replay --print-events " + packed).out, expected);
  EXPECT_EQ(Run("replay --print-events -", "< " + packed).out, expected);
}

TEST_F(CliTest, JsonParsesAndNamesTheInput) {
  const std::string trace = Write("trace.txt", kTrace);
  const nlohmann::json replayed = nlohmann::json::parse(Run("replay --json " + trace).out);
  EXPECT_EQ(replayed["requests"], 4);
  EXPECT_EQ(replayed["peak_reserved"], 22 * 1024 * 1024);
  EXPECT_EQ(replayed["cudaMalloc"], 2);
  EXPECT_TRUE(replayed["capacity"].is_null());
  EXPECT_TRUE(replayed["fidelity"].is_null());
  const nlohmann::json warm = nlohmann::json::parse(Run("replay --json '" + std::string(kCliExample) + "'").out);
  EXPECT_EQ(warm["fidelity"]["matched"], warm["fidelity"]["total"]);
  EXPECT_EQ(warm["peak_reserved"], warm["recorded_peak_reserved"]);
  EXPECT_EQ(warm["ooms"], 1);
  const nlohmann::json explained = nlohmann::json::parse(Run("explain --json " + trace).out);
  EXPECT_EQ(explained["verdict"], "healthy");
  const nlohmann::json message = nlohmann::json::parse(Run("explain --json '" + std::string(kMessage) + "'").out);
  EXPECT_EQ(message["verdict"], "fragmentation");
  const std::string text = FileBytes(kMessage);
  const nlohmann::json twice =
      nlohmann::json::parse(Run("explain --json " + Write("two.log", text + "\n\n" + text)).out);
  ASSERT_TRUE(twice.is_object());  // one message, counted
  EXPECT_EQ(twice["notes"].back()["name"], "repeated");
  EXPECT_EQ(twice["notes"].back()["count"], 2);
  const std::string other = "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 1; 4.00 GiB total capacity)";
  const nlohmann::json both =
      nlohmann::json::parse(Run("explain --json " + Write("two.log", text + "\n\n" + other + "\n" + text)).out);
  ASSERT_TRUE(both.is_array());
  EXPECT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0]["verdict"], "fragmentation");
}

TEST_F(CliTest, TwoRunsGiveTheSameBytes) {
  for (const char* command : {"explain ", "explain --json ", "replay ", "replay --json ", "replay --cold "}) {
    const std::string line = std::string(command) + "'" + kCliExample + "' --capacity 12GiB";
    const Result first = Run(line);
    EXPECT_EQ(first.code, 0) << first.error;
    EXPECT_GT(first.out.size(), 100u);
    EXPECT_TRUE(first.out == Run(line).out) << command;
  }
}

// The words of the replay's text carry the JSON's numbers.
TEST_F(CliTest, AFailureIsAResultNotAnError) {
  const std::string trace = Write("big.txt", "a 1 3000000000 0\n");
  const Result result = Run("explain --capacity 2GiB --json " + trace);
  EXPECT_EQ(result.code, 0) << result.error;
  const nlohmann::json json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["verdict"], "capacity");
  EXPECT_EQ(json["accounting"]["total_bytes"], 2147483648u);
  EXPECT_EQ(json["accounting"]["outside_bytes"], 0);
  EXPECT_TRUE(json["paste"].is_null());
}

TEST_F(CliTest, SweepAnswersForOneTraceAndForSeveral) {
  const std::string trace = Write("trace.txt", kTrace);
  const std::string fragmenting = Write("fragmenting.txt", "a 1 104857600 0\nf 1\na 2 12582912 0\na 3 104857600 0\n");
  const Result one = Run("sweep " + fragmenting + " --capacity 1GiB");
  EXPECT_EQ(one.code, 0) << one.error;
  EXPECT_THAT(one.error, IsEmpty());  // no progress where there is no terminal
  EXPECT_THAT(one.out, AllOf(StartsWith("SWEEP "), HasSubstr("PASTE   export PYTORCH_CUDA_ALLOC_CONF="),
                             HasSubstr("fragmenting.txt: request trace, 4 requests")));
  for (const char* jobs : {"1", "2", "7"}) {
    EXPECT_EQ(Run("sweep " + fragmenting + " --capacity 1GiB --jobs " + jobs).out, one.out) << jobs;
  }
  const nlohmann::json both = nlohmann::json::parse(Run("sweep --json " + trace + " " + fragmenting).out);
  EXPECT_EQ(both["traces"].size(), 2u);
  EXPECT_EQ(both["rows"][0]["traces"].size(), 2u);
  const nlohmann::json piped = nlohmann::json::parse(Run("sweep --json - " + fragmenting, "< " + trace).out);
  EXPECT_EQ(piped["rows"], both["rows"]);
}

TEST_F(CliTest, SweepTakesGivenConfs) {
  const std::string trace = Write("trace.txt", kTrace);
  const std::string confs = Write("confs.txt", "# two\nmax_split_size_mb:64\n\nexpandable_segments:True\n");
  const Result listed = Run("sweep --json " + trace + " --confs 'max_split_size_mb:64;expandable_segments:True'");
  EXPECT_EQ(listed.code, 0) << listed.error;
  const nlohmann::json json = nlohmann::json::parse(listed.out);
  EXPECT_EQ(json["rows"].size(), 3u);  // with the recorded settings, which are the defaults
  EXPECT_EQ(json["is_search"], false);
  EXPECT_EQ(Run("sweep --json " + trace + " --confs " + confs).out, listed.out);
  EXPECT_EQ(nlohmann::json::parse(Run("sweep --json " + trace + " --budget 3").out)["is_complete"], false);
  EXPECT_EQ(Run("sweep " + trace + " --seconds 5 --rows 1").code, 0);
}

TEST_F(CliTest, SweepRefusesInOneLine) {
  const std::string trace = Write("trace.txt", kTrace);
  ExpectError(Run("sweep"), 2, {"traces"});
  ExpectError(Run("sweep " + folder_ + "none"), 3, {"No such file"});
  ExpectError(Run("sweep " + trace + " " + Write("note.log", "nothing\n")), 3, {"note.log", "not a PyTorch"});
  ExpectError(Run("sweep '" + std::string(kMessage) + "'"), 3, {"not a PyTorch memory snapshot or a request trace"});
  ExpectError(Run("sweep - -", "< /dev/null"), 2, {"standard input"});
  ExpectError(Run("sweep " + trace + " --confs max_split_size_mb:1"), 2, {"max_split_size_mb", "'1'"});
  ExpectError(Run("sweep " + trace + " --confs ' ; '"), 2, {"--confs", "no conf"});
  ExpectError(Run("sweep " + trace + " --confs frob:1 --compat torch-2.6"), 2, {"'frob'", "torch-2.6"});
  ExpectError(Run("sweep " + trace + " --jobs 0"), 2, {"--jobs"});
  ExpectError(Run("sweep " + trace + " --budget 0"), 2, {"--budget"});
  ExpectError(Run("sweep " + trace + " --seconds 0"), 2, {"--seconds"});
  ExpectError(Run("sweep " + trace + " --device 0"), 2, {"--device needs a snapshot"});
}

TEST_F(CliTest, OutputThatCannotBeWrittenIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const std::string trace = Write("trace.txt", kTrace);
  for (const std::string& arguments : {"replay " + trace, "replay --print-events " + trace, "explain " + trace,
                                       "explain --json " + trace, std::string("--help"), std::string("--version")}) {
    SCOPED_TRACE(arguments);
    Result full = Run(arguments, "> /dev/full");
    ExpectError(full, 3, {"cannot write to standard output"});
    Result closed = Run(arguments, ">&-");
    ExpectError(closed, 3, {"cannot write to standard output"});
  }
}

}  // namespace
}  // namespace ashlar
