// What an answer says to do: of a snapshot what was replayed, of a message alone what may be tried, and in which order.
#include "commands/explain/suggestions.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "allocator/base/units.h"
#include "analyzer/analyses/changes/program_changes.h"
#include "commands/explain/explain.h"
#include "commands/explain/explain_report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ashlar::answers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

std::vector<Explanation> Answer(const std::string& text) {
  const absl::StatusOr<std::vector<Explanation>> out = ExplainBytes(text, {});
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? *out : std::vector<Explanation>{};
}

std::vector<Suggestion> Actions(const std::string& text) {
  const std::vector<Explanation> answers = Answer(text);
  EXPECT_THAT(answers, SizeIs(1));
  return answers.empty() ? std::vector<Suggestion>{} : SuggestionsOf(answers.front());
}

TEST(SuggestionsTest, HolesAreTriedWithTheSettingThatClosesThem) {
  const std::vector<Suggestion> actions = Actions(
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of "
      "23.65 "
      "GiB of which 900.00 MiB is free. Process 77 has 22.77 GiB memory in use. Of the allocated memory 15.10 GiB is "
      "allocated by PyTorch, and 7.20 GiB is reserved by PyTorch but unallocated.");
  ASSERT_THAT(actions, SizeIs(3));
  EXPECT_EQ(actions[0].proof, Proof::kUnproven);
  EXPECT_THAT(actions[0].lines, ElementsAre("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"));
  EXPECT_THAT(actions[0].gain, HasSubstr("7.20 GiB"));
  EXPECT_THAT(actions[1].what, StartsWith("if that is not enough: halve the batch"));
  EXPECT_THAT(actions[2].what, StartsWith("else: "));
  EXPECT_THAT(actions[2].lines, ElementsAre("ashlar fit --capacity 23.65GiB -- python YOUR_PROGRAM.py"));
}

TEST(SuggestionsTest, TooMuchIsHeldLess) {
  const std::vector<Suggestion> actions = Actions(
      "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
      "14.58 "
      "GiB of which 300.00 MiB is free. Process 5 has 14.28 GiB memory in use. Of the allocated memory 13.90 GiB is "
      "allocated by PyTorch, and 60.00 MiB is reserved by PyTorch but unallocated.");
  ASSERT_THAT(actions, SizeIs(2));
  EXPECT_THAT(actions[0].what, StartsWith("halve the batch"));
  EXPECT_THAT(actions[1].what, HasSubstr("gradient checkpointing"));
  EXPECT_THAT(actions[1].what, HasSubstr("`ashlar fit` below"));
  EXPECT_THAT(actions[1].lines, ElementsAre(StartsWith("ashlar fit ")));
}

TEST(SuggestionsTest, AnothersMemoryIsLookedForWhereItLies) {
  const std::vector<Suggestion> actions = Actions(
      "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which 190.00 MiB is "
      "free. Process 4242 has 19.30 GiB memory in use. Process 77 has 4.10 GiB memory in use. Of the allocated memory "
      "3.50 GiB is allocated by PyTorch, and 120.00 MiB is reserved by PyTorch but unallocated.");
  ASSERT_THAT(actions, SizeIs(2));
  EXPECT_THAT(actions[0].lines, ElementsAre("nvidia-smi"));
  EXPECT_THAT(actions[1].what, HasSubstr("another device"));
}

// A table beside the message numbers the processes of the device; the failed one may be among them.
TEST(SuggestionsTest, AProcessThatATableNamesIsLookedFor) {
  const std::vector<Suggestion> actions = Actions(
      "RuntimeError: CUDA error: out of memory\n"
      "+-----------------------------------------------------------------------------------------+\n"
      "| NVIDIA-SMI 550.54.14              Driver Version: 550.54.14      CUDA Version: 12.4     |\n"
      "|   0  NVIDIA L4                      Off |   00000000:00:1E.0 Off |                    0 |\n"
      "| N/A   41C    P0             28W /   72W |   22800MiB /  23034MiB |      0%      Default |\n"
      "| Processes:                                                                              |\n"
      "|    0   N/A  N/A      3131      C   python                                      22780MiB |\n");
  ASSERT_THAT(actions, SizeIs(3));
  EXPECT_THAT(actions[0].what, HasSubstr("process 3131 still runs"));
  EXPECT_THAT(actions[0].what, HasSubstr("kill 3131"));
  EXPECT_THAT(actions[1].what, StartsWith("else it was this program: halve the batch"));
}

// Of a GB10, as its driver tells it: no process is named, and 119 to 122 GiB are the device.
TEST(SuggestionsTest, AnothersMemoryOfADeviceThatIsTheHostsIsLookedForThere) {
  const std::vector<Suggestion> actions = Actions(
      "CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 119.64 GiB of which 1.52 GiB is "
      "free. Of the allocated memory 29.80 GiB is allocated by PyTorch, and 650.00 MiB is reserved by PyTorch but "
      "unallocated.");
  ASSERT_THAT(actions, SizeIs(1));
  ASSERT_THAT(actions[0].lines, SizeIs(2));
  EXPECT_THAT(actions[0].lines[0], HasSubstr("/proc/meminfo"));
}

TEST(SuggestionsTest, OfAStateAloneTheRunIsToBeRecorded) {
  Explanation state;
  state.verdict.kind = analyses::OomVerdict::kUnknown;
  state.memory.accounting.reserved_bytes = 30;
  ASSERT_THAT(SuggestionsOf(state), SizeIs(2));
  EXPECT_THAT(SuggestionsOf(state)[0].lines, ElementsAre(StartsWith("ashlar record -- ")));
  EXPECT_THAT(SuggestionsOf(state)[1].lines, ElementsAre(HasSubstr("_record_memory_history")));
  state.memory.accounting.allocated_bytes = 20;
  state.memory.holders.stacks = {{std::string(analyses::kNoStackLabel), 12, 1}, {"cache.py:3 fill", 8, 2}};
  ASSERT_THAT(SuggestionsOf(state), SizeIs(3));
  EXPECT_EQ(SuggestionsOf(state)[2].what, "else: hold less at cache.py:3 fill, which made 8 B of the 20 B held");
  state.memory.accounting.reserved_bytes.reset();  // a profile: there is no run to record
  ASSERT_THAT(SuggestionsOf(state), SizeIs(1));
  EXPECT_THAT(SuggestionsOf(state).front().what, StartsWith("hold less at cache.py:3 fill"));
  state.failure.tried_bytes = 5;  // a call that failed, with more free than it asked for
  ASSERT_THAT(SuggestionsOf(state), SizeIs(1));
  EXPECT_THAT(SuggestionsOf(state).front().what, HasSubstr("limit of the memory pool"));
  state.failure.tried_bytes.reset();
  state.verdict.kind = analyses::OomVerdict::kHealthy;
  EXPECT_THAT(SuggestionsOf(state), IsEmpty());
}

// A failure with two rows that get past it: the second with the lower peak.
Explanation PastTwoWays() {
  Explanation out;
  out.verdict.kind = analyses::OomVerdict::kFragmentation;
  for (const auto& [conf, peak, ooms] : {std::tuple<std::string, std::uint64_t, std::uint64_t>{"", 90, 1},
                                         {"max_split_size_mb:64", 80, 0},
                                         {"expandable_segments:True", 70, 0}}) {
    whatif::WhatIfRow row;
    row.conf = conf;
    row.is_baseline = conf.empty();
    row.is_cut_off = true;
    row.peak_reserved_bytes = peak;
    row.ooms = ooms;
    out.what_ifs.rows.push_back(row);
  }
  return out;
}

TEST(SuggestionsTest, TheSettingToRunAgainUnderIsTheLowestThatGetsPast) {
  Explanation e = PastTwoWays();
  EXPECT_EQ(SettingToTry(e), "expandable_segments:True");
  whatif::ProjectedPart& next = e.what_ifs.rows[2].projected.emplace();
  EXPECT_EQ(SettingToTry(e), "expandable_segments:True");
  next.ooms = 1;  // its replay fails again: that is known
  EXPECT_EQ(SettingToTry(e), "max_split_size_mb:64");
  e.what_ifs.rows[1].ooms = 1;
  EXPECT_EQ(SettingToTry(e), std::nullopt);
  e = PastTwoWays();
  e.verdict.kind = analyses::OomVerdict::kOutside;
  EXPECT_EQ(SettingToTry(e), std::nullopt);
}

TEST(SuggestionsTest, ARunHadTheSettingOfItsBaseline) {
  Explanation e = PastTwoWays();
  EXPECT_FALSE(RanUnder(e, "expandable_segments:True"));  // a row that was replayed
  e.what_ifs.rows[2].is_baseline = true;
  EXPECT_TRUE(RanUnder(e, "expandable_segments:True"));
}

TEST(SuggestionsTest, WhatTheProgramItselfShowedComesFirst) {
  Explanation e = PastTwoWays();
  e.what_ifs.advice.paste = "export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64";
  e.what_ifs.run_again = SettingRun{"expandable_segments:True", true, 70 * kMiB};
  const std::vector<Suggestion> actions = SuggestionsOf(e);
  ASSERT_THAT(actions, SizeIs(1));
  EXPECT_EQ(actions[0].proof, Proof::kRun);
  EXPECT_EQ(ProofName(actions[0].proof), "run");
  EXPECT_THAT(actions[0].lines, ElementsAre("export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"));
  EXPECT_THAT(actions[0].gain, HasSubstr("ends: peak 70.00 MiB"));
}

// Each device has its own list of processes, and what runs without a GPU is a CUDA device.
TEST(SuggestionsTest, AnotherDevicesProgramsAreItsOwn) {
  const std::vector<Suggestion> outside = Actions(
      "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.10 GiB. GPU 0 has a total capacity of 63.98 GiB "
      "of which "
      "512.00 MiB is free. Of the allocated memory 20.40 GiB is allocated by PyTorch, and 81.00 MiB is reserved "
      "by PyTorch but unallocated.");
  ASSERT_THAT(outside, SizeIs(2));
  EXPECT_THAT(outside[0].lines, ElementsAre("rocm-smi --showpids"));
  const std::vector<Suggestion> full = Actions(
      "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 15.98 GiB "
      "of which "
      "412.00 MiB is free. Of the allocated memory 15.00 GiB is allocated by PyTorch, and 81.00 MiB is reserved "
      "by PyTorch but unallocated.");
  ASSERT_THAT(full, SizeIs(2));
  EXPECT_THAT(full[1].what, HasSubstr("gradient checkpointing"));
  EXPECT_THAT(full[1].lines, IsEmpty());
}

// What PyTorch's settings cannot raise is not said to be raised by them.
TEST(SuggestionsTest, ALimitThatTheMessageDoesNotNameIsLookedFor) {
  const std::vector<Suggestion> actions = Actions(
      "CUDA out of memory. Tried to allocate 260.00 MiB. GPU 0 has a total capacity of 39.39 GiB of which 21.40 GiB is "
      "free. Including non-PyTorch memory, this process has 17.98 GiB memory in use. Of the allocated memory 17.10 GiB "
      "is allocated by PyTorch, and 212.00 MiB is reserved by PyTorch but unallocated.");
  ASSERT_THAT(actions, SizeIs(2));
  EXPECT_THAT(actions[0].what, StartsWith("run it again"));
  EXPECT_THAT(actions[1].lines, ElementsAre("ulimit -v"));
  EXPECT_THAT(actions[1].what, Not(HasSubstr("memory_fraction")));
}

TEST(SuggestionsTest, ATensorLargerThanTheDeviceIsLookedAt) {
  const std::vector<Suggestion> actions = Actions(
      "  File \"/home/u/scores.py\", line 31, in pairs\n"
      "    d = x[:, None] - x[None]\n"
      "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 744.00 GiB. GPU 0 has a total capacity of 39.39 "
      "GiB of which 38.50 GiB is free. Including non-PyTorch memory, this process has 900.00 MiB memory in use. Of the "
      "allocated memory 400.00 MiB is allocated by PyTorch, and 10.00 MiB is reserved by PyTorch but unallocated.");
  ASSERT_THAT(actions, SizeIs(3));
  EXPECT_THAT(actions[0].what, HasSubstr("larger than the whole device (scores.py:31 pairs)"));
}

TEST(SuggestionsTest, AMessageWithoutFiguresHasAnAction) {
  const std::vector<Suggestion> actions = Actions("RuntimeError: CUDA error: out of memory");
  ASSERT_THAT(actions, SizeIs(2));
  EXPECT_THAT(actions[0].lines, ElementsAre("nvidia-smi"));
  EXPECT_THAT(actions[1].lines, ElementsAre(StartsWith("ashlar dry-run ")));
}

// No message of any kind is left without an action, and none is told that only a recording would tell.
TEST(SuggestionsTest, TheirOwnLeversAreNamed) {
  const std::vector<Suggestion> mps = Actions(
      "RuntimeError: MPS backend out of memory (MPS allocated: 10.20 GiB, other allocations: 1.30 GiB, max allowed: "
      "12.00 GiB). Tried to allocate 900.00 MiB on private pool.");
  ASSERT_THAT(mps, SizeIs(3));
  EXPECT_THAT(mps[2].what, HasSubstr("PYTORCH_MPS_HIGH_WATERMARK_RATIO"));
  const std::vector<Suggestion> npu = Actions(
      "RuntimeError: NPU out of memory. Tried to allocate 220.00 MiB (NPU 0; 29.50 GiB total capacity; 25.10 GiB "
      "already "
      "allocated; 25.10 GiB current active; 100.00 MiB free; 28.30 GiB reserved in total by PyTorch)");
  ASSERT_THAT(npu, SizeIs(3));
  EXPECT_THAT(npu[0].what, HasSubstr("PYTORCH_NPU_ALLOC_CONF=expandable_segments:True"));  // 3.1 GiB are in holes
}

TEST(SuggestionsTest, TheHostsMemoryIsNoMatterOfTheDevice) {
  const std::vector<Suggestion> actions = Actions(
      "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=8812.batch. Some of the step tasks have been "
      "OOM Killed.");
  ASSERT_THAT(actions, SizeIs(2));
  EXPECT_THAT(actions[0].what, HasSubstr("--mem"));
  EXPECT_THAT(actions[0].lines, ElementsAre("sacct -j 8812 --format=JobID,ReqMem,MaxRSS,State"));
}

// One thing is first, nothing is said of each that goes for all, and what was said is not said again below.
TEST(SuggestionsTest, WhatIsFirstIsOneThing) {
  const Explanation answer =
      Answer("RuntimeError: CUDA error at grid.cu:77 code=2(cudaErrorMemoryAllocation) \"cudaMalloc(&cells, n * 8)\"")
          .front();
  const std::vector<Suggestion> actions = SuggestionsOf(answer);
  ASSERT_THAT(actions, SizeIs(4));
  EXPECT_THAT(actions[0].what, HasSubstr("`cudaMalloc(&cells, n * 8)` at grid.cu:77"));
  for (std::size_t i = 1; i < actions.size(); ++i) EXPECT_THAT(actions[i].what, StartsWith("else: "));
  EXPECT_TRUE(SaysWhatActionsSay(answer));
  const std::string text = report::ToText(answer);
  EXPECT_THAT(text, Not(HasSubstr("WHAT WOULD HAVE HELPED")));
  EXPECT_EQ(text.find("not tried yet"), text.rfind("not tried yet"));
  EXPECT_NE(text.find("not tried yet"), std::string::npos);
}

TEST(SuggestionsTest, OthersLibrariesHaveTheirOwnLevers) {
  const std::vector<Suggestion> actions = Actions(
      "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 5120.00 MiB on device 0: cudaMalloc failed: out of "
      "memory");
  ASSERT_THAT(actions, SizeIs(4));
  EXPECT_THAT(actions[0].what, HasSubstr("-ngl"));
  EXPECT_THAT(actions[0].lines, IsEmpty());
}

// The variable that proves a cause is named in its remedy.
TEST(SuggestionsTest, TheVariableThatKeepsItIsNamed) {
  Explanation e;
  whatif::ProgramRemedy remedy;
  remedy.cause = analyses::CauseKind::kGraphKeptAlive;
  remedy.sentence = "Keep numbers, not tensors";
  e.why.remedies = {remedy};
  e.why.causes.resize(1);
  e.why.causes.front().finding.kind = remedy.cause;
  EXPECT_THAT(SuggestionsOf(e).front().what, Not(HasSubstr("held by")));
  trace::Holder holder;
  holder.kind = "graph";
  holder.name = "losses[]";
  holder.file = "train.py";
  e.why.causes.front().finding.holders = {holder};
  EXPECT_THAT(SuggestionsOf(e).front().what, HasSubstr("It is held by losses[]"));
}

TEST(SuggestionsTest, ALineIsAboutTheVariableAndTheSentenceBeginsWithIt) {
  Explanation e;
  whatif::ProgramRemedy remedy;
  remedy.cause = analyses::CauseKind::kGraphKeptAlive;
  remedy.sentence = std::string(analyses::changes::kNumbersNotTensors.sentence);
  remedy.python = {"of no variable"};
  e.why.remedies = {remedy};
  e.why.causes.resize(1);
  analyses::CauseFinding& finding = e.why.causes.front().finding;
  finding.kind = remedy.cause;
  finding.evidence = {"`losses[]` in train.py keeps the graphs of 46 steps: 14.00 GiB in 504 blocks"};
  trace::Holder holder;
  holder.kind = "graph";
  holder.name = "losses[]";
  holder.container = "list";
  finding.holders = {holder};
  const Suggestion named = SuggestionsOf(e).front();
  EXPECT_THAT(named.what, StartsWith("`losses[]` in train.py keeps the graphs of 46 steps: keep numbers"));
  EXPECT_THAT(named.what, Not(HasSubstr("held by")));
  EXPECT_THAT(named.lines, ElementsAre(HasSubstr("losses.append(loss.item())")));
  finding.holders.front().name = "model.*.seen[]";  // stands for several
  EXPECT_THAT(SuggestionsOf(e).front().lines, ElementsAre("of no variable"));
  EXPECT_THAT(SuggestionsOf(e).front().what, HasSubstr("It is held by model.*.seen[]"));
}

// Each thing to try keeps its command.
TEST(SuggestionsTest, CommandsOfAllThatMayBeTriedAreShown) {
  const std::string text = report::ToText(Answer("RuntimeError: CUDA error: out of memory").front());
  EXPECT_THAT(text, HasSubstr("\n               nvidia-smi\n"));
  EXPECT_THAT(text, HasSubstr("\n               ashlar dry-run --device CARD -- python YOUR_PROGRAM.py\n"));
}

// The action is the third line at the latest.
TEST(SuggestionsTest, StandRightUnderTheVerdict) {
  const std::string text = report::ToText(
      Answer("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which 190.00 "
             "MiB is free. Process 4242 has 19.30 GiB memory in use. Process 77 has 4.10 GiB memory in use. Of the "
             "allocated "
             "memory 3.50 GiB is allocated by PyTorch, and 120.00 MiB is reserved by PyTorch but unallocated.")
          .front());
  const std::size_t at = text.find("\nTRY FIRST ");
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_LE(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'), 3) << text;
}

}  // namespace
}  // namespace ashlar::answers
