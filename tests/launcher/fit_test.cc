// ashlar fit: which runs are made, what is told of each, and what is told where a program cannot be run again.
#include "tests/launcher/fit_test.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace ashlar {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(FitTest, SaysWhatIsWrongWithTheLine) {
  ExpectError(Run("fit --device T4"), 2, {"give the program, as in: ", "ashlar fit"});
  ExpectError(Run("fit -- true"), 2, {"give the card", "--device T4"});
  ExpectError(Run("fit --device T5 -- true"), 2, {"--device", "T5"});
  ExpectError(Run("fit --device T4 --budget soon -- true"), 2, {"--budget: 'soon'", "3min"});
  ExpectError(Run("fit --device T4 --budget 0s -- true"), 2, {"--budget: '0s'"});
  ExpectError(Run("fit --device T4 --jobs 0 -- true"), 2, {"--jobs: 0"});
  ExpectError(Run("fit --device T4 -- no_such_program"), 127, {"no_such_program"});
  ExpectError(Run("fit --device T4 -- true"), 3, {"no process trained or called a model of PyTorch"});
  EXPECT_THAT(Run("fit --device T4 -- sh -c 'exit 5'").error, HasSubstr("the program as it is ended with exit code 5"));
  EXPECT_EQ(Run("fit --device T4 -- sh -c 'exit 5'").code, 5);
  const Result engine = Run("fit --device T4 -- " + Script("engine", RunsOutOfMemory()));
  EXPECT_THAT(engine.error, HasSubstr("found no memory in room that no program fills"));
  EXPECT_EQ(engine.code, 1);
}

TEST_F(FitTest, WhatFitsAsItIsIsRunOnce) {
  const std::string program =
      Script("program", absl::StrCat("echo run >> ", folder_, "times\n", Leaves({Change("a", 1)}, 10 * kGiB)));
  const json answer = Answer("", program);
  EXPECT_EQ(answer["as_it_is"]["fits"], true);
  EXPECT_EQ(answer["as_it_is"]["peak_reserved_bytes"], 10 * kGiB);
  EXPECT_TRUE(answer["set"].is_null());
  EXPECT_EQ(FileBytes(folder_ + "times"), "run\n");
}

TEST_F(FitTest, EachChangeIsARowAndTheCheapestThatFitsIsProven) {
  const std::vector<json> changes = {Change("dear", 9), Change("cheap", 3), Change("useless", 1),
                                     Change("absent", 2, "no repeated blocks")};
  const auto does = [&](const std::string& name, std::uint64_t bytes) { return Leaves({Change(name, 1)}, bytes); };
  const json answer = Answer("", Program(changes, {{"dear", does("dear", 8 * kGiB)},
                                                   {"cheap", does("cheap", 12 * kGiB)},
                                                   {"useless", does("useless", 20 * kGiB)}}));
  EXPECT_EQ(answer["as_it_is"]["fits"], false);
  EXPECT_EQ(answer["as_it_is"]["known_by"], "run on the card");
  EXPECT_EQ(RowOf(answer["rows"], {"dear"})["peak_reserved_bytes"], 8 * kGiB);
  EXPECT_EQ(RowOf(answer["rows"], {"useless"})["fits"], false);
  EXPECT_EQ(RowOf(answer["rows"], {"useless"})["failed_step"], 2);
  EXPECT_TRUE(RowOf(answer["rows"], {"absent"}).is_null());
  EXPECT_EQ(answer["set"]["changes"], Names({"cheap"}));
  EXPECT_EQ(answer["set"]["known_by"], "run on the card");
  EXPECT_EQ(answer["stop_step"], 4) << "two behind the step that decided";
  EXPECT_EQ(answer["runs"], 10)
      << "as it is, the same on the card, three rows, three that count (as it is, dear, cheap), "
         "the proof, whose history is replayed, and as it is for its causes";
}

TEST_F(FitTest, EffectsDoNotAddUpSoASetIsRun) {
  const std::vector<json> changes = {Change("one", 2), Change("two", 3)};
  const auto does = [&](const std::vector<json>& made, std::uint64_t bytes) { return Leaves(made, bytes); };
  const std::string program = Program(changes, {{"one", does({Change("one", 2)}, 18 * kGiB)},
                                                {"two", does({Change("two", 3)}, 19 * kGiB)},
                                                {"one,two", does(changes, 9 * kGiB)}});
  const json answer = Answer("", program);
  EXPECT_EQ(answer["set"]["changes"], Names({"one", "two"}));
  const std::string text = Run("fit --device T4 --jobs 1 -- " + program).out;
  EXPECT_THAT(text, AllOf(HasSubstr("SETS"), HasSubstr("write(one)"), HasSubstr("write(two)"),
                          HasSubstr("python -m ashlar_gpu.fit --with one,two")));
}

// What costs nothing is tried with the others, and left out where it is not needed.
TEST_F(FitTest, AFreeChangeThatIsNotNeededIsLeftOut) {
  const std::vector<json> changes = {Change("free", 0), Change("idle", 0), Change("priced", 5)};
  const auto made = [&](const std::vector<std::string>& names) {
    std::vector<json> out;
    for (const std::string& name : names) out.push_back(Change(name, 1));
    return out;
  };
  const json answer =
      Answer("", Program(changes, {{"free", Leaves(made({"free"}), 19 * kGiB)},
                                   {"idle", Leaves(made({"idle"}), 20 * kGiB)},
                                   {"priced", Leaves(made({"priced"}), 18 * kGiB)},
                                   {"free,idle", Leaves(made({"free", "idle"}), 19 * kGiB)},
                                   {"free,idle,priced", Leaves(made({"free", "idle", "priced"}), 9 * kGiB)},
                                   {"idle,priced", Leaves(made({"idle", "priced"}), 18 * kGiB)},
                                   {"free,priced", Leaves(made({"free", "priced"}), 9 * kGiB)}}));
  EXPECT_EQ(answer["set"]["changes"], Names({"free", "priced"}));
}

TEST_F(FitTest, ARowThatTellsNothingSaysWhy) {
  const std::vector<json> changes = {Change("fails", 1), Change("short", 2), Change("gone", 3), Change("good", 9)};
  const json answer = Answer("", Program(changes, {{"fails", "echo ValueError: no such thing >&2; exit 1\n"},
                                                   {"short", Leaves({Change("short", 1)}, 9 * kGiB, 1)},
                                                   {"gone", Leaves({Change("gone", 1, "not seen")}, 9 * kGiB)},
                                                   {"good", Leaves({Change("good", 1)}, 9 * kGiB)}}));
  EXPECT_THAT(RowOf(answer["rows"], {"fails"})["why_not"].get<std::string>(), HasSubstr("ValueError: no such thing"));
  EXPECT_THAT(RowOf(answer["rows"], {"short"})["why_not"].get<std::string>(), HasSubstr("1 steps of 4"));
  EXPECT_THAT(RowOf(answer["rows"], {"gone"})["why_not"].get<std::string>(), HasSubstr("gone was not made: not seen"));
  EXPECT_TRUE(RowOf(answer["rows"], {"gone"})["fits"].is_null());
  EXPECT_EQ(answer["set"]["changes"], Names({"good"}));
}

TEST_F(FitTest, NoSetThatFitsIsExitCode1) {
  const json answer = Answer("", Program({Change("a", 1)}, {{"a", Leaves({Change("a", 1)}, 19 * kGiB)}}), 1);
  EXPECT_TRUE(answer["set"].is_null());
  EXPECT_EQ(RowOf(answer["rows"], {"a"})["fits"], false);
}

// One that asks for input, or finds what it wrote, does not come to its end: that is the answer, and no guess is made.
TEST_F(FitTest, AProgramThatCannotBeRunAgainIsToldOf) {
  const std::string program =
      Script("program",
             absl::StrCat("if [ -n \"$ASHLAR_APART\" ]; then echo EOFError: EOF when reading a line >&2; exit 1; fi\n",
                          Leaves({Change("a", 1)}, 20 * kGiB)));
  ExpectError(Run("fit --device T4 -- " + program), 3, {"cannot be run again", "EOFError"});
}

// Of the program's own argument: on the card, to its end, and one more fails.
TEST_F(FitTest, TheLargestValueIsTheOneBeforeTheFirstThatFails) {
  const std::string program =
      Script("program",
             absl::StrCat("value=8\nwhile [ $# -gt 0 ]; do case $1 in --n) value=$2; shift;; --n=*) value=${1#--n=};; "
                          "esac; shift; done\nif [ $value -gt 120 ] && [ -n \"$ASHLAR_APART\" ]; then\n",
                          RunsOutOfMemory(), "fi\n", Grows({})));
  for (const char* words : {" --other 3", " --n 16", " --n=16 x"}) {
    const json varied = Answer("--vary=--n:1..1000", program + words)["varied"];
    EXPECT_EQ(varied["name"], "--n");
    EXPECT_EQ(varied["found"], 120);
    EXPECT_EQ(varied["next"], 121);
    for (const json& value : varied["values"]) {
      EXPECT_EQ(value["run"]["fits"], value["value"] <= 120) << value;
      EXPECT_EQ(value["run"]["known_by"], "run on the card");
    }
  }
  const json some = Answer("--vary=--n:4,200,100", program)["varied"];
  EXPECT_EQ(some["found"], 100);
  EXPECT_EQ(some["values"].size(), 3U);
  EXPECT_TRUE(Answer("--vary=--n:130,200", program, 1)["varied"]["found"].is_null());
  const std::string text = Run("fit --device T4 --jobs 1 --vary={}:119..121 -- " + program + " --n={}").out;
  EXPECT_THAT(text, AllOf(HasSubstr("value 120 is the largest that fits on T4"), HasSubstr("121 fails")));
  ExpectError(Run("fit --device T4 --vary=--n -- true"), 2, {"--vary: '--n' is no ARGUMENT:VALUES", "1..256"});
  ExpectError(Run("fit --device T4 --vary=--n:9..1 -- true"), 2, {"--vary: '--n:9..1'"});
}

TEST_F(FitTest, TheLongestIsThatOfALengthThatVaries) {
  const std::string program =
      Script("program", absl::StrCat("value=8\n[ \"$1\" = --length ] && value=$2\nif [ $value -gt 120 ] && [ -n "
                                     "\"$ASHLAR_APART\" ]; then\n",
                                     RunsOutOfMemory(),
                                     "fi\n[ -n \"$ASHLAR_APART\" ] && [ \"$ASHLAR_FIT\" != blocks ] && exit 7\n",
                                     Grows({Change("blocks", 1)})));
  const json varied = Answer("--goal longest --with blocks --vary=--length:1..500", program)["varied"];
  EXPECT_EQ(varied["goal"], "longest");
  EXPECT_EQ(varied["found"], 120);
  EXPECT_EQ(varied["next"], 121);
  ExpectError(Run("fit --device T4 --goal longest -- true"), 2, {"--goal longest: give the argument of the length"});
  ExpectError(Run("fit --device T4 --with blocks -- true"), 2, {"--with: goes with --vary"});
  ExpectError(Run("fit --device T4 --with other --vary=--length:1..5 -- " + program), 2,
              {"--with: there is no change 'other': blocks"});
}

// By the peak in ample room, and then run as that card, on it.
TEST_F(FitTest, TheLeastCardIsLookedForInTheTable) {
  const std::vector<json> changes = {Change("a", 1), Change("b", 2), Change("useless", 3)};
  const std::string program =
      Script("program", absl::StrCat("case $ASHLAR_FIT in\na)\n", Leaves(changes, 18 * kGiB), ";;\nb)\n",
                                     Leaves(changes, 15 * kGiB),
                                     ";;\na,b)\nif grep -q 'name=NVIDIA GeForce RTX 2060' "
                                     "$ASHLAR_HOLLOW_RUN/machine; then\n",
                                     RunsOutOfMemory(), "fi\n", Leaves(changes, 5 * kGiB), ";;\n*)\n",
                                     Leaves(changes, 20 * kGiB), ";;\nesac\nexit 0\n"));
  const Result result = Run("fit --goal cards --jobs 1 --json -- " + program);
  EXPECT_EQ(result.code, 0) << result.error;
  const json cards = json::parse(result.out, nullptr, false)["cards"];
  ASSERT_EQ(cards.size(), 5U);
  EXPECT_EQ(cards[0]["card"], "L4");
  EXPECT_EQ(cards[0]["is_proven"], true);
  EXPECT_EQ(cards[1]["card"], "L4");
  EXPECT_EQ(cards[2]["card"], "RTX5080");
  EXPECT_EQ(cards[2]["is_proven"], false) << "by its peak alone";
  EXPECT_EQ(cards[4]["run"]["changes"], Names({"a", "b"}));
  EXPECT_EQ(cards[4]["card"], "RTX4060") << "the RTX2060 has room by the peak, and fails";
  EXPECT_EQ(cards[4]["is_proven"], true);
  EXPECT_THAT(Run("fit --goal cards --jobs 1 -- " + program).out,
              AllOf(HasSubstr("the least card: L4 of 22.03 GiB as it is"), HasSubstr("RTX4060 of 7.62 GiB with a, b")));
  ExpectError(Run("fit --device T4 --goal cards -- " + program), 2, {"--goal cards: looks for the least card"});
}

TEST_F(FitTest, TheLeastNumberOfCardsIsLookedForByTheProgramsOwnWords) {
  const std::string program =
      Script("program",
             absl::StrCat("if [ -n \"$ASHLAR_APART\" ]; then\ngrep -q devices=$1 $ASHLAR_HOLLOW_RUN/machine || exit 7\n"
                          "[ $1 -lt 3 ] && {\n",
                          RunsOutOfMemory(), "}\nfi\n", Leaves({}, 13 * kGiB)));
  const json varied = Answer("--goal cards --vary={}:1..8", program + " {}")["varied"];
  EXPECT_EQ(varied["goal"], "fewest cards");
  EXPECT_EQ(varied["found"], 3);
  EXPECT_EQ(varied["next"], 2);
  EXPECT_THAT(Run("fit --device T4 --goal cards --vary={}:1..8 -- " + program + " {}").out,
              HasSubstr("3 are enough of T4 of 14.76 GiB"));
}

// In ample room it reserves more than the card has, and on the card its allocator gives its cache back.
TEST_F(FitTest, WhatFitsOnTheCardAsItIsHasNoRows) {
  const std::string program =
      Script("program", absl::StrCat("if [ -z \"$ASHLAR_APART\" ]; then\n", Leaves({Change("a", 1)}, 20 * kGiB),
                                     "else\n", Leaves({Change("a", 1)}, 12 * kGiB), "fi\n"));
  const json answer = Answer("", program);
  EXPECT_EQ(answer["as_it_is"]["fits"], true);
  EXPECT_EQ(answer["as_it_is"]["known_by"], "run on the card");
  EXPECT_EQ(answer["as_it_is"]["peak_reserved_bytes"], 12 * kGiB) << "there";
  EXPECT_THAT(answer["rows"], IsEmpty());
  EXPECT_EQ(answer["runs"], 2) << "as it is, and the same on the card";
}

// The run that leaves them out asks for the same memory at each step up to the last of a row, the fourth; or not.
TEST_F(FitTest, RowsLeaveLargeRandomFillsOutWhereTheProgramAsksForTheSameMemoryWithoutThem) {
  json watched = Facts({Change("a", 1)}, 20 * kGiB);
  watched["drawn_seconds"] = 1000;
  watched["requests"] = {{10, 100}, {20, 200}, {30, 300}, {40, 400}, {50, 500}};
  const auto program = [&](const json& requests) {
    json left = watched;
    left["requests"] = requests;
    const std::string books = absl::StrCat(LeavingText("process-7.json", Books(20 * kGiB)),
                                           LeavingText("info-7.json", Info(nullptr, 20 * kGiB)));
    return Script("program",
                  absl::StrCat("echo $ASHLAR_FIT ${ASHLAR_FIT_DRAWN:+left} >> ", folder_, "runs\n",
                               "if [ -z \"$ASHLAR_APART\" ]; then\n", books, LeavingText("fit-7.json", watched),
                               "elif [ $ASHLAR_FIT = a ]; then\n", Leaves({Change("a", 1)}, 9 * kGiB),
                               "elif [ -n \"$ASHLAR_FIT_DRAWN\" ]; then\n", books, LeavingText("fit-7.json", left),
                               "else\n", RunsOutOfMemory(), "fi\n"));
  };
  const json answer = Answer("", program({{10, 100}, {20, 200}, {30, 300}, {40, 400}, {44, 404}}));
  EXPECT_EQ(answer["leaves_draws"], true);
  EXPECT_EQ(answer["set"]["changes"], Names({"a"}));
  EXPECT_THAT(Run("fit --device T4 -- " + folder_ + "program").out, HasSubstr("rows leave large random numbers"));
  const json other = Answer("", program({{10, 100}, {20, 200}, {30, 300}, {40, 401}, {50, 500}}));
  EXPECT_EQ(other["leaves_draws"], false);
  EXPECT_EQ(other["set"]["changes"], Names({"a"}));
}

// A shuffle decides whether the longest samples meet: each run after the first begins with them.
TEST_F(FitTest, WhereLengthsVaryTheLongestSamplesComeFirst) {
  json watched = Facts({Change("a", 1)}, 10 * kGiB);
  watched["lengths_vary"] = true;
  const auto program = [&](const std::string& worst) {
    return Script("program",
                  absl::StrCat("case $ASHLAR_FIT in\nworst-first,a)\n",
                               Leaves({Change("worst-first", 0), Change("a", 1)}, 9 * kGiB), ";;\nworst-first)\n",
                               worst, ";;\n*)\n", LeavingText("process-7.json", Books(10 * kGiB)),
                               LeavingText("info-7.json", Info(nullptr, 10 * kGiB)), LeavingText("fit-7.json", watched),
                               ";;\nesac\nexit 0\n"));
  };
  const std::string fails = absl::StrCat("if grep -q total_bytes=15 $ASHLAR_HOLLOW_RUN/machine; then\n",
                                         RunsOutOfMemory(), "fi\n", Leaves({Change("worst-first", 0)}, 20 * kGiB));
  const json answer = Answer("", program(fails));
  EXPECT_EQ(answer["has_worst_first"], true);
  EXPECT_EQ(answer["as_it_is"]["fits"], false);
  EXPECT_EQ(answer["own_order_bytes"], 10 * kGiB);
  EXPECT_EQ(answer["set"]["changes"], Names({"a"}));
  const std::string fits = Run("fit --device T4 -- " + program(Leaves({Change("worst-first", 0)}, 11 * kGiB))).out;
  EXPECT_THAT(fits, HasSubstr("as it is, in any order of its samples"));
  const json open = Answer("", program("echo TypeError: no lengths >&2; exit 1\n"));
  EXPECT_EQ(open["has_worst_first"], false);
  EXPECT_EQ(open["as_it_is"]["fits"], true);
  EXPECT_THAT(open["why_no_worst"].get<std::string>(), HasSubstr("TypeError: no lengths"));
}

TEST_F(FitTest, TheLargestBatchIsMadeFromOutside) {
  json told = Facts({}, 13 * kGiB);
  told["batch"] = {{"size", 32}, {"samples", 5000}, {"where", "train.py:9"}, {"why_not", ""}};
  std::string cases;
  for (const char* name : {"batch-size=32", "batch-size=64", "batch-size=96", "batch-size=112", "batch-size=120"}) {
    absl::StrAppend(&cases, name, ")\n", Leaves({Change(name, 1)}, 13 * kGiB), ";;\n");
  }
  const std::string program = Script(
      "program", absl::StrCat("case $ASHLAR_FIT in\nwatch)\n", Leaves({}, 13 * kGiB), LeavingText("fit-7.json", told),
                              ";;\n", cases, "*)\n", RunsOutOfMemory(), ";;\nesac\nexit 0\n"));
  const json varied = Answer("--goal largest-batch", program)["varied"];
  EXPECT_EQ(varied["name"], "batch");
  EXPECT_EQ(varied["found"], 120);
  EXPECT_EQ(varied["next"], 121);
  EXPECT_EQ(varied["where"], "train.py:9");
  EXPECT_TRUE(Answer("--goal largest-batch",
                     Script("program", absl::StrCat(Leaves({}, 13 * kGiB), LeavingText("fit-7.json", told))),
                     1)["varied"]["found"]
                  .is_null())
      << "a run that does not tell of the batch did not make it";
  told["batch"] = {{"size", 0}, {"samples", 0}, {"where", ""}, {"why_not", "its batches are of a sampler of its own"}};
  const std::string other = Script("other", absl::StrCat(Leaves({}, 13 * kGiB), LeavingText("fit-7.json", told)));
  ExpectError(Run("fit --device T4 --goal largest-batch -- " + other), 3, {"a sampler of its own", "--vary"});
}

// In runs of their own, whose peaks are not looked at.
TEST_F(FitTest, WhatTheSetComputesAndMovesIsCountedBesideTheProgram) {
  const std::vector<json> changes = {Change("a", 1)};
  const auto counted = [&](std::uint64_t operations) {
    json facts = Facts(changes, 40 * kGiB);
    facts["work"] = {
        {"operations", operations}, {"narrow_operations", 0}, {"memory_bytes", 32'000'000'000}, {"bus_bytes", 5 << 20}};
    return LeavingText("fit-7.json", facts);
  };
  const std::string program = Script(
      "program", absl::StrCat("if [ -n \"$ASHLAR_FIT_COUNTS\" ]; then\nif [ $ASHLAR_FIT = a ]; then\n", counted(1330),
                              "else\n", counted(1000), "fi\nexit 0\nfi\n", "case $ASHLAR_FIT in\na)\n",
                              Leaves(changes, 9 * kGiB), ";;\n*)\nif [ -n \"$ASHLAR_APART\" ]; then\n",
                              RunsOutOfMemory(), "fi\n", Leaves(changes, 20 * kGiB), ";;\nesac\nexit 0\n"));
  const json answer = Answer("", program);
  EXPECT_EQ(answer["as_it_is"]["work"]["operations"], 1000);
  EXPECT_EQ(answer["set"]["work"]["operations"], 1330);
  EXPECT_EQ(answer["set"]["work"]["bus_bytes"], 5 << 20);
  EXPECT_NEAR(answer["set"]["roofline_seconds"].get<double>(), 0.1, 0.001) << "32 GB at the T4's 320 GB/s";
  EXPECT_EQ(answer["set"]["peak_reserved_bytes"], 9 * kGiB);
  EXPECT_EQ(answer["rows"][0]["work"]["operations"], 1330) << "it fits";
  EXPECT_THAT(Run("fit --device T4 --jobs 1 -- " + program).out,
              AllOf(HasSubstr("1.33e+03 floating-point operations"), HasSubstr("5.00 MiB between host and device"),
                    HasSubstr("estimated: by the figures of the card")));
}

// Its steps are calls of the model, and nothing of it is cut off.
TEST_F(FitTest, AProgramThatDoesNotTrainRunsToItsEnd) {
  const std::vector<json> changes = {Change("a", 1)};
  const auto leaves = [&](std::uint64_t peak_bytes) {
    json facts = Facts(changes, peak_bytes, 60);
    facts["trains"] = false;
    return absl::StrCat(LeavingText("process-7.json", Books(peak_bytes)),
                        LeavingText("info-7.json", Info(nullptr, peak_bytes)), LeavingText("fit-7.json", facts));
  };
  const std::string program =
      Script("program", absl::StrCat("[ -n \"$ASHLAR_FIT_STOP\" ] && exit 7\ncase $ASHLAR_FIT in\na)\n",
                                     leaves(9 * kGiB), ";;\n*)\nif [ -n \"$ASHLAR_APART\" ]; then\n", RunsOutOfMemory(),
                                     "fi\n", leaves(20 * kGiB), ";;\nesac\nexit 0\n"));
  const json answer = Answer("", program);
  EXPECT_EQ(answer["set"]["changes"], Names({"a"}));
  EXPECT_TRUE(answer["stop_step"].is_null());
}

// The free change that needs least is taken, not the first of the table.
TEST_F(FitTest, OfFreeChangesTheOneOfTheLeastPeakIsTaken) {
  const std::vector<json> changes = {Change("first", 0), Change("least", 0)};
  const json answer = Answer("", Program(changes, {{"first", Leaves({Change("first", 0)}, 12 * kGiB)},
                                                   {"least", Leaves({Change("least", 0)}, 8 * kGiB)}}));
  EXPECT_EQ(answer["set"]["changes"], Names({"least"}));
}

// What a set leaves as it is takes more than the card has: it is not run.
TEST_F(FitTest, SetsThatCannotFitAreNotRun) {
  json lean = Change("lean", 9);
  lean["lessens"] = {"states"};
  const std::vector<json> changes = {Change("half", 1), Change("blocks", 2), lean};
  const auto held = [&](const std::vector<json>& made, std::uint64_t peak_bytes) {
    json facts = Facts(made, peak_bytes);
    facts["held"] = {{{"what", "parameters"}, {"bytes", 6 * kGiB}}, {{"what", "states"}, {"bytes", 12 * kGiB}}};
    return absl::StrCat(LeavingText("process-7.json", Books(peak_bytes)),
                        LeavingText("info-7.json", Info(nullptr, peak_bytes)), LeavingText("fit-7.json", facts));
  };
  const std::string times = folder_ + "times";
  std::string cases;
  for (const char* name : {"half", "blocks", "lean", "half,blocks", "half,lean", "blocks,lean", "half,blocks,lean"}) {
    const bool fits = std::string(name) == "blocks,lean";
    std::vector<json> made;
    for (const json& change : changes) made.push_back(change);
    absl::StrAppend(&cases, name, ")\n", held(made, (fits ? 13 : 20) * kGiB), ";;\n");
  }
  const std::string program =
      Script("program", absl::StrCat("echo $ASHLAR_FIT >> ", times, "\ncase $ASHLAR_FIT in\n", cases,
                                     "*)\nif [ -n \"$ASHLAR_APART\" ]; then\n", RunsOutOfMemory(), "fi\n",
                                     held(changes, 20 * kGiB), ";;\nesac\nexit 0\n"));
  const json answer = Answer("", program);
  EXPECT_EQ(answer["set"]["changes"], Names({"blocks", "lean"}));
  EXPECT_EQ(answer["pruned_sets"], 3) << "half, blocks, and both: the states stay";
  EXPECT_EQ(answer["held"][1]["bytes"], 12 * kGiB);
  EXPECT_THAT(Run("fit --device T4 --jobs 1 -- " + program).out, HasSubstr("3 sets were not run, as they cannot fit"));
}

// Rows that the time does not reach are told, and no set has their changes.
TEST_F(FitTest, WhatTheBudgetDoesNotReachIsSaid) {
  const std::vector<json> changes = {Change("slow", 1), Change("late", 2)};
  const std::string slow = absl::StrCat("sleep 2\n", Leaves({Change("slow", 1)}, 19 * kGiB));
  const json answer = Answer("--budget 1s", Program(changes, {{"slow", slow}, {"late", Leaves({}, 9 * kGiB)}}), 1);
  EXPECT_THAT(RowOf(answer["rows"], {"late"})["why_not"].get<std::string>(), HasSubstr("the time was up"));
  EXPECT_EQ(answer["untried_changes"], 1);
  EXPECT_THAT(answer["remarks"].dump(), HasSubstr("1 change and 1 dearer set were not tried"));
}

// What a change keeps on the host must have room there.
TEST_F(FitTest, TheHostMustHaveRoomForWhatIsKeptThere) {
  const std::vector<json> changes = {Change("moves", 1), Change("stays", 9)};
  json facts = Facts({changes[0]}, 8 * kGiB);
  facts["host_bytes"] = 3 * kGiB;
  const std::string moves =
      absl::StrCat(LeavingText("process-7.json", Books(8 * kGiB)), LeavingText("info-7.json", Info(nullptr, 8 * kGiB)),
                   LeavingText("fit-7.json", facts));
  const std::string program = Program(changes, {{"moves", moves}, {"stays", Leaves({changes[1]}, 9 * kGiB)}});
  const json roomy = Answer("--host-memory 3GiB", program);
  EXPECT_EQ(roomy["set"]["changes"], Names({"moves"}));
  EXPECT_EQ(roomy["set"]["host_bytes"], 3 * kGiB);
  const json narrow = Answer("--host-memory 2GiB", program);
  EXPECT_EQ(narrow["set"]["changes"], Names({"stays"}));
  EXPECT_EQ(RowOf(narrow["rows"], {"moves"})["fits"], false);
  EXPECT_EQ(RowOf(narrow["rows"], {"moves"})["is_over_host"], true);
  EXPECT_THAT(RowOf(narrow["rows"], {"moves"})["costs"].get<std::string>(),
              HasSubstr("3.00 GiB on the host, which has 2.00 GiB"));
  EXPECT_GT(Answer("", program)["host_memory_bytes"], 0);
  ExpectError(Run("fit --device T4 --host-memory much -- true"), 2, {"--host-memory", "much"});
}

// A dear change of the table turns out to be cheap.
TEST_F(FitTest, TheOrderOfSetsGoesByWhatWasCounted) {
  const std::vector<json> changes = {Change("rough", 1), Change("counted", 9)};
  const auto counts = [&](const char* name, std::uint64_t operations) {
    json facts = Facts(changes, kGiB);
    facts["work"] = {{"operations", operations}, {"narrow_operations", 0}, {"memory_bytes", 0}, {"bus_bytes", 0}};
    return absl::StrCat(name, ")\n", LeavingText("fit-7.json", facts), ";;\n");
  };
  const std::uint64_t step = 1'000'000'000'000;
  const std::string counting =
      absl::StrCat("if [ -n \"$ASHLAR_FIT_COUNTS\" ]; then\ncase $ASHLAR_FIT in\n", counts("rough", 2 * step),
                   counts("counted", step + step / 100), counts("*", step), "esac\nexit 0\nfi\n");
  const auto does = [&](const json& change) { return Leaves({change}, 8 * kGiB); };
  const std::string program = Script(
      "counted_program", absl::StrCat(counting, "case $ASHLAR_FIT in\nrough)\n", does(changes[0]), ";;\ncounted)\n",
                                      does(changes[1]), ";;\n*)\nif [ -n \"$ASHLAR_APART\" ]; then\n",
                                      RunsOutOfMemory(), "fi\n", Leaves(changes, 20 * kGiB), ";;\nesac\nexit 0\n"));
  const json answer = Answer("", program);
  EXPECT_EQ(answer["set"]["changes"], Names({"counted"}));
  EXPECT_EQ(answer["set"]["work"]["operations"], step + step / 100);
  EXPECT_EQ(RowOf(answer["rows"], {"rough"})["work"]["operations"], 2 * step);
}

// The diff is that of the proof, which has the whole set.
TEST_F(FitTest, TheSetHasTheDiffOfItsProof) {
  const std::vector<json> changes = {Change("a", 1)};
  json facts = Facts(changes, 8 * kGiB);
  facts["diff"] = {{"text", "--- train.py\n+++ train.py\n"}, {"changes", {"a"}}};
  const std::string program = Program(changes, {{"a", absl::StrCat(LeavingText("process-7.json", Books(8 * kGiB)),
                                                                   LeavingText("info-7.json", Info(nullptr, 8 * kGiB)),
                                                                   LeavingText("fit-7.json", facts))}});
  const json answer = Answer("", program);
  EXPECT_EQ(answer["set"]["diff"]["text"], "--- train.py\n+++ train.py\n");
  EXPECT_TRUE(RowOf(answer["rows"], {"a"})["diff"].is_null());
}

TEST_F(FitTest, TheLauncherHasTheSetAndTheProgramsWords) {
  const std::vector<json> changes = {Change("a", 1), Change("b", 2)};
  const std::string program = Program(changes, {{"a", Leaves({changes[0]}, 8 * kGiB)}});
  const std::string python = folder_ + "python3.11";  // runs /bin/sh's lines, and takes options
  std::filesystem::copy_file(program, python);
  const std::string launcher = folder_ + "launch.py";
  Answer("--only a --write " + launcher, python + " -u -X dev train.py --epochs 'a \"b\"'");
  EXPECT_THAT(FileBytes(launcher), AllOf(HasSubstr("WORDS = [\"--with\", \"a\", \"train.py\"]\n"),
                                         HasSubstr("ARGUMENTS = [\"--epochs\", \"a \\\"b\\\"\"]\n"),
                                         HasSubstr("main(WORDS + (sys.argv[1:] or ARGUMENTS))")));
  Answer("--only a --write " + launcher, python + " -m package.train 1");
  EXPECT_THAT(FileBytes(launcher), HasSubstr("WORDS = [\"--with\", \"a\", \"-m\", \"package.train\"]\n"));
  ExpectError(Run("fit --device T4 --write " + launcher + " -- true"), 2, {"--write: the launcher runs a script"});
  ExpectError(Run("fit --device T4 --write " + launcher + " -- " + python + " -c x"), 2, {"--write: the launcher"});
}

TEST_F(FitTest, OnlyWhatIsNamedIsTried) {
  const std::vector<json> changes = {Change("a", 1), Change("b", 2)};
  const std::string program = Program(changes, {{"b", Leaves({Change("b", 2)}, 9 * kGiB)}});
  const json answer = Answer("--only b", program);
  EXPECT_EQ(answer["rows"].size(), 1U);
  EXPECT_EQ(answer["changes"][0]["why_not"], "--only leaves it out");
  EXPECT_EQ(answer["set"]["changes"], Names({"b"}));
  ExpectError(Run("fit --device T4 --only c -- " + program), 2, {"--only: there is no change 'c'", "a, b"});
}

// What a launcher that was killed left goes; what others name as we name ours stays.
TEST_F(FitTest, AFolderOfTheUsersIsNotTakenForOneThatWasLeft) {
  const auto make = [&](const std::string& name, const std::string& file) {
    const std::string path = folder_ + name;
    EXPECT_EQ(mkdir(path.c_str(), 0700), 0);
    std::ofstream(path + file) << "words";
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
    return path;
  };
  const std::string users = make("ashlar-models", "/weights");
  const std::string left = make("ashlar-a1b2c3", "/lock");
  const std::vector<json> changes = {Change("a", 1)};
  const std::string program = Program(changes, {{"a", Leaves(changes, 9 * kGiB)}});
  const std::string before = std::getenv("TMPDIR") != nullptr ? std::getenv("TMPDIR") : "/tmp";
  setenv("TMPDIR", folder_.c_str(), 1);
  const Result result = Run("fit --device T4 -- " + program);
  setenv("TMPDIR", before.c_str(), 1);
  EXPECT_EQ(result.code, 0) << result.error;
  EXPECT_EQ(FileBytes(users + "/weights"), "words");
  EXPECT_FALSE(std::filesystem::exists(left));
}

// The program's own output goes to standard error, and what its further runs write goes nowhere.
TEST_F(FitTest, NothingOfTheUsersIsWrittenTwice) {
  const std::vector<json> changes = {Change("a", 1)};
  const std::string out = folder_ + "log";
  const std::string program =
      Script("program", absl::StrCat("echo words\necho line >> ", out,
                                     "\nif [ -n \"$ASHLAR_APART\" ] && [ \"$ASHLAR_FIT\" = watch ]; then\n",
                                     RunsOutOfMemory(), "fi\n", "if [ \"$ASHLAR_FIT\" = a ]; then\n",
                                     Leaves(changes, 9 * kGiB), "else\n", Leaves(changes, 20 * kGiB), "fi\nexit 0\n"));
  const Result result = Run("fit --device T4 --json -- " + program);
  EXPECT_EQ(result.code, 0) << result.error;
  EXPECT_EQ(json::parse(result.out, nullptr, false)["set"]["changes"], Names({"a"}));
  EXPECT_EQ(FileBytes(out), "line\n");
  EXPECT_THAT(result.error, HasSubstr("words"));
}

}  // namespace
}  // namespace ashlar
