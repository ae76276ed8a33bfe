#include "tests/commands/example_training.h"

#include <map>
#include <utility>
#include <vector>

#include "allocator/base/check.h"
#include "allocator/base/rng.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"

namespace ashlar::tests {
namespace {

constexpr std::uint64_t kHidden = 2048;
constexpr std::uint64_t kFeedForward = 4 * kHidden;
constexpr std::uint64_t kVocabulary = 50'257;
constexpr std::uint64_t kBatch = 8;
constexpr int kLayers = 8;
constexpr int kMostSteps = 40;
constexpr std::uint64_t kFloat = 4;
constexpr std::uint64_t kCapacityBytes = 12 * kGiB - 550 * kMiB;  // the rest is outside this allocator

class Recorder final : public trace::EventSink {
 public:
  explicit Recorder(std::vector<trace::Event>& events) : events_(events) {}
  void OnEvent(const trace::Event& event, std::uint64_t) override {
    trace::Event located = event;
    located.stack = stack;
    located.time_us = time_us;
    time_us += 37;
    events_.push_back(located);
  }
  trace::StackId stack = trace::kNoStack;
  std::int64_t time_us = 1'763'600'000'000'000;

 private:
  std::vector<trace::Event>& events_;
};

device::SimDeviceOptions DeviceOptions() {
  device::SimDeviceOptions out;
  out.capacity_bytes = kCapacityBytes;
  return out;
}

class Training {
 public:
  Training()
      : device_(DeviceOptions()),
        allocator_(&device_, *policy::ParseConf("", policy::Compat::kTorch210)),
        recorder_((snapshot_.device_traces.resize(1), snapshot_.device_traces[0].Mutable())) {
    allocator_.SetSink(&recorder_);
  }

  trace::Snapshot Run() {
    MakeModel();
    for (int step = 0; step < kMostSteps && !is_out_of_memory_; ++step) TrainStep();
    return Finish();
  }

 private:
  using Blocks = std::vector<core::Block*>;

  trace::StackId Stack(const char* file, int line, const char* function, bool in_training = true) {
    trace::StackTable& stacks = snapshot_.stacks;
    std::vector<trace::FrameId> frames = {stacks.InternFrame(file, line, function)};
    if (in_training) frames.push_back(stacks.InternFrame("/home/ada/finetune/train.py", 64, "train_step"));
    frames.push_back(stacks.InternFrame("/home/ada/finetune/train.py", 91, "main"));
    return stacks.InternStack(frames);
  }

  void Allocate(std::uint64_t bytes, trace::StackId stack, Blocks& out) {
    if (is_out_of_memory_) return;
    recorder_.stack = stack;
    absl::StatusOr<core::Block*> block = allocator_.Allocate(bytes, Stream{0});
    if (block.ok()) {
      out.push_back(*block);
      stack_of_[(*block)->address] = stack;
    } else {
      is_out_of_memory_ = true;
    }
  }

  void Free(Blocks& blocks) {
    if (is_out_of_memory_) return;  // the exception keeps everything alive
    recorder_.stack = trace::kNoStack;
    for (auto it = blocks.rbegin(); it != blocks.rend(); ++it) allocator_.Free(*it);
    blocks.clear();
  }

  void MakeModel() {
    const trace::StackId embedding = Stack("/home/ada/finetune/model.py", 22, "__init__", false);
    const trace::StackId block = Stack("/home/ada/finetune/model.py", 31, "__init__", false);
    AddParameter(kVocabulary * kHidden, embedding);
    for (int layer = 0; layer < kLayers; ++layer) {
      for (const std::uint64_t count :
           {3 * kHidden * kHidden, 3 * kHidden, kHidden * kHidden, kHidden, kFeedForward * kHidden, kFeedForward,
            kFeedForward * kHidden, kHidden, kHidden, kHidden}) {
        AddParameter(count, block);
      }
    }
  }

  void AddParameter(std::uint64_t count, trace::StackId stack) {
    parameters_.push_back(count);
    Allocate(count * kFloat, stack, weights_);
  }

  void TrainStep() {
    // The longest of the batch decides; most batches are short, some are long.
    const std::uint64_t length = 64 + 8 * random_.Below(20) + (random_.Below(4) == 0 ? 8 * random_.Below(40) : 0);
    std::vector<Blocks> saved(kLayers);
    Blocks input;
    Blocks logits;
    Allocate(kBatch * length * 8, Stack("/home/ada/finetune/data.py", 47, "collate"), input);
    for (Blocks& layer : saved) Forward(length, layer);
    Allocate(kBatch * length * kVocabulary * kFloat, Stack("/home/ada/finetune/model.py", 77, "forward"), logits);
    Allocate(kBatch * length * kVocabulary * kFloat, Stack("/home/ada/finetune/train.py", 58, "loss"), logits);
    Blocks logits_gradient;
    Allocate(kBatch * length * kVocabulary * kFloat, Stack("/home/ada/finetune/train.py", 60, "backward"),
             logits_gradient);
    Free(logits);
    MakeGradient(0);
    Free(logits_gradient);
    for (int layer = kLayers - 1; layer >= 0; --layer) Backward(layer, length, saved[static_cast<std::size_t>(layer)]);
    OptimizerStep();
    Free(input);
    Free(gradients_);
  }

  void Forward(std::uint64_t length, Blocks& saved) {
    const std::uint64_t tokens = kBatch * length;
    const trace::StackId attention = Stack("/home/ada/finetune/model.py", 45, "attention");
    const trace::StackId scores = Stack("/home/ada/finetune/model.py", 48, "attention");
    const trace::StackId mlp = Stack("/home/ada/finetune/model.py", 56, "mlp");
    Allocate(tokens * kHidden * kFloat, attention, saved);
    Allocate(tokens * 3 * kHidden * kFloat, attention, saved);
    Allocate(kBatch * 16 * length * length * kFloat, scores, saved);
    Allocate(tokens * kHidden * kFloat, attention, saved);
    Allocate(tokens * kFeedForward * kFloat, mlp, saved);
    Allocate(tokens * kFeedForward * kFloat, mlp, saved);
    Allocate(tokens * kHidden * kFloat, mlp, saved);
  }

  void MakeGradient(std::size_t parameter) {
    Allocate(parameters_[parameter] * kFloat, Stack("/home/ada/finetune/train.py", 60, "backward"), gradients_);
  }

  void Backward(int layer, std::uint64_t length, Blocks& saved) {
    Blocks scratch;
    Allocate(kBatch * length * kFeedForward * kFloat, Stack("/home/ada/finetune/train.py", 60, "backward"), scratch);
    for (std::size_t i = 0; i < 10; ++i) MakeGradient(1 + 10 * static_cast<std::size_t>(layer) + i);
    Free(saved);
    Free(scratch);
  }

  void OptimizerStep() {
    const trace::StackId stack = Stack("/home/ada/finetune/adamw.py", 112, "step");
    if (states_.empty()) {
      for (const std::uint64_t count : parameters_) {
        Allocate(count * kFloat, stack, states_);
        Allocate(count * kFloat, stack, states_);
      }
    }
    Blocks scratch;
    Allocate(parameters_[0] * kFloat, stack, scratch);
    Free(scratch);
  }

  trace::Snapshot Finish() {
    ASHLAR_CHECK(is_out_of_memory_);
    snapshot_.segments = allocator_.Segments();
    for (trace::SnapshotSegment& segment : snapshot_.segments) {
      for (trace::SnapshotBlock& block : segment.blocks) {
        if (block.state != trace::BlockState::kFree) block.stack = stack_of_.at(block.address);
      }
    }
    trace::RecordedSettings& settings = snapshot_.settings.emplace();
    settings.values = {{"PYTORCH_CUDA_ALLOC_CONF", ""},
                       {"expandable_segments", "False"},
                       {"garbage_collection_threshold", "0.0"},
                       {"graph_capture_record_stream_reuse", "False"},
                       {"max_split_size", "-1"}};
    snapshot_.traits.has_time = snapshot_.traits.has_stacks = snapshot_.traits.has_requested_bytes = true;
    snapshot_.traits.has_settings = true;
    for (trace::Event& event : snapshot_.device_traces[0].Mutable()) event.pool.reset();
    return std::move(snapshot_);
  }

  trace::Snapshot snapshot_;
  device::SimDevice device_;
  core::CachingAllocator allocator_;
  Recorder recorder_;
  Rng random_{7};
  std::map<std::uint64_t, trace::StackId> stack_of_;
  std::vector<std::uint64_t> parameters_;  // element counts
  Blocks weights_, gradients_, states_;
  bool is_out_of_memory_ = false;
};

}  // namespace

trace::Snapshot ExampleTraining() { return Training().Run(); }

}  // namespace ashlar::tests
