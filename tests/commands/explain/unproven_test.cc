// Nothing is to be pasted where the replay of the recorded settings does not follow the record.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "analyzer/formats/input_file.h"
#include "commands/explain/explain.h"
#include "commands/shared/input.h"
#include "commands/sweep/sweep.h"

namespace ashlar::answers {
namespace {

using testing::HasSubstr;
using testing::Not;

Input Example() {
  const auto bytes = formats::ReadInput(std::string(ASHLAR_SOURCE_DIR) + "/docs/examples/training_oom.pickle");
  return *LoadInput(*bytes);
}

// Settings that the program did not run under.
ReplaySettings Others() {
  ReplaySettings out;
  out.overrides.conf = "roundup_power2_divisions:4";
  return out;
}

TEST(UnprovenTest, ExplainPastesAfterAnExactReplayOnly) {
  const Input input = Example();
  const auto exact = ExplainSnapshot(*input.snapshot(), {});
  ASSERT_TRUE(exact.ok()) << exact.status();
  EXPECT_TRUE(exact->what_ifs.fidelity->IsExact());
  EXPECT_TRUE(exact->what_ifs.advice.paste.has_value());
  ExplainSettings options;
  options.replay = Others();
  const auto other = ExplainSnapshot(*input.snapshot(), options);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_FALSE(other->what_ifs.fidelity->IsExact());
  EXPECT_FALSE(other->what_ifs.advice.paste.has_value());
  EXPECT_FALSE(other->what_ifs.own.has_value());
}

TEST(UnprovenTest, SweepPastesAfterExactReplaysOnly) {
  const Input input = Example();
  for (const bool is_exact : {true, false}) {
    auto asked = SweepInputOf("a.pickle", input, is_exact ? ReplaySettings{} : Others());
    ASSERT_TRUE(asked.ok()) << asked.status();
    std::vector<WhatIfInput> inputs;
    inputs.push_back(*std::move(asked));
    SweepOptions options;
    options.confs = {"expandable_segments:True"};
    const auto answer = Sweep(std::move(inputs), options);
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->result.advice.paste.has_value(), is_exact);
    const auto says = HasSubstr("does not follow the record");
    if (is_exact) {
      EXPECT_THAT(answer->result.advice.sentence, Not(says));
    } else {
      EXPECT_THAT(answer->result.advice.sentence, says);
    }
  }
}

}  // namespace
}  // namespace ashlar::answers
