// A training whose snapshot says who holds each block, and what is expected of the causes that are told of it.
//
//   OwnedRun run;
//   run.Weights("model");
//   run.Train(24, [&](int step) { run.Keep(8 * kMiB, OwnerNamed("element", "losses[]")); });
//   ExpectFirst(run.FailInPass(), CauseKind::kOutputsKept, "losses[]");
#ifndef ASHLAR_TESTS_ANALYZER_ANALYSES_CAUSES_OWNED_RUN_H_
#define ASHLAR_TESTS_ANALYZER_ANALYSES_CAUSES_OWNED_RUN_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/base/units.h"
#include "tests/analyzer/analyses/causes/training_parts.h"
#include "tests/analyzer/analyses/seeded_run.h"

namespace ashlar::tests {

inline constexpr SeededFrame kOwnersForward = {"model.py", 33, "forward"};
inline constexpr SeededFrame kOwnersInit = {"model.py", 12, "__init__"};

inline trace::Holder OwnerNamed(const std::string& kind, const std::string& name, std::vector<std::string> traits = {},
                                const std::string& mode = "") {
  trace::Holder out;
  out.kind = kind;
  out.name = name;
  out.file = "train.py";
  out.line = 31;
  out.mode = mode;
  out.traits = std::move(traits);
  return out;
}

// A training of six layers of two sizes, with an owner of each block.
class OwnedRun {
 public:
  explicit OwnedRun(std::uint64_t capacity_bytes = 16 * kGiB)
      : capacity_bytes_(capacity_bytes), run_({.capacity_bytes = capacity_bytes}) {
    names_.when = "out_of_memory";
  }

  SeededRun& run() { return run_; }

  core::Block* Keep(std::uint64_t bytes, const trace::Holder& owner) {
    core::Block* const block = run_.Allocate(bytes);
    Own(block, owner);
    return block;
  }
  void Own(core::Block* block, const trace::Holder& owner) {
    const auto found = std::find(names_.holders.begin(), names_.holders.end(), owner);
    const auto index = static_cast<std::uint32_t>(found - names_.holders.begin());
    if (found == names_.holders.end()) names_.holders.push_back(owner);
    owners_[block->address] = index;
  }

  void Weights(const std::string& model, std::vector<std::string> traits = {"optimized"},
               SeededFrame at = kOwnersInit) {
    run_.At({at, kMain});
    for (int layer = 0; layer < 6; ++layer) {
      for (const std::uint64_t size : {32, 16}) {
        Keep(size * kMiB, OwnerNamed("parameter", model + (size == 32 ? ".*.up" : ".*.down"), traits, "train"));
      }
    }
  }

  // `keep` is called in the middle of each step, between its forward and its backward pass.
  void Train(int steps, const std::function<void(int step)>& keep) {
    for (int step = 0; step < steps; ++step) {
      run_.At({{"train.py", 20, "load_batch"}, kMain});
      core::Block* const batch = run_.Allocate(4 * kMiB);
      Own(batch, OwnerNamed("local", "batch"));
      Blocks saved;
      Blocks gradients;
      Forward(run_, 6, 16 * kMiB, saved);
      for (core::Block* block : saved) Own(block, OwnerNamed("graph", "loss", {}, "train"));
      keep(step);
      Backward(run_, 6, 32 * kMiB, saved, gradients);
      for (core::Block* block : gradients) Own(block, OwnerNamed("gradient", "model.*.up.grad"));
      Optimize(run_, 6, 32 * kMiB);
      run_.Free(gradients);
      run_.Free(batch);
    }
  }

  // The next pass runs out of memory.
  SeededInput FailInPass(const trace::Holder& owner) {
    Blocks saved;
    Forward(run_, 4, 16 * kMiB, saved);
    for (core::Block* block : saved) Own(block, owner);
    run_.At({{"model.py", 40, "attention"}, {"model.py", 33, "forward"}, kMain});
    return Fail();
  }
  // A request more than there is fails where the program stands.
  SeededInput Fail() {
    run_.Fail(capacity_bytes_ - run_.LiveBytes() + 64 * kMiB);
    return Finish();
  }
  SeededInput Finish() {
    for (const auto& [address, owner_index] : owners_) names_.blocks.push_back({address, owner_index, {}});
    SeededInput out = run_.Finish();
    out.snapshot.holders = names_;
    return out;
  }
  SeededInput FailInPass() { return FailInPass(OwnerNamed("graph", "x", {"in_call"}, "train")); }

 private:
  std::uint64_t capacity_bytes_;
  SeededRun run_;
  trace::Holders names_;
  std::map<std::uint64_t, std::uint32_t> owners_;
};

inline std::string SaidOf(const analyses::CauseFinding& cause) {
  return absl::StrCat(absl::StrJoin(cause.evidence, "; "), absl::StrJoin(cause.counter_evidence, "; "));
}

// The first found cause is this one, named after the variable, and the others are not found.
inline void ExpectFirst(const SeededInput& input, analyses::CauseKind kind, const std::string& variable,
                        const std::vector<analyses::CauseKind>& absent = {}) {
  const Diagnosis diagnosis(input);
  ASSERT_FALSE(diagnosis.Found().empty());
  const analyses::CauseFinding first = diagnosis.Found().front();
  EXPECT_EQ(std::string(CauseName(first.kind)), CauseName(kind)) << SaidOf(first);
  ASSERT_FALSE(first.holders.empty());
  EXPECT_EQ(first.holders.front().name, variable);
  EXPECT_THAT(first.evidence.front(), testing::HasSubstr(variable));
  for (const analyses::CauseKind other : absent) {
    EXPECT_EQ(diagnosis.Of(other).finding, analyses::Finding::kAbsent)
        << CauseName(other) << ": " << SaidOf(diagnosis.Of(other));
  }
}

}  // namespace ashlar::tests

#endif  // ASHLAR_TESTS_ANALYZER_ANALYSES_CAUSES_OWNED_RUN_H_
