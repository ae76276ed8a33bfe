// A posted out-of-memory error of a tabular BERT on a T4: "Tried to allocate 2.69 GiB (14.76 GiB total capacity; 12.32
// GiB already allocated)". Its vocabulary had grown with the data, because one column was a visitor's id.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "allocator/policy/options.h"
#include "estimator/models/tabformer.h"
#include "kernels/workloads/training.h"

namespace ashlar::kernels {
namespace {

constexpr std::int64_t kVisitors = 867'599;
constexpr std::int64_t kColumns = 13;

// The posted vocabularies: 2,912 in all, and 867,813, of which the visitors are one column.
// Which column it is and how the other 214 categories divide is not told: the last, and evenly.
TabFormerConfig ConfigOf(std::int64_t visitors) {
  TabFormerConfig config;
  for (std::int64_t left = 214, columns = kColumns - 1; columns > 0; left -= left / columns, --columns) {
    config.column_sizes.push_back(left / columns);
  }
  config.column_sizes.push_back(visitors);
  return config;
}
TabFormerConfig LargeConfig() { return ConfigOf(kVisitors); }
TabFormerConfig SmallConfig() { return ConfigOf(2'912 - 214); }

struct TabformerRuntime {
  explicit TabformerRuntime(std::uint64_t capacity)
      : device({.capacity_bytes = capacity}),
        allocator(&device, *policy::ParseConf("", policy::Compat::kTorch113)),
        context(&allocator, Stream{0}, *FrameworkOf("1.10"), *GpuNamed("T4")) {}
  absl::Status Train(const TabFormerConfig& config, std::int64_t batch, const char* optimizer) {
    Parameters parameters(context);
    const TabFormer model(parameters, config);
    Training training(parameters, {.optimizer = optimizer});
    return training.Run(2, [&] {
      const Dims sizes = {batch, config.rows, kColumns};
      const Tensor ids = Empty(context, sizes, DType::kInt64, Part::kBatch);
      const Tensor labels = Empty(context, sizes, DType::kInt64, Part::kBatch);
      return model.Loss(ids, labels);
    });
  }
  device::SimDevice device;
  core::CachingAllocator allocator;
  Context context;
};

// Total capacity less what lay outside the allocator: total - reserved - free of the message.
const std::uint64_t kT4 = static_cast<std::uint64_t>((13.06 + 835.88 / 1024) * static_cast<double>(kGiB));

TEST(TabFormerMemory, ParametersAreAsPosted) {
  for (const auto& [config, count] :
       {std::pair(SmallConfig(), std::int64_t{98'510'560}), std::pair(LargeConfig(), std::int64_t{874'326'757})}) {
    TabformerRuntime runtime(80 * kGiB);
    Parameters parameters(runtime.context);
    const TabFormer model(parameters, config);
    EXPECT_EQ(parameters.count(), count);
  }
}

TEST(TabFormerMemory, FailsAtThePostedRequest) {
  TabformerRuntime runtime(kT4);
  const absl::Status status = runtime.Train(LargeConfig(), 8, "adamw-hf");
  ASSERT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  const RefusedRequest& failure = *runtime.context.memory().failure();
  EXPECT_EQ(failure.bytes, 2'888'081'664u);
  EXPECT_EQ(failure.place.phase, "optimizer step");
  EXPECT_EQ(failure.place.owner, "tb_model.bert.embeddings.word_embeddings.weight");
  EXPECT_EQ(failure.place.tensor, "sqrt(exp_avg_sq)");
  const double gib = static_cast<double>(failure.live_bytes) / static_cast<double>(kGiB);
  EXPECT_NEAR(gib, 12.32, 0.002 * 12.32);
}

TEST(TabFormerMemory, ASmallerBatchDoesNotHelp) {
  TabformerRuntime runtime(kT4);
  EXPECT_EQ(runtime.Train(LargeConfig(), 1, "adamw-hf").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(runtime.context.memory().failure()->bytes, 2'888'081'664u);
}

TEST(TabFormerMemory, WithoutTheVisitorsItFitsEasily) {
  TabformerRuntime runtime(kT4);
  TabFormerConfig config = LargeConfig();
  config.column_sizes.back() = 1;
  EXPECT_TRUE(runtime.Train(config, 8, "adamw-hf").ok());
  EXPECT_LT(runtime.context.memory().peak_bytes(), 2 * kGiB);
}

TEST(TabFormerMemory, AllStatesFirstFailsElsewhere) {
  TabformerRuntime runtime(kT4);
  EXPECT_EQ(runtime.Train(LargeConfig(), 8, "adamw-loop").code(), absl::StatusCode::kResourceExhausted);
  // Weights, gradients and all states: 13.03 GiB before the first square root.
  EXPECT_GT(runtime.context.memory().failure()->live_bytes, static_cast<std::uint64_t>(13.02 * 1073741824.0));
}

}  // namespace
}  // namespace ashlar::kernels
