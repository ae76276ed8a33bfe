// What `ashlar dry-run` tells of what the processes left: text, JSON, what -o keeps.
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/commands/schema_check.h"
#include "tests/launcher/launched_test.h"

namespace ashlar {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

class DryRunReportTest : public LaunchedTest {
 protected:
  // A program that leaves these lines' files and ends with the code.
  std::string Program(const std::string& lines, int code = 0) const {
    return Script("program", lines + "echo from the program\nexit " + std::to_string(code) + "\n");
  }
  json JsonOf(const std::string& flags, const std::string& program) const {
    const Result result = Run("dry-run " + flags + " --json -- " + program);
    EXPECT_THAT(result.error, HasSubstr("from the program")) << "its output goes to standard error";
    return json::parse(result.out, nullptr, false);
  }
  std::string Training(std::uint64_t peak_bytes) const {
    return LeavingText("process-7.json", Books(peak_bytes)) +
           LeavingText("info-7.json", Info(nullptr, peak_bytes / 2)) +
           Leaving("history-7.pickle", OutOfMemorySnapshot());
  }
  // Of it 1 GiB less was in use at the peak.
  std::string LeavingJax(std::uint64_t reserved_bytes, const std::string& error) const {
    const json device = {{"index", 0},
                         {"peak_in_use_bytes", reserved_bytes - kGiB},
                         {"reserved_bytes", reserved_bytes},
                         {"limit_bytes", reserved_bytes}};
    return LeavingText("jax-7.json", {{"devices", json::array({device})}, {"out_of_memory", error}});
  }
};

TEST_F(DryRunReportTest, TheTextSaysWhetherItFits) {
  const Result fits = Run("dry-run --capacity 16GiB -- " + Program(LeavingText("process-7.json", Books(3 * kGiB))));
  EXPECT_EQ(fits.code, 0);
  EXPECT_EQ(fits.out, "from the program\n");
  EXPECT_THAT(fits.error, AllOf(HasSubstr("fits on a device of 16.00 GiB: peak 3.00 GiB, 13.00 GiB to spare"),
                                HasSubstr("ended with exit code 0"), HasSubstr("process 7"), HasSubstr("ASSUMED"),
                                HasSubstr("no history"), Not(HasSubstr("MADE-UP")), Not(HasSubstr("NOT SUPPORTED"))));
  const Result fails =
      Run("dry-run --capacity 16GiB -- " + Program(LeavingText("process-7.json", Books(16 * kGiB, 2)), 1));
  EXPECT_EQ(fails.code, 1);
  EXPECT_THAT(fails.error, HasSubstr("does not fit on a device of 16.00 GiB: 2 requests found no memory"));
}

// A text of one line: the report is wrapped.
std::string Unwrapped(const std::string& text) {
  std::string out;
  for (const absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    absl::StrAppend(&out, out.empty() ? "" : " ", word);
  }
  return out;
}

constexpr char kEarly[] = "not known: the program ended before its end, with ";

TEST_F(DryRunReportTest, AProgramThatDidNotEndWellDoesNotFit) {
  json raised = Info(nullptr, kGiB);
  raised["exception"] = "ValueError: no such file: data.bin\nand a second line";
  const std::string books = LeavingText("process-7.json", Books(3 * kGiB));
  const std::string info = LeavingText("info-7.json", raised);
  struct Case {
    std::string lines;
    int code;
    const char* by;
    const char* what;
  };
  const Case cases[] = {{books, 4, "exit_code", "exit code 4"},
                        {books + info, 1, "exception", "ValueError: no such file: data.bin"},
                        {books + "echo from the program\nkill -9 $$\n", 137, "signal", "signal 9 (SIGKILL)"},
                        {books + "echo from the program\nkill -TERM $$\n", 143, "signal", "signal 15 (SIGTERM)"},
                        {books + "echo from the program\nkill -ABRT $$\n", 134, "signal", "signal 6 (SIGABRT)"},
                        {books, 130, "signal", "signal 2 (SIGINT)"},
                        {books + LeavingSharedAccounting(3 * kGiB, 2147483647, kGiB), 0, "process",
                         "process 2147483647, killed or aborted"},
                        {books + LeavingSharedAccounting(3 * kGiB, 2147483647, kGiB), 1, "exit_code",
                         "exit code 1 after process 2147483647, killed or aborted"}};
  for (const Case& of : cases) {
    const std::string program = Program(of.lines, of.code);
    const Result run = Run("dry-run --capacity 16GiB -- " + program);
    EXPECT_EQ(run.code, of.code);
    const std::string seen = absl::StrCat(kEarly, of.what, "; until then no request failed, and the peak was 3.00 GiB");
    EXPECT_THAT(Unwrapped(run.error), HasSubstr(seen));
    EXPECT_THAT(run.error, Not(HasSubstr("fits")));
    const json document = JsonOf("--capacity 16GiB", program);
    EXPECT_TRUE(document["fits"].is_null()) << of.what;
    EXPECT_EQ(document["ended_early"], json({{"by", of.by}, {"what", of.what}}));
    EXPECT_EQ(document["peak_bytes"], 3 * kGiB);
  }
}

TEST_F(DryRunReportTest, WhatEndedEarlyIsSaidOfCardsToo) {
  EXPECT_THAT(Unwrapped(Run("dry-run -- " + Program(Training(20 * kGiB), 1)).error),
              AllOf(HasSubstr("ended before its end, and would have asked for more"),
                    HasSubstr("the least card that is enough for what was seen: ")));
  EXPECT_THAT(Unwrapped(Run("dry-run -- " + Program("", 1)).error),
              HasSubstr(absl::StrCat(kEarly, "exit code 1; until then no process used a device")));
}

// What it wrote of itself is gone with it: the log's sum has no contexts.
TEST_F(DryRunReportTest, ThePeakOfAKilledProcessIsOfTheAccountingThatAllShare) {
  const std::uint64_t mib = kGiB >> 10;
  const std::string log = Write("log", "ashlar-native-log 1\np 2147483647 1\na 1 0 700000000 5242880 0 0 cudaMalloc\n");
  const std::string program = Program(LeavingSharedAccounting(415 * mib, 2147483647, 415 * mib) +
                                      Leaving("native-2147483647.log", log) + "echo from the program\nkill -9 $$\n");
  const json document = JsonOf("--capacity 8GiB", program);
  EXPECT_EQ(document["peak_bytes"], 415 * mib);
  EXPECT_TRUE(document["fits"].is_null());
  EXPECT_EQ(document["processes"][0]["died"], true);
  EXPECT_THAT(Run("dry-run --capacity 8GiB -- " + program).error,
              AllOf(HasSubstr("device 0   peak  415.00 MiB"), HasSubstr("killed or aborted")));
}

// JAX reserves most of the device at its start: its own account says what the program needs, and why it failed.
TEST_F(DryRunReportTest, WhatJaxSaysOfItsMemoryIsToldBesideTheDevice) {
  const auto jax = [this](const std::string& error) {
    return LeavingText("process-7.json", Books(12 * kGiB)) + LeavingJax(12 * kGiB, error);
  };
  EXPECT_THAT(Run("dry-run --capacity 16GiB -- " + Program(jax(""))).error,
              AllOf(HasSubstr("fits on a device of 16.00 GiB"),
                    HasSubstr("JAX had 11.00 GiB in use at its peak, of 12.00 GiB that it reserved")));
  const std::string failing = Program(jax("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 2.00GiB."), 1);
  EXPECT_THAT(Run("dry-run --capacity 16GiB -- " + failing).error,
              HasSubstr("does not fit on a device of 16.00 GiB: 1 request found no memory"));
  EXPECT_EQ(JsonOf("--capacity 16GiB", failing)["processes"][0]["jax"]["devices"][0]["peak_in_use_bytes"], 11 * kGiB);
}

TEST_F(DryRunReportTest, AFailureThatTheProgramSwallowedFailsWhereItIsAsked) {
  const std::string failed = Program(LeavingText("process-7.json", Books(16 * kGiB, 2)));
  EXPECT_EQ(Run("dry-run --capacity 16GiB -- " + failed).code, 0);
  EXPECT_EQ(Run("dry-run --capacity 16GiB --fail-on oom -- " + failed).code, 4);
  EXPECT_EQ(Run("dry-run --fail-on oom -- " + Program(LeavingText("process-7.json", Books(kGiB)))).code, 0);
  EXPECT_EQ(Run("dry-run --fail-on oom -- " + Program(LeavingText("process-7.json", Books(kGiB, 1)), 7)).code, 7)
      << "the program's own comes first";
}

TEST_F(DryRunReportTest, MoreThanMayBeReservedFailsWhereItIsAsked) {
  const std::string program = Program(LeavingText("process-7.json", Books(4 * kGiB)));
  EXPECT_EQ(Run("dry-run --max-reserved 4GiB -- " + program).code, 0);
  const Result over = Run("dry-run --max-reserved 3GiB -- " + program);
  EXPECT_EQ(over.code, 4);
  EXPECT_THAT(Unwrapped(over.error), HasSubstr("--max-reserved: 4.00 GiB were reserved, 1.00 GiB too much"));
  EXPECT_EQ(Run("dry-run --max-reserved 3x -- " + program).code, 2);
}

// Of backend:cudaMallocAsync and allocators in PyTorch's place.
TEST_F(DryRunReportTest, WhatIsNotKeptIsALineAndTheDevicesAccountingStays) {
  json info = Info(nullptr, 0);
  info["not_kept"] = "cudaMallocAsync does not yet support recordHistory";
  info["devices"] = json::array();
  const auto program = [&](std::uint64_t refused) {
    return Program(LeavingText("process-7.json", Books(3 * kGiB, refused)) + LeavingText("info-7.json", info));
  };
  const Result run = Run("dry-run --capacity 16GiB -- " + program(0));
  EXPECT_THAT(run.error, AllOf(HasSubstr("fits on a device of 16.00 GiB: peak 3.00 GiB"),
                               HasSubstr("- process 7: no history of its allocations: cudaMallocAsync does not yet"),
                               Not(HasSubstr("were not seen"))));
  EXPECT_EQ(JsonOf("", program(0))["processes"][0]["torch"]["not_kept"], info["not_kept"]);
  EXPECT_EQ(JsonOf("", program(2))["fits"], false) << "by the device's own count";
  info["num_failures"] = 1;
  EXPECT_EQ(JsonOf("", program(2))["processes"][0]["out_of_memory"], 1) << "errors that were seen";
  const Result record = Run("record -- " + program(0));
  EXPECT_EQ(record.code, 0);
  EXPECT_EQ(record.error,
            "ashlar: process 7: no history of its allocations: cudaMallocAsync does not yet support "
            "recordHistory\n");
}

TEST_F(DryRunReportTest, WhereLagMattersIsTold) {
  json books = Books(kGiB);
  const auto text_of = [&](const char* flags) {
    return Run(absl::StrCat("dry-run ", flags, " -- ", Program(LeavingText("process-7.json", books)))).error;
  };
  EXPECT_THAT(text_of(""), AllOf(HasSubstr("done as soon as it is given\n"), Not(HasSubstr("until-waited"))));
  books["found_done"] = 2000;
  EXPECT_THAT(text_of(""), AllOf(HasSubstr("event queries told so: 2,000"), HasSubstr("until-waited")));
  EXPECT_THAT(text_of("--lag until-waited"), HasSubstr("work is done once the host waits for it, and no sooner"));
}

TEST_F(DryRunReportTest, TheRuleOfRoutersIsToldAndWhetherAnyWasFound) {
  json info = Info(nullptr, kGiB);
  const auto said = [&](const std::string& rule) {
    const std::string lines = LeavingText("process-7.json", Books(2 * kGiB)) + LeavingText("info-7.json", info);
    const json report = JsonOf("--capacity 16GiB --routing " + rule, Program(lines + "echo \"$ASHLAR_ROUTING\"\n"));
    return report["assumptions"].back()["source"].get<std::string>();
  };
  EXPECT_THAT(said("worst"), HasSubstr("--routing worst: no router of experts was found"));
  info["routing_choices"] = 6;
  EXPECT_THAT(said("balanced"), HasSubstr("each expert gets as many tokens (6 choices of routers)"));
  EXPECT_THAT(said("random:7"), HasSubstr("drawn alike"));
  for (const std::string rule : {"best", "random", "random:x", "worst:1"}) {
    const Result result = Run("dry-run --routing " + rule + " -- true");
    EXPECT_EQ(result.code, 2) << rule;
    EXPECT_THAT(result.error, HasSubstr("--routing: '" + rule + "' is none of balanced, random:SEED"));
  }
}

TEST_F(DryRunReportTest, ValuesOfLinesAreToldAndThoseThatNothingRead) {
  json info = Info(nullptr, kGiB);
  const auto given = [](const char* flag, int reads, const json& why_not) {
    return json{{"flag", flag}, {"reads", reads}, {"why_not", why_not}};
  };
  info["given_values"] =
      json::array({given("a.py:3=0.5", 12, nullptr), given("a.py:4=1", 1, nullptr), given("a.py:4=2", 0, nullptr),
                   given("a.py:9=7", 0, nullptr), given("a.py:5=0.5", 0, "what is read there is true or false")});
  info["value_reads"] =
      json::array({{{"line", "a.py:3 step"}, {"count", 12}}, {{"line", "a.py:4 step"}, {"count", 1}}});
  const std::string flags = "--value a.py:3=0.5 --value a.py:4=1 --value a.py:4=2 --value a.py:9=7 --value a.py:5=0.5";
  const std::string program = Program(LeavingText("process-7.json", Books(2 * kGiB)) +
                                      LeavingText("info-7.json", info) + "echo \"$ASHLAR_VALUE\"\n");
  const Result text = Run("dry-run " + flags + " -- " + program);
  EXPECT_THAT(text.out, HasSubstr("a.py:3=0.5\na.py:4=1\na.py:4=2\na.py:9=7\na.py:5=0.5\n"));
  EXPECT_THAT(Unwrapped(text.error),
              AllOf(HasSubstr("given: --value a.py:3=0.5 (12 times), a.py:4=1 (once)"),
                    HasSubstr("--value a.py:4=2: its turn did not come: a.py:4 read values once"),
                    HasSubstr("--value a.py:9=7: a.py:9 read no value of the device; lines that did: a.py:3 step (12 "
                              "times), a.py:4 step (once)"),
                    HasSubstr("--value a.py:5=0.5: what is read there is true or false")));
  const json report = JsonOf(flags, program);
  EXPECT_EQ(report["given_values"], info["given_values"]);
  EXPECT_EQ(report["value_reads"], info["value_reads"]);
  EXPECT_THAT(
      Unwrapped(Run("dry-run --value a.py:1=3 -- " + Program(LeavingText("process-7.json", Books(kGiB)))).error),
      HasSubstr("a.py:1 read no value of the device; no line of a PyTorch program did"));
}

TEST_F(DryRunReportTest, WhatEnginesCountOfThemselvesIsInTheAccount) {
  const json sums = {{"weights_bytes", 3 * kGiB},  {"activations_bytes", kGiB},    {"graphs_bytes", 0},
                     {"kv_cache_bytes", 8 * kGiB}, {"requested_bytes", 13 * kGiB}, {"tokens", 40960},
                     {"longest_request", 16384},   {"most_requests", 256}};
  const std::string program =
      Program(LeavingText("process-7.json", Books(13 * kGiB)) + LeavingText("vllm-7.json", sums) +
              LeavingText("sglang-7.json", {{"weights_bytes", kGiB}, {"kv_cache_bytes", 2 * kGiB}, {"tokens", 8192}}));
  EXPECT_THAT(
      Unwrapped(Run("dry-run --capacity 16GiB -- " + program).error),
      AllOf(
          HasSubstr("vLLM of process 7, as it measured itself: weights 3.00 GiB, activations 1.00 GiB, CUDA graphs 0 "
                    "B, KV cache 8.00 GiB of the 13.00 GiB that it asks for: room for 40,960 tokens, which are 2.5 "
                    "requests of 16,384, its longest; it takes at most 256 at once"),
          HasSubstr("SGLang of process 7, as it counts itself: weights 1.00 GiB, KV cache 2.00 GiB for 8,192 tokens")));
  EXPECT_EQ(JsonOf("--capacity 16GiB", program)["processes"][0]["vllm"], sums);
  EXPECT_EQ(JsonOf("--capacity 16GiB", program)["processes"][0]["sglang"]["tokens"], 8192);
}

TEST_F(DryRunReportTest, LibrariesBesidePyTorchsAllocatorAreTold) {
  json books = Books(kGiB);
  const auto text = [&] { return Run("dry-run -- " + Program(LeavingText("process-7.json", books))).error; };
  const auto library = [](const char* name, int mib) { return json{{"name", name}, {"bytes", mib << 20}}; };
  json& libraries = books["devices"][0]["libraries"];
  libraries = json::array({library("libc10_cuda.so", 600)});
  EXPECT_THAT(text(), Not(HasSubstr("asked for by")));
  libraries = json::array({library("libaaa.so", 20), library("libc10_cuda.so", 600), library("", 1)});
  EXPECT_THAT(Unwrapped(text()),
              HasSubstr("asked for by PyTorch's allocator (libc10_cuda.so) 600.00 MiB, libaaa.so 20.00 MiB, unknown "
                        "1.00 MiB; "
                        "the context takes 409.00 MiB"));
  const json document = JsonOf("", Program(LeavingText("process-7.json", books)));
  const json& told = document["processes"][0]["books"]["devices"][0]["libraries"];
  EXPECT_EQ(told[1], library("libaaa.so", 20));
  EXPECT_TRUE(told[2]["name"].is_null());
}

json CallsOfEightRanks() {
  return {{"cudnn", true},
          {"cublas", {{{"device", 0}, {"handles", 1}}}},
          {"nccl",
           {{"version", 22809},
            {"settings", json::object()},
            {"communicators", {{{"device", 0}, {"ranks", 8}, {"collectives", true}, {"peers", 7}}}}}}};
}

const json& PartOf(const json& document, const std::string& name) {
  for (const json& part : document["account"]["parts"]) {
    if (part["name"] == name) return part;
  }
  static const json kNone;
  return kNone;
}

TEST_F(DryRunReportTest, LibrariesThatWereCalledComeOnTopOfThePeak) {
  json books = Books(3 * kGiB);
  books["devices"][0]["libraries"] = {{{"name", "libc10_cuda.so"}, {"bytes", 2 * kGiB}}};
  const auto document = [&] {
    return JsonOf("--device H100-80GB",
                  Program(LeavingText("process-7.json", books) + LeavingText("info-7.json", Info(nullptr, kGiB))));
  };
  const json without = document();
  EXPECT_EQ(PartOf(without, "PyTorch's allocator")["most_bytes"], 2 * kGiB);
  EXPECT_EQ(PartOf(without, "CUDA context")["in_peak"], true);
  EXPECT_TRUE(PartOf(without, "NCCL").is_null()) << "it was not called";
  books["library_use"] = CallsOfEightRanks();
  const json with = document();
  EXPECT_EQ(PartOf(with, "cuBLAS")["least_bytes"], std::uint64_t{66} << 20);
  EXPECT_EQ(PartOf(with, "NCCL")["mark"], "computed");
  EXPECT_EQ(PartOf(with, "NCCL")["in_peak"], false);
  EXPECT_GT(PartOf(with, "NCCL")["least_bytes"], 0);
  EXPECT_EQ(with["account"]["peak_bytes"], 3 * kGiB);
  EXPECT_GT(with["account"]["beside_most_bytes"], PartOf(with, "NCCL")["most_bytes"]);
  EXPECT_TRUE(with["fits_unless"].is_null()) << "it fits whatever they take";
}

TEST_F(DryRunReportTest, WhereNcclMayTakeMoreThanThereIsItSaysSo) {
  json books = Books(14 * kGiB);
  books["library_use"] = CallsOfEightRanks();
  const std::string program =
      Program(LeavingText("process-7.json", books) + LeavingText("info-7.json", Info(nullptr, kGiB)));
  const json document = JsonOf("--capacity 16GiB", program);
  EXPECT_EQ(document["fits"], true) << "as the run went";
  EXPECT_EQ(document["fits_unless"]["who"], "NCCL");
  const std::uint64_t others = document["account"]["beside_most_bytes"].get<std::uint64_t>() -
                               PartOf(document, "NCCL")["most_bytes"].get<std::uint64_t>();
  EXPECT_EQ(document["fits_unless"]["bytes"], 2 * kGiB - others);
  EXPECT_THAT(Unwrapped(Run("dry-run --capacity 16GiB -- " + program).error),
              HasSubstr("fits on a device of 16.00 GiB unless NCCL takes more than 1."));
  EXPECT_TRUE(JsonOf("--capacity 64GiB", program)["fits_unless"].is_null());
}

// What PyTorch's programs of docs/measurements/h200.md hold of an H200 at most, with all their libraries: 14.3 GiB.
TEST_F(DryRunReportTest, TheProgramsOfTheH200StillFit) {
  json books = Books(14'672 * (kGiB >> 10) + 524 * (kGiB >> 10));
  books["library_use"] = {{"cudnn", true}, {"cublas", {{{"device", 0}, {"handles", 1}}}}};
  const Result run = Run("dry-run --device H200 -- " + Program(LeavingText("process-7.json", books) +
                                                               LeavingText("info-7.json", Info(nullptr, kGiB))));
  EXPECT_THAT(run.error, AllOf(HasSubstr("fits on H200 of 139.8"), Not(HasSubstr("unless"))));
}

TEST_F(DryRunReportTest, WhatIsInUseBesideTheProgramLeavesLess) {
  const std::string program =
      Program(LeavingText("process-7.json", Books(3 * kGiB)) + LeavingText("info-7.json", Info(nullptr, kGiB)));
  const std::string flags = "--capacity 16GiB --in-use 5GiB";
  EXPECT_THAT(Run("dry-run " + flags + " -- " + program).error,
              HasSubstr("fits on a device of 16.00 GiB: peak 3.00 GiB, 8.00 GiB to spare"));
  const json document = JsonOf(flags, program);
  EXPECT_EQ(document["account"]["peak_bytes"], 8 * kGiB);
  EXPECT_EQ(PartOf(document, "in use beside the program")["most_bytes"], 5 * kGiB);
  EXPECT_EQ(PartOf(document, "in use beside the program")["mark"], "given");
  EXPECT_TRUE(document["fits_unless"].is_null());
  EXPECT_THAT(Run("dry-run --capacity 2GiB --in-use 2GiB -- " + program).error, HasSubstr("of --in-use takes"));
}

TEST_F(DryRunReportTest, AHostsMemoryIsSharedWithItsProgramsAndItsPageCache) {
  const std::string program =
      Program(LeavingText("process-7.json", Books(3 * kGiB)) + LeavingText("info-7.json", Info(nullptr, kGiB)));
  const json document = JsonOf("--device GB10 --in-use 10GiB", program);
  EXPECT_EQ(document["fits_unless"]["who"], "the host's other programs and its page cache");
  const std::uint64_t on_host = PartOf(document, "the program on the host")["most_bytes"];
  EXPECT_GT(on_host, std::uint64_t{1} << 20);
  const json without = JsonOf("--device GB10", program);
  const std::uint64_t spare = document["fits_unless"]["bytes"].get<std::uint64_t>() + on_host + 10 * kGiB;
  EXPECT_EQ(without["fits_unless"]["bytes"].get<std::uint64_t>() +
                PartOf(without, "the program on the host")["most_bytes"].get<std::uint64_t>(),
            spare);
  EXPECT_THAT(Unwrapped(Run("dry-run --device GB10 -- " + program).error),
              HasSubstr("unless the host's other programs and its page cache take more than 1"));
  EXPECT_TRUE(JsonOf("--device H200", program)["fits_unless"].is_null());
}

TEST_F(DryRunReportTest, MadeUpValuesAndRefusedCallsAreToldMostFirst) {
  json books = Books(kGiB);
  books["made_up"] = {{{"line", "train.py:3"}, {"count", 1}, {"bytes", 4}},
                      {{"line", "train.py:9 step"}, {"count", 40}, {"bytes", 320}}};
  books["made_up_total"] = 41;
  books["refused"] = {{{"name", "cuOne"}, {"count", 1}}, {{"name", "cuMany"}, {"count", 9}}};
  const std::string text = Run("dry-run --values ones -- " + Program(LeavingText("process-7.json", books))).error;
  EXPECT_THAT(text, AllOf(HasSubstr("control flow may depend on 41 made-up values"), HasSubstr("they read as ones")));
  EXPECT_THAT(Unwrapped(text), HasSubstr("(--values); --value train.py:9=V gives one line another"));
  EXPECT_LT(text.find("train.py:9 step"), text.find("train.py:3"));
  EXPECT_LT(text.find("cuMany"), text.find("cuOne"));
}

TEST_F(DryRunReportTest, RanksAreInTheirOrder) {
  std::string lines;
  for (const int rank : {2, 0, 1}) {
    const std::string pid = std::to_string(100 - rank);
    lines += LeavingText("process-" + pid + ".json", Books(kGiB)) +
             LeavingText("info-" + pid + ".json", Info(rank, kGiB / 2));
  }
  const std::string program = Program(lines);
  const std::string text = Run("dry-run --devices 3 --capacity 16GiB -- " + program).error;
  EXPECT_LT(text.find("rank 0"), text.find("rank 1"));
  EXPECT_LT(text.find("rank 1"), text.find("rank 2"));
  EXPECT_THAT(text, HasSubstr("fits on 3 x a device of 16.00 GiB"));
  const json document = JsonOf("--devices 3", program);
  std::vector<int> ranks;
  for (const json& process : document["processes"]) ranks.push_back(process["rank"].get<int>());
  EXPECT_EQ(ranks, (std::vector<int>{0, 1, 2}));
}

// Every object of the schema is seen: no device, one that fits, which card is enough, a failure.
TEST_F(DryRunReportTest, JsonIsAsItsSchemaSays) {
  json rules = json::parse(FileBytes(ASHLAR_SOURCE_DIR "/docs/schemas/dry-run.schema.json"));
  json explain_rules = json::parse(FileBytes(ASHLAR_SOURCE_DIR "/docs/schemas/explain.schema.json"));
  json& explained = rules["$defs"]["dry_run"]["properties"]["explanation"];
  ASSERT_EQ(explained["anyOf"][1]["$ref"], "explain.schema.json#/$defs/explanation");
  explained = {{"type", {"object", "null"}}, {"description", "It is checked by the other schema."}};
  explain_rules["$ref"] = "#/$defs/explanation";
  tests::SchemaCheck schema(rules), explanation(explain_rules);
  EXPECT_THAT(schema.SchemaFaults(), IsEmpty());
  json books = Books(kGiB);
  books["made_up"] = {{{"line", "a.py:1"}, {"count", 1}, {"bytes", 4}}};
  books["refused"] = {{{"name", "cuOne"}, {"count", 1}}};
  books["devices"][0]["libraries"] = {{{"name", "libaaa.so"}, {"bytes", 1}}};
  json tight = Books(15 * kGiB);
  tight["library_use"] = CallsOfEightRanks();
  json reading = Info(nullptr, kGiB);
  reading["value_reads"] = {{{"line", "a.py:1 step"}, {"count", 1}}};
  const std::vector<json> documents = {
      JsonOf("", Program("")),
      JsonOf("--capacity 16GiB --workspaces cudnn", Program(LeavingText("process-7.json", books))),
      JsonOf("", Program(Training(20 * kGiB))),
      JsonOf("--device A100-40GB", Program(Training(39 * kGiB) + Leaving("oom-7-1.pickle", OutOfMemorySnapshot()), 1)),
      JsonOf("--capacity 16GiB", Program(LeavingText("process-7.json", tight))),
      JsonOf("", Program(LeavingText("process-7.json", books) + LeavingJax(kGiB, "") +
                         LeavingText("vllm-7.json", {{"kv_cache_bytes", 1}}) +
                         LeavingText("sglang-7.json", {{"kv_cache_bytes", 1}}))),
      JsonOf("--capacity 16GiB --value a.py:1=3",
             Program(LeavingText("process-7.json", books) + LeavingText("info-7.json", reading))),
      JsonOf("--capacity 16GiB --ranks 2 --roles 0",
             Program(LeavingText("process-7.json", books) + LeavingText("ranks-7.json", {{"rank", 0}, {"world", 2}})))};
  for (const json& document : documents) {
    ASSERT_TRUE(document.is_object());
    schema.Check(document);
    if (document["explanation"].is_object()) explanation.Check(document["explanation"]);
  }
  EXPECT_THAT(schema.errors(), IsEmpty());
  EXPECT_THAT(schema.UnseenObjects(), IsEmpty());
  EXPECT_THAT(explanation.errors(), IsEmpty());
  EXPECT_TRUE(documents[0]["fits"].is_null());
  EXPECT_EQ(documents[1]["fits"], true);
  EXPECT_EQ(documents[1]["peak_bytes"], kGiB);
  EXPECT_TRUE(documents[1]["cards"].is_null()) << "the device had a limit";
  EXPECT_TRUE(documents[2]["cards"].is_object());
  EXPECT_EQ(documents[2]["explained_pid"], 7);
  EXPECT_EQ(documents[3]["fits"], false);
  EXPECT_EQ(documents[3]["exit_code"], 1);
  EXPECT_EQ(documents[3]["machine"]["card"], "A100-40GB");
}

// The rows of a table, as the text has them: by the card's name.
std::string LineOf(const std::string& text, const std::string& card) {
  const std::size_t at = text.find(absl::StrCat("\n  ", card, " "));
  return at == std::string::npos ? "" : text.substr(at + 1, text.find('\n', at + 1) - at - 1);
}

TEST_F(DryRunReportTest, TheTableOfCardsAgreesWithTheJson) {
  const std::string program = Program(Training(20 * kGiB));
  const std::string text = Run("dry-run -- " + program).error;
  EXPECT_THAT(text, HasSubstr("WHICH CARD IS ENOUGH"));
  const json document = JsonOf("", program);
  bool has_enough = false;
  for (const json& row : document["cards"]["rows"]) {
    if (!row["has_verdict"].get<bool>()) continue;
    const bool fits = row["default"]["fits"].get<bool>();
    EXPECT_EQ(fits, row["default"]["headroom_bytes"].is_number()) << row;
    EXPECT_EQ(fits, row["default"]["failed_at"].is_null()) << row;
    EXPECT_TRUE(!has_enough || fits) << "more memory is not less: " << row["card"];
    if (fits && !has_enough) {
      EXPECT_THAT(text, HasSubstr("card that is enough: " + row["card"].get<std::string>()));
    }
    has_enough = has_enough || fits;
  }
  EXPECT_TRUE(has_enough);
  EXPECT_THAT(text, testing::ContainsRegex("\n  [0-9]+ [^\n]*\\(--json has each\\)\n"));
  EXPECT_EQ(LineOf(text, "RTX2060"), "") << "far below";
}

// Its kernels are those of the card that it was run as: what other cards would take is not known.
TEST_F(DryRunReportTest, ACardOfAnotherCapabilityThanTheRunsHasNoVerdict) {
  const std::string profile = Write("own", "name=Mine\ncompute_major=8\ncompute_minor=9\n");
  const std::string native = Program(
      LeavingText("process-7.json", Books(3 * kGiB)) +
      Leaving("native-7.log", Write("log", "ashlar-native-log 1\np 7 1\na 1 0 700000000 5242880 0 0 cudaMalloc\n")));
  struct Case {
    std::string flags, program, capability, name, spoken;
  };
  for (const Case& of :
       {Case{"", Program(Training(20 * kGiB)), "8.0", "A100-80GB", "as an A100 would run it: "},
        Case{"--profile " + profile, Program(Training(20 * kGiB)), "8.9", "Mine", "as 'Mine' would run it: "},
        Case{"", native, "8.0", "A100-80GB", "as an A100 would run it: "}}) {
    const std::string text = Run("dry-run --once " + of.flags + " -- " + of.program).error;
    const json document = JsonOf("--once " + of.flags, of.program);
    std::size_t verdicts = 0, shown = 0;
    for (const json& row : document["cards"]["rows"]) {
      const bool has_verdict = row["capability"] == of.capability;
      EXPECT_EQ(row["has_verdict"], has_verdict) << row;
      EXPECT_EQ(row["ran_as"], of.name);
      verdicts += has_verdict ? 1 : 0;
      EXPECT_EQ(row["default"]["fits"].is_boolean(), has_verdict) << row;
      EXPECT_TRUE(has_verdict || (row["expandable"].is_null() && row["best_found"].is_null())) << row;
      const std::string line = LineOf(text, row["card"].get<std::string>());
      if (line.empty()) continue;  // counted below the table
      ++shown;
      EXPECT_EQ(absl::StrContains(line, of.spoken), !has_verdict) << line;
      EXPECT_EQ(absl::StrContains(line, "  fits, ") || absl::StrContains(line, "  fails "), has_verdict) << line;
    }
    EXPECT_GT(shown, 4U);
    EXPECT_GT(verdicts, 1U);
    EXPECT_LT(verdicts, document["cards"]["rows"].size());
    EXPECT_THAT(text, HasSubstr("\"would run it\" is no verdict"));
  }
}

TEST_F(DryRunReportTest, OneHistoryIsKeptAsAFileAndSeveralAsAFolder) {
  const std::string one = folder_ + "one.pickle";
  EXPECT_EQ(Run("dry-run --capacity 64GiB -o " + one + " -- " + Program(Training(kGiB))).code, 0);
  EXPECT_EQ(FileBytes(one), FileBytes(OutOfMemorySnapshot()));
  std::string lines = Training(kGiB);
  for (const char* pid : {"8", "9"}) {
    lines += LeavingText(std::string("info-") + pid + ".json", Info(*pid - '8', kGiB)) +
             Leaving(std::string("history-") + pid + ".pickle", OutOfMemorySnapshot());
  }
  lines += Leaving("oom-9-1.pickle", OutOfMemorySnapshot());
  const std::string all = folder_ + "all";
  const Result result = Run("dry-run --capacity 64GiB -o " + all + " -- " + Program(lines));
  EXPECT_THAT(result.error, HasSubstr("kept: " + all));
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(all)) names.push_back(entry.path().filename().string());
  EXPECT_THAT(names, testing::UnorderedElementsAre("history-7.pickle", "history-rank0.pickle", "history-rank1.pickle",
                                                   "oom-rank1-1.pickle"));
}

TEST_F(DryRunReportTest, WhatCannotBeKeptOrReadIsTold) {
  const Result unkept = Run("dry-run --capacity 64GiB -o /proc/none.pickle -- " + Program(Training(kGiB)));
  EXPECT_EQ(unkept.code, 3);
  EXPECT_THAT(unkept.error, HasSubstr("-o: cannot write /proc/none.pickle"));
  EXPECT_EQ(Run("dry-run --capacity 64GiB -o /proc/none.pickle -- " + Program(Training(kGiB), 6)).code, 6)
      << "the program's own comes first";
  const Result nothing = Run("dry-run --capacity 64GiB -o " + folder_ + "x.pickle -- " + Program(""));
  EXPECT_THAT(nothing.error, HasSubstr("there is no history to keep"));
  const std::string half = Write("half", "{\"pid\": 7, \"dev");
  const Result cut = Run("dry-run -- " + Program(Leaving("process-7.json", half)));
  EXPECT_EQ(cut.code, 0);
  EXPECT_THAT(cut.error, HasSubstr("process-7.json: is no JSON object"));
  EXPECT_THAT(JsonOf("", Program(Leaving("process-7.json", half)))["notes"],
              Contains("process-7.json: is no JSON object, as of a process that was killed while it wrote"));
}

// A program may leave anything in its run folder.
TEST_F(DryRunReportTest, APipeOrALinkInTheRunFolderIsNotFollowed) {
  const std::string books = LeavingText("process-7.json", Books(kGiB));
  const std::string lines =
      "mkfifo \"$ASHLAR_RECORD/process-8.json\" \"$ASHLAR_RECORD/native-8.log\"\n"
      "ln -s /dev/zero \"$ASHLAR_RECORD/oom-8-1.pickle\"\n";
  const std::string shared = "\nrm -f \"$ASHLAR_RECORD/books\"; mkfifo \"$ASHLAR_RECORD/books\"\n";
  const Result result = Run("dry-run -- " + Program(lines + books + shared));
  EXPECT_EQ(result.code, 0);
  for (const std::string name : {"process-8.json", "oom-8-1.pickle", "native-8.log"}) {
    EXPECT_THAT(result.error, HasSubstr(name + ": is no file, but a pipe, a link or a folder"));
  }
  EXPECT_THAT(result.error, HasSubstr("peak 1.00 GiB"));
}

TEST_F(DryRunReportTest, CallsThatCouldNotBeWrittenAreTold) {
  json books = Books(kGiB);
  books["calls_lost"] = 1234;
  const Result result = Run("dry-run --calls /dev/full -- " + Program(LeavingText("process-7.json", books)));
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.error,
              AllOf(HasSubstr("--calls: 1,234 calls could not be written to /dev/full"), HasSubstr("peak 1.00 GiB")));
}

// Words of a command line may be any bytes.
TEST_F(DryRunReportTest, BytesThatAreNoUtf8LoseNoBooks) {
  std::string books = Books(kGiB).dump();
  books.replace(books.find("train.py"), 8, "\xff\xc2\x9b.py");
  const std::string program = Program(Leaving("process-7.json", Write("raw", books)));
  EXPECT_THAT(Run("dry-run -- " + program).error, AllOf(HasSubstr("peak 1.00 GiB"), Not(HasSubstr("\xc2\x9b"))));
}

// Text of a program that would change the screen, or break the JSON.
TEST_F(DryRunReportTest, TextOfTheProgramIsPrintedSafely) {
  json books = Books(kGiB);
  books["made_up"] = {{{"line", "evil\x1b[2J.py:1"}, {"count", 1}, {"bytes", 4}}};
  books["made_up_total"] = 1;
  const std::string program = Program(LeavingText("process-7.json", books));
  EXPECT_THAT(Run("dry-run -- " + program).error, AllOf(HasSubstr(".py:1"), Not(HasSubstr("\x1b"))));
  EXPECT_EQ(JsonOf("", program)["made_up"]["lines"][0]["line"], "evil\x1b[2J.py:1");
}

}  // namespace
}  // namespace ashlar
