#include "analyzer/analyses/steps/continuation.h"

#include <cctype>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/rng.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/steps/alignment.h"
#include "gtest/gtest.h"

namespace ashlar::analyses {
namespace {

// A program drawn as letters: "a3" allocates 3 MiB at the place a, "-a" frees the oldest live block of a. The place is
// the stack.
class Drawing {
 public:
  explicit Drawing(bool has_stacks = true) : has_stacks_(has_stacks) {}

  Drawing& Draw(const std::string& letters) {
    for (std::size_t i = 0; i < letters.size(); ++i) {
      if (letters[i] == ' ') continue;
      if (letters[i] == '-') {
        Free(letters[++i]);
      } else {
        std::size_t end = i + 1;
        while (end < letters.size() && std::isdigit(static_cast<unsigned char>(letters[end])) != 0) ++end;
        Ask(letters[i], std::stoull("0" + letters.substr(i + 1, end - i - 1)) * kMiB);
        i = end - 1;
      }
    }
    return *this;
  }
  std::uint32_t Ask(char place, std::uint64_t bytes) {
    live_[place].push_back(trace_.id_count);
    stacks_.push_back(has_stacks_ ? static_cast<trace::StackId>(place) : trace::kNoStack);
    trace_.requests.push_back({bytes, Stream{}, trace_.id_count, trace::OpKind::kAlloc, 0});
    return trace_.id_count++;
  }
  void Free(char place) {
    FreeId(live_[place].front());
    live_[place].erase(live_[place].begin());
  }
  void FreeId(std::uint32_t id) {
    stacks_.push_back(trace::kNoStack);
    trace_.requests.push_back({0, Stream{}, id, trace::OpKind::kFree, 0});
  }

  const trace::RequestTrace& trace() const { return trace_; }
  // Cut off at a position, which failed.
  CutOffRun CutAt(std::size_t failed) const { return {&trace_, stacks_, failed}; }
  CutOffRun CutAtEnd() const { return CutAt(trace_.requests.size() - 1); }

 private:
  bool has_stacks_;
  trace::RequestTrace trace_;
  std::vector<trace::StackId> stacks_;
  std::map<char, std::vector<std::uint32_t>> live_;
};

// Requests as MiB, frees as the MiB of the block: "3 -1 4". Of the projected ones the first `count`.
std::string Projected(const Continuation& next, std::size_t count) {
  std::map<std::uint32_t, std::uint64_t> bytes;
  std::string out;
  for (std::size_t i = 0; i < next.requests.requests.size() && i <= next.failed + count; ++i) {
    const trace::Op& op = next.requests.requests[i];
    if (op.kind == trace::OpKind::kAlloc) bytes[op.id] = op.bytes / kMiB;
    if (i <= next.failed) continue;
    absl::StrAppend(&out, out.empty() ? "" : " ", op.kind == trace::OpKind::kFree ? "-" : "", bytes[op.id]);
  }
  return out;
}

constexpr char kStep[] = "a1 b2 c3 -a d4 -b -c -d";

TEST(AlignmentTest, AnEqualHistoryIsCountedBackwards) {
  const std::vector<std::uint32_t> tokens = {1, 2, 3, 9, 1, 2, 3};
  EXPECT_EQ(EqualHistories(tokens), (std::vector<std::size_t>{0, 0, 3, 0, 0, 0, 0}));
}

TEST(AlignmentTest, ARequestMoreInBetweenIsSteppedOver) {
  const std::vector<std::uint32_t> tokens = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 99, 5, 6, 7, 8, 9};
  const std::optional<Alignment> found = AlignEnd(tokens, tokens.size() - 1);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->at, 8u);
  EXPECT_EQ(found->partner[9], 0u);
  EXPECT_EQ(found->partner[13], kNoPartner);
  EXPECT_DOUBLE_EQ(found->ShareSince(9), 0.9);
}

TEST(AlignmentTest, ATokenThatStandsNowhereBeforeHasNoPlace) {
  EXPECT_FALSE(AlignEnd(std::vector<std::uint32_t>{1, 2, 1, 2, 3}, 4).has_value());
}

TEST(ContinuationTest, TheRestOfTheStepFollowsWithItsFrees) {
  Drawing drawing;
  for (int step = 0; step < 3; ++step) drawing.Draw(kStep);
  const Continuation next = Continue(drawing.Draw("a1 b2").CutAtEnd());
  ASSERT_TRUE(next.IsKnown()) << next.unknown;
  EXPECT_EQ(Projected(next, 14), "3 -1 4 -2 -3 -4 1 2 3 -1 4 -2 -3 -4");
  EXPECT_EQ(next.growth_bytes_per_step, 0u);
  EXPECT_DOUBLE_EQ(next.equal_share, 1);
}

TEST(ContinuationTest, SizesFollowThoseThatWereSeen) {
  // What stands at c is not seen yet: it grows as a and b did. The block of p is older than the step, and keeps its
  // size; so does the gradient of its size that outlives the step.
  Drawing drawing;
  drawing.Draw("p5");
  for (int step = 0; step < 3; ++step) drawing.Draw("a10 b20 c30 g5 -a -b -c o1 -o -g");
  const Continuation next = Continue(drawing.Draw("a20 b40").CutAtEnd());
  ASSERT_TRUE(next.IsKnown()) << next.unknown;
  EXPECT_EQ(Projected(next, 4), "60 5 -20 -40");
}

TEST(ContinuationTest, ALeakGrowsAStep) {
  Drawing drawing;
  for (int step = 0; step < 5; ++step) drawing.Draw("a1 b2 x7 c3 -a -b -c");
  CutOffRun run = drawing.Draw("a1 b2").CutAtEnd();
  EXPECT_FALSE(Continue(run).IsKnown());  // as layers of one pass would: nothing tells that they are steps
  run.step_begin = drawing.trace().requests.size() - 2;
  const Continuation next = Continue(run);
  ASSERT_TRUE(next.IsKnown()) << next.unknown;
  EXPECT_EQ(next.growth_bytes_per_step, 7 * kMiB);
}

TEST(ContinuationTest, WhatGrowsAlikeStepByStepGrowsOn) {
  Drawing drawing;
  drawing.Draw("k10");
  for (int token = 1; token < 7; ++token) drawing.Draw(absl::StrCat("a1 b2 -a k", 10 + 3 * token, " -k -b"));
  CutOffRun run = drawing.Draw("a1 b2").CutAtEnd();
  run.step_begin = drawing.trace().requests.size() - 2;
  const Continuation next = Continue(run);
  ASSERT_TRUE(next.IsKnown()) << next.unknown;
  EXPECT_EQ(Projected(next, 12), "-1 31 -28 -2 1 2 -1 34 -31 -2 1 2");
  EXPECT_EQ(next.growth_bytes_per_step, 3 * kMiB);
}

// Files that are read from the smallest to the largest: the next one is larger than any so far.
TEST(ContinuationTest, WhatHasRisenInEachOfTheLastStepsMayRiseOn) {
  const auto is_rising = [](const std::vector<int>& sizes) {
    Drawing drawing;
    for (const int size : sizes) drawing.Draw(absl::StrCat("a1 b", size, " c", size, " -a -b -c"));
    const Continuation next = Continue(drawing.Draw("a1 b30").CutAtEnd());
    EXPECT_TRUE(next.IsKnown()) << next.unknown;
    return next.is_rising;
  };
  EXPECT_TRUE(is_rising({9, 12, 16, 21, 24, 26}));
  EXPECT_FALSE(is_rising({9, 12, 21, 16, 24, 26}));
  EXPECT_FALSE(is_rising({30, 30, 30, 30, 30, 30}));
}

TEST(ContinuationTest, WhatTheFirstStepMadeIsNotMadeAgain) {
  Drawing drawing;
  drawing.Draw("p90 a10 b20 c30 d3 e3 f3 g3 h3 -a -b -c -d -e -f -g -h s1 a10 b20 c30 d3 e3 f3 g3 h3");
  CutOffRun run = drawing.CutAtEnd();
  EXPECT_FALSE(Continue(run).IsKnown());  // nothing tells that this is a step
  run.step_begin = drawing.trace().requests.size() - 8;
  const Continuation next = Continue(run);
  ASSERT_TRUE(next.IsKnown()) << next.unknown;
  EXPECT_EQ(Projected(next, 11), "-10 -20 -30 -3 -3 -3 -3 -3 10 20 30");
}

TEST(ContinuationTest, WithoutAnEarlierStepNothingIsKnown) {
  Drawing layers;  // the layers of one pass: each leaves its activation behind
  layers.Draw("p1 q1 r1");
  for (int layer = 0; layer < 12; ++layer) layers.Draw("a1 b2 -a c3");
  EXPECT_FALSE(Continue(layers.Draw("a1 b2").CutAtEnd()).IsKnown());
  EXPECT_FALSE(Continue(Drawing().Draw("a1 b2 c3 d4").CutAtEnd()).IsKnown());
  EXPECT_FALSE(Continue(Drawing().Draw("a1").CutAtEnd()).IsKnown());
}

TEST(ContinuationTest, AStepThatFailedAndWentOnTellsNothing) {
  Drawing drawing;
  for (int step = 0; step < 4; ++step) drawing.Draw(kStep);
  const std::size_t last_step = drawing.trace().requests.size() - 7;  // b of the fourth step
  drawing.Draw("a1 b2");
  CutOffRun run = drawing.CutAtEnd();
  EXPECT_TRUE(Continue(run).IsKnown());
  run.earlier_failures = {last_step};
  const Continuation next = Continue(run);
  EXPECT_FALSE(next.IsKnown());
  EXPECT_NE(next.unknown, "");
}

TEST(ContinuationTest, WithoutStacksSizesAreThePlaces) {
  Drawing drawing(false);
  for (int step = 0; step < 3; ++step) drawing.Draw(kStep);
  const Continuation next = Continue(drawing.Draw("a1 b2").CutAtEnd());
  ASSERT_TRUE(next.IsKnown()) << next.unknown;
  EXPECT_EQ(Projected(next, 6), "3 -1 4 -2 -3 -4");
}

// A training program: parameters, then steps of layers, a loss, a backward pass whose places are all alike, gradients
// that live until the next step begins, and now and then a request more.
class DrawnTraining {
 public:
  DrawnTraining(Rng& rng, bool varies) : layers_(static_cast<char>(rng.Between(2, 9))) {
    for (char layer = 0; layer < layers_; ++layer) weights_.push_back(rng.Between(1, 900) * 4096 + 512);
    for (const std::uint64_t bytes : weights_) drawing_.Ask('p', bytes);
    const std::uint64_t steps = rng.Between(5, 8);
    for (std::uint64_t step = 0; step < steps; ++step) {
      begins_.push_back(drawing_.trace().requests.size());
      Step(varies ? rng.Between(1, 64) : 16, rng.Below(3) == 0);
    }
  }

  const Drawing& drawing() const { return drawing_; }
  const std::vector<std::size_t>& begins() const { return begins_; }

 private:
  void Step(std::uint64_t batch, bool logs) {
    for (const std::uint32_t id : gradients_) drawing_.FreeId(id);
    gradients_.clear();
    std::vector<std::uint32_t> activations;
    for (char layer = 0; layer < layers_; ++layer) {
      const std::uint32_t scratch = drawing_.Ask('s', batch * 1024 * static_cast<std::uint64_t>(layer + 3));
      activations.push_back(
          drawing_.Ask(static_cast<char>('A' + layer), batch * 7680 * static_cast<std::uint64_t>(layer + 1)));
      drawing_.FreeId(scratch);
    }
    if (logs) drawing_.FreeId(drawing_.Ask('l', 512));
    const std::uint32_t loss = drawing_.Ask('z', batch * 50'000);
    for (char layer = layers_; layer-- > 0;) {
      const std::uint32_t flowing = drawing_.Ask('b', batch * 7680 * static_cast<std::uint64_t>(layer + 1));
      gradients_.push_back(drawing_.Ask('b', weights_[static_cast<std::size_t>(layer)]));
      drawing_.FreeId(activations[static_cast<std::size_t>(layer)]);
      drawing_.FreeId(flowing);
    }
    drawing_.FreeId(loss);
    for (const std::uint64_t bytes : weights_) drawing_.FreeId(drawing_.Ask('o', bytes));
  }

  char layers_;
  Drawing drawing_;
  std::vector<std::uint64_t> weights_;
  std::vector<std::uint32_t> gradients_;
  std::vector<std::size_t> begins_;
};

struct Agreement {
  std::size_t right = 0, all = 0, known = 0, asked = 0;
};

// Cuts a run at a random request of its last step, and compares what is projected of that step with what followed.
void CutAndCompare(Rng& rng, const DrawnTraining& program, Agreement& out) {
  const std::vector<trace::Op>& ops = program.drawing().trace().requests;
  std::size_t failed = 0;
  do {
    failed = rng.Between(program.begins().back() + 1, ops.size() - 2);
  } while (ops[failed].kind != trace::OpKind::kAlloc);
  CutOffRun run = program.drawing().CutAt(failed);
  run.step_begin = program.begins().back();
  const Continuation next = Continue(run);
  ++out.asked;
  out.known += next.IsKnown() ? 1 : 0;
  if (!next.IsKnown()) return;
  std::vector<std::uint64_t> wanted, got;
  for (std::size_t i = failed + 1; i < ops.size(); ++i) {
    if (ops[i].kind == trace::OpKind::kAlloc && ops[i].bytes != 512) wanted.push_back(ops[i].bytes);
  }
  for (std::size_t i = failed + 1; i < next.requests.requests.size(); ++i) {
    const trace::Op& op = next.requests.requests[i];
    if (op.kind == trace::OpKind::kAlloc && op.bytes != 512) got.push_back(op.bytes);
  }
  out.all += wanted.size();
  for (std::size_t i = 0; i < wanted.size() && i < got.size(); ++i) out.right += wanted[i] == got[i] ? 1 : 0;
}

TEST(ContinuationTest, RandomProgramsGoOnAsTheyDid) {
  Agreement same, varying;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    CutAndCompare(rng, DrawnTraining(rng, false), same);
    CutAndCompare(rng, DrawnTraining(rng, true), varying);
  }
  std::printf("equal sizes: %zu of %zu known, %zu of %zu requests right; varying: %zu of %zu, %zu of %zu\n", same.known,
              same.asked, same.right, same.all, varying.known, varying.asked, varying.right, varying.all);
  EXPECT_GE(same.known * 100, same.asked * 99);
  EXPECT_EQ(same.right, same.all);
  EXPECT_GE(varying.known * 100, varying.asked * 99);
  EXPECT_GE(varying.right * 100, varying.all * 98);
}

// The projected part is a program: no block is freed twice, none that was not asked for.
TEST(ContinuationTest, EachFreeNamesALiveBlock) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng(seed);
    const DrawnTraining program(rng, true);
    const std::vector<trace::Op>& ops = program.drawing().trace().requests;
    std::size_t failed = rng.Between(program.begins()[2], ops.size() - 1);
    while (ops[failed].kind != trace::OpKind::kAlloc) --failed;
    const Continuation next = Continue(program.drawing().CutAt(failed));
    std::vector<int> state(next.requests.id_count, 0);
    for (const trace::Op& op : next.requests.requests) {
      ASSERT_LT(op.id, next.requests.id_count);
      ASSERT_EQ(state[op.id], op.kind == trace::OpKind::kAlloc ? 0 : 1) << "seed " << seed;
      ++state[op.id];
    }
  }
}

}  // namespace
}  // namespace ashlar::analyses
