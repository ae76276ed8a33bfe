// A block belongs to the frame that made it: who stands further out does not name it.
#include "analyzer/analyses/steps/program_part.h"

#include <initializer_list>
#include <string>

#include "gtest/gtest.h"

namespace ashlar::analyses {
namespace {

struct NamedLine {
  const char* file;
  const char* function;
};

constexpr NamedLine kModule = {"/lib/torch/nn/modules/module.py", "_call_impl"};
constexpr NamedLine kOptimStep = {"/lib/torch/optim/adamw.py", "step"};
constexpr NamedLine kOptimWrapper = {"/lib/torch/optim/optimizer.py", "wrapper"};
constexpr NamedLine kContext = {"/lib/torch/utils/_contextlib.py", "decorate_context"};

class ProgramPartTest : public testing::Test {
 protected:
  // Innermost first.
  trace::StackId Stack(std::initializer_list<NamedLine> frames) {
    std::vector<trace::FrameId> ids;
    for (const NamedLine& frame : frames) ids.push_back(stacks_.InternFrame(frame.file, 7, frame.function));
    return stacks_.InternStack(ids);
  }
  std::string PartOf(std::initializer_list<NamedLine> frames) {
    const trace::StackId stack = Stack(frames);
    return std::string(ProgramPartName(ProgramParts(&stacks_).Of(stack)));
  }

  trace::StackTable stacks_;
};

TEST_F(ProgramPartTest, AnOptimizerMakesItsStateAndItsLists) {
  EXPECT_EQ(PartOf({{"/lib/torch/optim/adamw.py", "_init_group"}, kOptimStep, kOptimWrapper, {"fit.py", "fit"}}),
            "optimizer");
  EXPECT_EQ(PartOf({{"/lib/torch/_utils.py", "_foreach"}, kOptimStep, {"fit.py", "fit"}}), "optimizer");
}

TEST_F(ProgramPartTest, AnOptimizerOfTheProgramIsOne) {
  EXPECT_EQ(PartOf({{"fit.py", "_moments"}, {"fit.py", "step"}, kContext, kOptimWrapper, {"fit.py", "fit"}}),
            "optimizer");
  EXPECT_EQ(PartOf({{"sign_lion.py", "step"}, {"fit.py", "fit"}}), "optimizer");
}

TEST_F(ProgramPartTest, WhatAnOptimizersClosureMakesIsNotItsOwn) {
  EXPECT_EQ(PartOf({{"net.py", "forward"}, kModule, {"fit.py", "closure"}, kOptimStep, kOptimWrapper}), "forward");
  EXPECT_EQ(PartOf({{"loss.py", "mse"}, {"fit.py", "closure"}, kContext, kOptimStep, kOptimWrapper}), "");
  EXPECT_EQ(PartOf({{"loss.py", "mse"}, {"fit.py", "line_search"}, kOptimStep}), "");
  EXPECT_EQ(PartOf({{"net.py", "forward"}, {"loop.py", "closure"}, kContext, {"loop.py", "__call__"}, kOptimStep}),
            "forward");
}

TEST_F(ProgramPartTest, AStepThatRunsAModuleIsATrainings) {
  Stack({{"net.py", "forward"}, kModule, {"tune_sgd.py", "step"}});
  EXPECT_EQ(PartOf({{"loss.py", "mse"}, {"tune_sgd.py", "step"}}), "");
  EXPECT_EQ(PartOf({{"net.py", "forward"}, kModule, {"tune_sgd.py", "step"}}), "forward");
}

TEST_F(ProgramPartTest, AFunctionOfATrainingIsNoEvaluation) {
  EXPECT_EQ(PartOf({{"net.py", "head"}, {"net.py", "predict"}, {"net.py", "forward"}, kModule}), "forward");
  EXPECT_EQ(PartOf({{"net.py", "forward"}, kModule, {"fit.py", "predict"}, {"fit.py", "training_step"}}), "forward");
  EXPECT_EQ(PartOf({{"net.py", "forward"}, kModule, {"fit.py", "validate"}, {"fit.py", "fit"}}), "evaluation");
}

TEST_F(ProgramPartTest, ARecomputedPassIsPartOfTheBackwardPass) {
  EXPECT_EQ(PartOf({{"net.py", "forward"}, kModule, {"/lib/torch/_tensor.py", "backward"}, {"fit.py", "fit"}}),
            "backward");
}

}  // namespace
}  // namespace ashlar::analyses
