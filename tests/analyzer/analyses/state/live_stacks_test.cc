#include "analyzer/analyses/state/live_stacks.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace ashlar::analyses {
namespace {

using trace::BlockState;
using trace::StackId;

struct Named {
  const char* file;
  int line;
  const char* function;
};

// Innermost first.
StackId Intern(trace::StackTable& stacks, const std::vector<Named>& frames) {
  std::vector<trace::FrameId> ids;
  for (const Named& frame : frames) ids.push_back(stacks.InternFrame(frame.file, frame.line, frame.function));
  return stacks.InternStack(ids);
}

std::string Label(const std::vector<Named>& frames) {
  trace::StackTable stacks;
  return StackLabel(stacks, Intern(stacks, frames));
}

constexpr Named kMalloc = {"??", 0, "c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(...)"};
constexpr Named kUser = {"/home/ada/train/model.py", 211, "forward"};
constexpr Named kOuterUser = {"/home/ada/train/main.py", 9, "main"};
constexpr Named kPackage = {"/usr/lib/python3.10/site-packages/transformers/models/bert/modeling_bert.py", 350,
                            "forward"};
constexpr Named kTorch = {"/usr/lib/python3.10/site-packages/torch/nn/modules/linear.py", 114, "forward"};

TEST(StackLabelTest, TheInnermostFrameOfTheUsersOwnCode) {
  EXPECT_EQ(Label({kMalloc, kUser, kOuterUser}), "model.py:211 forward");
  EXPECT_EQ(Label({kMalloc, kTorch, kPackage, kUser, kOuterUser}), "model.py:211 forward");
  EXPECT_EQ(Label({kUser}), "model.py:211 forward");
}

TEST(StackLabelTest, ElseAPackageElseTheFramework) {
  EXPECT_EQ(Label({kMalloc, kTorch, kPackage, kTorch}), "modeling_bert.py:350 forward");
  EXPECT_EQ(Label({kMalloc, kTorch}), "linear.py:114 forward");
  EXPECT_EQ(Label({kTorch, kMalloc}), "linear.py:114 forward");
}

TEST(StackLabelTest, OfACompiledProgramTheNodeAndItsLineOfTheModel) {
  const auto label = [](const std::string& original_trace) {
    trace::StackTable stacks;
    const trace::FxNode fx{"call_function", "linear_1", "aten.linear", original_trace};
    const trace::FrameId generated = stacks.InternFrame("/tmp/fx_graph_module_1.py", 9, "forward", fx);
    return StackLabel(stacks, stacks.InternStack({generated, stacks.InternFrame(kUser.file, kUser.line, "forward")}));
  };
  EXPECT_EQ(label("  File \"/home/ada/main.py\", line 3, in run\n    run()\n"
                  "  File \"/home/ada/model.py\", line 12, in forward\n    x = self.fc(x)\n"
                  "  File \"/usr/lib/python3/site-packages/torch/nn/modules/linear.py\", line 114, in forward\n"),
            "linear_1 < model.py:12");
  EXPECT_EQ(label("File \"/usr/lib/python3/site-packages/torch/nn/modules/linear.py\", line 114, in forward"),
            "linear_1 < linear.py:114");
  EXPECT_EQ(label("File \"cut off"), "linear_1");
  EXPECT_EQ(label(""), "linear_1");
}

TEST(StackLabelTest, PathsOfWindows) {
  EXPECT_EQ(
      Label({{"C:\\py\\Lib\\site-packages\\torch\\nn\\linear.py", 1, "forward"}, {"C:\\work\\run.py", 5, "step"}}),
      "run.py:5 step");
}

TEST(StackLabelTest, WithoutPythonTheAutogradNode) {
  EXPECT_EQ(Label({kMalloc,
                   {"??", 0, "at::_ops::mm::call(at::Tensor const&, at::Tensor const&)"},
                   {"??", 0, "torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)"},
                   {"??", 0, "torch::autograd::Engine::thread_main(std::shared_ptr<GraphTask> const&)"},
                   {"??", 0, "clone"}}),
            "MmBackward0 (no Python frame)");
}

// Names as recorded: a helper of the node inside it, and a node that is applied by a free function.
TEST(StackLabelTest, NodesAsTheyAreSpelled) {
  const Named details = {"??", 0, "torch::autograd::generated::details::mm_mat1_backward(at::Tensor const&)"};
  const Named node = {"??", 0, "torch::autograd::generated::MmBackward0::apply(std::vector<at::Tensor>&&)"};
  EXPECT_EQ(Label({kMalloc, details, node}), "MmBackward0 (no Python frame)");
  EXPECT_EQ(Label({kMalloc, details}), "mm_mat1_backward (no Python frame)");
  EXPECT_EQ(
      Label({kMalloc,
             {"??", 0, "torch::autograd::generated::IndexBackward0_apply_functional(std::vector<at::Tensor>&&)"}}),
      "IndexBackward0 (no Python frame)");
}

TEST(StackLabelTest, ElseTheOperator) {
  EXPECT_EQ(Label({kMalloc,
                   {"??", 0, "at::_ops::empty_strided::redispatch(c10::DispatchKeySet)"},
                   {"??", 0, "at::_ops::to_copy::call(at::Tensor const&)"}}),
            "empty_strided (no Python frame)");
}

TEST(StackLabelTest, ElseTheOutermostFrameWhateverIsMissing) {
  EXPECT_EQ(Label({kMalloc, {"/src/main.cpp", 12, "main"}}), "main.cpp:12 main");
  EXPECT_EQ(Label({{"/src/main.cpp", 0, "main"}}), "main.cpp main");
  EXPECT_EQ(Label({{"", 0, "start"}}), "start");
}

TEST(StackLabelTest, NoFramesNoStack) {
  trace::StackTable stacks;
  EXPECT_EQ(StackLabel(stacks, trace::kNoStack), "no stack recorded");
  EXPECT_EQ(StackLabel(stacks, stacks.InternStack({})), "no stack recorded");
}

timeline::StateBlock LiveStacksBlock(std::uint64_t address, std::uint64_t bytes, StackId stack,
                                     BlockState state = BlockState::kLive) {
  return {.address = address, .size_bytes = bytes, .state = state, .stack = stack};
}

TEST(LiveStacksTest, GroupsLiveBlocksBiggestFirst) {
  timeline::State state;
  state.segments.push_back(
      {.address = 0, .size_bytes = 8192, .blocks = {LiveStacksBlock(0, 512, 1), LiveStacksBlock(512, 1024, 0)}});
  state.segments.push_back(
      {.address = 16384,
       .size_bytes = 8192,
       .blocks = {LiveStacksBlock(16384, 512, 1), LiveStacksBlock(17000, 4096, 2, BlockState::kPending),
                  LiveStacksBlock(22000, 600, trace::kNoStack)}});
  const std::vector<LiveStack> groups = LiveStacks(state);
  ASSERT_EQ(groups.size(), 3u);    // the pending block is nobody's any more
  EXPECT_EQ(groups[0].stack, 0u);  // equal bytes: by id
  EXPECT_EQ(groups[0].bytes, 1024u);
  EXPECT_EQ(groups[0].blocks, 1u);
  EXPECT_EQ(groups[1].stack, 1u);
  EXPECT_EQ(groups[1].bytes, 1024u);
  EXPECT_EQ(groups[1].blocks, 2u);
  EXPECT_EQ(groups[2].stack, trace::kNoStack);
  EXPECT_EQ(groups[2].bytes, 600u);
}

TEST(LiveLinesTest, StacksOfOneLineAreOneRow) {
  trace::StackTable stacks;
  const StackId inner = Intern(stacks, {kMalloc, kTorch, kUser});
  const StackId direct = Intern(stacks, {kMalloc, kUser});
  const StackId other = Intern(stacks, {kMalloc, kOuterUser});
  timeline::State state;
  state.segments.push_back(
      {.address = 0,
       .size_bytes = 8192,
       .blocks = {LiveStacksBlock(0, 512, inner), LiveStacksBlock(512, 512, direct), LiveStacksBlock(1024, 1024, other),
                  LiveStacksBlock(2048, 100, trace::kNoStack)}});
  const std::vector<LabelledStack> lines = LiveLines(state, stacks, 5);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].label, "main.py:9 main");  // equal bytes: by label
  EXPECT_EQ(lines[1].label, "model.py:211 forward");
  EXPECT_EQ(lines[1].bytes, 1024u);
  EXPECT_EQ(lines[1].blocks, 2u);
  EXPECT_EQ(lines[2].label, "no stack recorded");
  EXPECT_EQ(LiveLines(state, stacks, 2).size(), 2u);
}

// What a program that calls a trainer holds: one line of its own, below it weights, activations and optimizer state.
TEST(LiveLinesTest, ALineThatHoldsMoreThanHalfIsToldInParts) {
  constexpr Named kTrainer = {"/usr/lib/python3.10/site-packages/transformers/trainer.py", 2674, "train"};
  constexpr Named kScript = {"/home/ada/train_hf.py", 9, "<module>"};
  constexpr Named kCall = {"/usr/lib/python3.10/site-packages/torch/nn/modules/module.py", 1776, "_call_impl"};
  constexpr Named kOuterPackage = {"/usr/lib/python3.10/site-packages/transformers/modeling_outer.py", 9, "forward"};
  constexpr Named kAdam = {"/usr/lib/python3.10/site-packages/torch/optim/adamw.py", 112, "_init_group"};
  constexpr Named kStep = {"/usr/lib/python3.10/site-packages/accelerate/optimizer.py", 179, "step"};
  trace::StackTable stacks;
  const StackId layer = Intern(stacks, {kMalloc, kTorch, kCall, kPackage, kCall, kOuterPackage, kTrainer, kScript});
  const StackId state_of_adam = Intern(stacks, {kMalloc, kAdam, kStep, kTrainer, kScript});
  const StackId own = Intern(stacks, {kMalloc, kScript});
  const StackId module = Intern(stacks, {kMalloc, kTorch, kCall, kScript});
  const StackId other = Intern(stacks, {kMalloc, kTorch, kPackage, kOuterUser});
  timeline::State state;
  state.segments.push_back({.address = 0,
                            .size_bytes = 8192,
                            .blocks = {LiveStacksBlock(0, 1024, layer), LiveStacksBlock(1024, 1024, layer),
                                       LiveStacksBlock(2048, 1536, state_of_adam), LiveStacksBlock(3584, 512, own),
                                       LiveStacksBlock(4096, 640, module), LiveStacksBlock(5120, 768, other)}});
  std::vector<std::string> lines;
  for (const LabelledStack& line : LiveLines(state, stacks, 9)) lines.push_back(line.label);
  EXPECT_EQ(lines, (std::vector<std::string>{
                       "modeling_bert.py:350 forward < train_hf.py:9 <module>",
                       "adamw.py:112 _init_group < train_hf.py:9 <module>",
                       "main.py:9 main",  // holds less than half: as it is
                       "linear.py:114 forward < train_hf.py:9 <module>",
                       "train_hf.py:9 <module>",
                   }));
  EXPECT_EQ(LiveLines(state, stacks, 9).front().blocks, 2u);
}

}  // namespace
}  // namespace ashlar::analyses
