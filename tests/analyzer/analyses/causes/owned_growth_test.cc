// Tensors that grow, each by its owner: what took the place of a smaller one again and again, and what is computed from
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "allocator/base/units.h"
#include "tests/analyzer/analyses/causes/owned_run.h"
#include "tests/analyzer/analyses/causes/training_parts.h"
#include "tests/analyzer/analyses/seeded_run.h"

namespace ashlar::tests {
namespace {

using analyses::CauseKind;
using testing::HasSubstr;

TEST(OwnedGrowthTest, ATensorThatGrowsByCatIsOneVariable) {
  OwnedRun run;
  run.Weights("model");
  core::Block* queue = nullptr;
  run.Train(24, [&](int step) {
    run.run().At({{"moco.py", 37, "enqueue"}, kMain});
    core::Block* const grown =
        run.Keep(static_cast<std::uint64_t>(step + 1) * 64 * kMiB, OwnerNamed("buffer", "model.queue"));
    if (queue != nullptr) run.run().Free(queue);
    queue = grown;
  });
  const SeededInput input = run.FailInPass();
  ExpectFirst(input, CauseKind::kKvCacheGrows, "model.queue", {CauseKind::kEvalWithoutNoGrad, CauseKind::kOutputsKept});
  EXPECT_THAT(SaidOf(Diagnosis(input).Of(CauseKind::kKvCacheGrows)), HasSubstr("grew 24 times by about 64.00 MiB"));
}

// memory.k = torch.cat([memory.k, torch.stack(keys)]) makes the piece and the whole at one line.
TEST(OwnedGrowthTest, APieceThatTheSameLineMakesIsNoStepBack) {
  OwnedRun run;
  run.Weights("model");
  core::Block* whole = nullptr;
  run.Train(24, [&](int step) {
    run.run().At({{"memory.py", 21, "extend"}, kOwnersForward, kMain});
    core::Block* const piece = run.run().Allocate(64 * kMiB);
    core::Block* const grown =
        run.Keep(static_cast<std::uint64_t>(step + 1) * 64 * kMiB, OwnerNamed("local", "memory.k"));
    run.run().Free(piece);
    if (whole != nullptr) run.run().Free(whole);
    whole = grown;
  });
  ExpectFirst(run.FailInPass(), CauseKind::kKvCacheGrows, "memory.k", {CauseKind::kOutputsKept});
}

// Few sizes are enough where each is larger by exactly as much; of others they say nothing.
TEST(OwnedGrowthTest, APartOfAnEvaluationThatIsJoinedToTheOthers) {
  for (const bool is_even : {true, false}) {
    OwnedRun run;
    run.Weights("model");
    run.Train(6, [](int) {});
    core::Block* joined = nullptr;
    for (const std::uint64_t size : {1, 2, 3, 4, 5}) {
      run.run().At(
          {{"trainer_pt_utils.py", 89, "pad_and_concatenate"}, {"trainer.py", 4712, "evaluation_loop"}, kMain});
      core::Block* const grown = run.Keep((is_even ? size : size * size) * 128 * kMiB, OwnerNamed("local", "tensors"));
      if (joined != nullptr) run.run().Free(joined);
      joined = grown;
    }
    const SeededInput input = run.Fail();
    EXPECT_EQ(Diagnosis(input).Of(CauseKind::kEvalAccumulates).finding == analyses::Finding::kFound, is_even);
  }
}

// A loop that ends before another begins: the rounds of the later one are no part of the first one's last round.
TEST(OwnedGrowthTest, WhatALaterLoopKeepsWhereTheProgramHasNoSteps) {
  OwnedRun run;
  run.Weights("model");
  const auto pass = [&run](const SeededFrame& at, std::uint64_t size) {
    run.run().At({at, kMain});
    core::Block* const batch = run.run().Allocate(size);
    run.run().At({kOwnersForward, kMain});
    run.run().Free(run.run().Allocate(size));
    run.run().Free(batch);
  };
  for (const std::uint64_t mib : {4, 9, 6}) pass({"train.py", 20, "fit"}, mib * kMiB);
  for (const std::uint64_t mib : {5, 12, 7, 15, 6, 11}) {
    pass({"train.py", 60, "scene"}, mib * kMiB);
    run.run().At({{"train.py", 69, "report"}, kMain});
    run.Keep(32 * kMiB, OwnerNamed("element", "report.probabilities[]"));
  }
  run.run().At({{"train.py", 60, "scene"}, kMain});
  run.run().Allocate(4 * kMiB);
  const SeededInput input = run.FailInPass();
  EXPECT_TRUE(Diagnosis(input).context().history->steps.steps.empty());
  ExpectFirst(input, CauseKind::kOutputsKept, "report.probabilities[]");
}

// What piles up holds a segment each time: the holes are its doing.
TEST(OwnedGrowthTest, HolesBehindWhatPilesUpAreItsOwn) {
  OwnedRun run(6 * kGiB);
  run.Weights("model");
  for (std::size_t round = 0; round < 4; ++round) {
    run.run().At({{"train.py", 20, "load_batch"}, kMain});
    run.run().Free(run.run().Allocate(kGiB));
    run.run().At({kOwnersForward, kMain});
    Blocks others;
    for (std::size_t i = 0; i <= round; ++i) others.push_back(run.run().Allocate(768 * kMiB));
    run.run().At({{"train.py", 45, "embed"}, kMain});
    run.Keep(256 * kMiB, OwnerNamed("element", "pending[]"));
    run.run().Free(others);
  }
  run.run().At({{"train.py", 20, "load_batch"}, kMain});
  run.run().Free(run.run().Allocate(kMiB));
  run.run().At({kOwnersForward, kMain});
  run.run().Fail(2 * kGiB);
  const SeededInput input = run.Finish();
  const analyses::CauseFinding pinned = Diagnosis(input).Of(CauseKind::kPinnedSegment);
  ASSERT_EQ(pinned.finding, analyses::Finding::kFound);
  ASSERT_EQ(pinned.holders.size(), 1u);
  EXPECT_EQ(pinned.holders.front().name, "pending[]");
  EXPECT_EQ(pinned.confidence, analyses::Confidence::kProven) << "without its blocks the request would have passed";
  EXPECT_THAT(SaidOf(pinned), HasSubstr("`pending[]` in train.py:31 keeps 4 of them"));
  ExpectFirst(input, CauseKind::kOutputsKept, "pending[]");
}

// A product with a tensor that grows is larger each time, and keeps nothing of earlier steps.
TEST(OwnedGrowthTest, WhatIsComputedFromATensorThatGrowsIsNoCauseBesideIt) {
  OwnedRun run;
  run.Weights("model");
  std::map<std::string, core::Block*> newest;
  run.Train(24, [&](int step) {
    const auto grow = [&](const std::string& name, const std::string& kind, SeededFrame at, std::uint64_t bytes_each) {
      run.run().At({at, kMain});
      core::Block* const grown = run.Keep(static_cast<std::uint64_t>(step + 1) * bytes_each, OwnerNamed(kind, name));
      if (newest[name] != nullptr) run.run().Free(newest[name]);
      newest[name] = grown;
    };
    grow("model.queue", "buffer", {"moco.py", 37, "enqueue"}, 128 * kMiB);
    grow("scores", "global", {"train.py", 41, "score"}, 32 * kMiB);
  });
  ExpectFirst(run.FailInPass(), CauseKind::kKvCacheGrows, "model.queue", {CauseKind::kOutputsKept});
}

// Four caches grow together; a mask of the pass grows by more than one of them, and is less than they are.
TEST(OwnedGrowthTest, CachesThatGrowTogetherAreMoreThanWhatAPassMakesOfThem) {
  OwnedRun run;
  run.Weights("model");
  Blocks caches(4, nullptr);
  core::Block* mask = nullptr;
  run.Train(24, [&](int step) {
    const auto grow = [&](core::Block*& newest, SeededFrame at, std::uint64_t bytes_each, const trace::Holder& owner) {
      run.run().At({at, kOwnersForward, kMain});
      core::Block* const grown = run.Keep(static_cast<std::uint64_t>(step + 1) * bytes_each, owner);
      if (newest != nullptr) run.run().Free(newest);
      newest = grown;
    };
    for (core::Block*& cache : caches) {
      grow(cache, {"cache.py", 7, "update"}, 32 * kMiB, OwnerNamed("attribute", "chats[].keys"));
    }
    grow(mask, {"mask.py", 9, "make"}, 80 * kMiB, OwnerNamed("local", "mask"));
  });
  ExpectFirst(run.FailInPass(), CauseKind::kKvCacheGrows, "chats[]");
}

// The loop's variable is one of those that the list has: it grows by the same line, and is none that is computed from
// them.
TEST(OwnedGrowthTest, TheOneOfAListThatALoopIsAtGrowsWithTheOthers) {
  OwnedRun run(40 * kGiB);
  run.Weights("model");
  Blocks caches(4, nullptr);
  run.Train(16, [&](int step) {
    for (std::size_t chat = 0; chat < caches.size(); ++chat) {
      run.run().At({{"cache.py", 7, "update"}, kOwnersForward, kMain});
      const trace::Holder owner = OwnerNamed("attribute", chat == 3 ? "chat.keys" : "chats[].keys");
      core::Block* const grown = run.Keep(static_cast<std::uint64_t>(step + 1) * 64 * kMiB, owner);
      if (caches[chat] != nullptr) run.run().Free(caches[chat]);
      caches[chat] = grown;
    }
  });
  const SeededInput input = run.FailInPass();
  ExpectFirst(input, CauseKind::kKvCacheGrows, "chats[]");
  EXPECT_EQ(Diagnosis(input).Found().front().bytes, std::uint64_t{4 * 16 * 64} * kMiB);
}

// Each of four conversations grows token by token while its turn lasts: the line's sizes go up and down.
TEST(OwnedGrowthTest, CachesThatGrowInTurns) {
  OwnedRun run(40 * kGiB);
  run.Weights("model");
  Blocks caches(4, nullptr);
  std::vector<std::uint64_t> tokens(4, 0);
  run.Train(16, [&](int) {
    for (std::size_t chat = 0; chat < caches.size(); ++chat) {
      for (const std::uint64_t more : {20, 1, 1, 1, 1}) {
        run.run().At({{"cache.py", 7, "update"}, kOwnersForward, kMain});
        tokens[chat] += more;
        core::Block* const grown = run.Keep(tokens[chat] * 4 * kMiB, OwnerNamed("attribute", "chats[].keys"));
        if (caches[chat] != nullptr) run.run().Free(caches[chat]);
        caches[chat] = grown;
      }
    }
  });
  ExpectFirst(run.FailInPass(), CauseKind::kKvCacheGrows, "chats[]");
}

}  // namespace
}  // namespace ashlar::tests
