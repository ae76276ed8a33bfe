// The parts over time, against the run's events added up one by one, and the interval.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "estimator/dry_run.h"
#include "estimator/estimate.h"
#include "gmock/gmock.h"
#include "tests/estimator/model_file.h"

namespace ashlar::estimate {
namespace {

using testing::HasSubstr;

constexpr char kPhasesClassifier[] = "BertForSequenceClassification";

// The live bytes of a run by step and phase, added up event by event: the most of each, of "between steps" the last.
class LiveBytes final : public RunObserver {
 public:
  void OnBegin(const core::CachingAllocator&, const kernels::TensorMemory& memory) override { memory_ = &memory; }
  void OnStep(std::int64_t step) override { step_ = step; }
  void OnEvent(const trace::Event& event, std::uint64_t) override {
    if (event.action == trace::Action::kAlloc) live_ += size_[event.address] = event.size_bytes;
    if (event.action == trace::Action::kFreeRequested) live_ -= size_[event.address];
    std::uint64_t& bytes = of[{step_, std::string(memory_->phase())}];
    bytes = memory_->phase() == "between steps" ? live_ : std::max(bytes, live_);
  }
  std::map<std::pair<std::int64_t, std::string>, std::uint64_t> of;

 private:
  const kernels::TensorMemory* memory_ = nullptr;
  std::int64_t step_ = 0;
  std::uint64_t live_ = 0;
  std::map<std::uint64_t, std::uint64_t> size_;
};

TEST(PhasesTest, PartsOverTime) {
  DryRunOptions options;
  options.batch = 2;
  options.tokens = 64;
  options.accumulation = 2;
  const Model model = ModelOf("bert-base-uncased", kPhasesClassifier);
  LiveBytes live;
  const absl::StatusOr<DryRun> run = RunDry(model, options, device::AddressOrder::kAscending, &live);
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_EQ(run->phases.size(), 1u + 3 * 4);
  EXPECT_EQ(run->phases[0].phase, "model");
  const auto parameters = static_cast<std::uint64_t>(model.count());
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < run->phases.size(); ++i) {
    const PhaseParts& phase = run->phases[i];
    SCOPED_TRACE(phase.phase);
    EXPECT_EQ(phase.step, (static_cast<std::int64_t>(i) + 3) / 4);
    EXPECT_EQ(phase.parts.total(), (live.of[{phase.step, phase.phase}]));
    EXPECT_LE(phase.parts.total(), phase.reserved_bytes);
    EXPECT_LE(phase.reserved_bytes, run->peak_reserved_bytes);
    most = std::max(most, phase.parts.total());
    if (i == 0) continue;
    // The second batch of a step begins with the gradients of the first.
    if (phase.phase == "forward" || phase.phase == "optimizer step") {
      EXPECT_EQ(phase.parts.gradients, 4 * parameters);
      EXPECT_EQ(phase.parts.optimizer != 0, phase.step > 1 || phase.phase == "optimizer step");
    }
    if (phase.phase == "between steps") {
      EXPECT_EQ(phase.parts.gradients + phase.parts.temporaries, 0u);
      EXPECT_EQ(phase.parts.saved_activations, 4u);  // the loss
      EXPECT_GE(phase.parts.optimizer, 8 * parameters);
    }
  }
  EXPECT_EQ(most, run->peak_requested_bytes);
}

// Versions before 2 keep gradients, and so free nothing between steps.
TEST(PhasesTest, AStepThatFreesNothingInTheEndIsThereToo) {
  DryRunOptions options;
  options.batch = 1;
  options.tokens = 32;
  options.steps = 2;
  options.torch_version = "1.10";
  const Model model = ModelOf("bert-base-uncased", kPhasesClassifier);
  const absl::StatusOr<DryRun> run = RunDry(model, options, device::AddressOrder::kAscending);
  ASSERT_TRUE(run.ok()) << run.status();
  ASSERT_EQ(run->phases.size(), 1u + 2 * 4);
  for (const std::size_t i : {4u, 8u}) {
    EXPECT_EQ(run->phases[i].phase, "between steps");
    EXPECT_EQ(run->phases[i].parts.gradients, 4 * static_cast<std::uint64_t>(model.count()));
  }
}

// A context that is another device's widens the interval by what contexts are known to differ.
TEST(PhasesTest, TheIntervalSaysWhatIsNotKnown) {
  EstimateOptions options;
  options.run.batch = 1;
  options.tokens = 64;
  options.run.torch_version = "1.10";
  const Model model = ModelOf("bert-base-uncased", kPhasesClassifier);
  const auto of = [&] { return MustEstimate(model, options).DeviceInterval(); };
  const ByteInterval unknown = *of();
  EXPECT_GE(unknown.most_bytes - unknown.least_bytes, (1341 - 887) * kMiB);
  EXPECT_THAT(unknown.reason, HasSubstr("contexts of 887.00 MiB to 1.31 GiB"));
  options.device = "T4";
  EXPECT_LT(of()->most_bytes - of()->least_bytes, 32 * kMiB);
  options.device.clear();
  options.context_bytes = 500 * kMiB;
  EXPECT_EQ(of()->reason, "the driver's addresses in either order");
  options.capacity_bytes = kGiB;
  EXPECT_EQ(of(), std::nullopt);
}

}  // namespace
}  // namespace ashlar::estimate
