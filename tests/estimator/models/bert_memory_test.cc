// BERT-large for sequence classification under a Trainer of January 2022 (torch 1.10, transformers 4.1x), against what
// NVML showed on a V100 (Hugging Face, "Performance and Scalability"; sequence 512, dummy data): weights, and eight
// training set-ups.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "allocator/policy/options.h"
#include "estimator/models/bert.h"
#include "kernels/workloads/training.h"

namespace ashlar::kernels {
namespace {

constexpr std::int64_t kBertLength = 512;
constexpr std::uint64_t kContextMib = 1341;  // 1343 measured with a tensor's segment of 2 MiB in it
constexpr std::uint64_t kCublasMib = 18;     // two handles' workspaces, from the driver in torch 1.10

struct Row {
  const char* name;
  std::uint64_t measured_mib;
  std::int64_t steps = 3;
  std::int64_t batch = 4;
  std::int64_t accumulation = 1;
  bool is_checkpointed = false;
  bool is_half = false;
  const char* optimizer = "adamw-hf";
};

struct Peak {
  std::uint64_t allocated_mib = 0;
  std::uint64_t shown_mib = 0;
};

Peak PeakOf(const Row& row, device::AddressOrder order) {
  device::SimDeviceOptions device_options;
  device_options.address_order = order;
  device::SimDevice device(device_options);
  core::CachingAllocator allocator(&device, *policy::ParseConf("", policy::Compat::kTorch113));
  Context context(&allocator, Stream{0}, *FrameworkOf("1.10"), *GpuNamed("V100"));
  Parameters parameters(context);
  const BertClassifier model(parameters, BertLarge(), 2, {.is_checkpointed = row.is_checkpointed});
  Training training(parameters, {.accumulation = row.accumulation,
                                 .autocast = row.is_half ? std::optional(DType::kFloat16) : std::nullopt,
                                 .optimizer = row.optimizer});
  const absl::Status status = training.Run(row.steps, [&] {
    const Tensor ids = Empty(context, {row.batch, kBertLength}, DType::kInt64, Part::kBatch);
    const Tensor labels = Empty(context, {row.batch}, DType::kInt64, Part::kBatch);
    return model.Loss(ids, labels);
  });
  EXPECT_TRUE(status.ok()) << status;
  const auto reserved = static_cast<std::uint64_t>(allocator.stats().reserved_bytes.all().peak);
  return {static_cast<std::uint64_t>(allocator.stats().allocated_bytes.all().peak) / kMiB,
          kContextMib + reserved / kMiB + (row.steps > 0 ? kCublasMib : 0)};
}

std::string NameOf(const testing::TestParamInfo<Row>& row) { return row.param.name; }

std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

class BertLargeRow : public testing::TestWithParam<Row> {};

TEST_P(BertLargeRow, IsWithinOnePercentOfTheMeasurement) {
  const Row& row = GetParam();
  const Peak up = PeakOf(row, device::AddressOrder::kAscending), down = PeakOf(row, device::AddressOrder::kDescending);
  const auto error = [&](const Peak& peak) {
    return (static_cast<double>(peak.shown_mib) / static_cast<double>(row.measured_mib) - 1) * 100;
  };
  std::printf("%-40s measured %6llu, up %6llu (%+.2f %%), down %6llu (%+.2f %%), allocated %llu MiB\n", row.name,
              static_cast<unsigned long long>(row.measured_mib), static_cast<unsigned long long>(up.shown_mib),
              error(up), static_cast<unsigned long long>(down.shown_mib), error(down),
              static_cast<unsigned long long>(up.allocated_mib));
  EXPECT_LE(std::min(std::abs(error(up)), std::abs(error(down))), 1.0);
}

INSTANTIATE_TEST_SUITE_P(
    , BertLargeRow,
    testing::Values(
        Row{.name = "Weights", .measured_mib = 2631, .steps = 0}, Row{.name = "AdamW", .measured_mib = 14949},
        Row{.name = "Accumulation", .measured_mib = 8681, .batch = 1, .accumulation = 4},
        Row{.name = "Checkpointing", .measured_mib = 6775, .batch = 1, .accumulation = 4, .is_checkpointed = true},
        Row{.name = "Half", .measured_mib = 13939, .is_half = true},
        Row{.name = "HalfCheckpointing",
            .measured_mib = 7275,
            .batch = 1,
            .accumulation = 4,
            .is_checkpointed = true,
            .is_half = true},
        Row{.name = "Adafactor", .measured_mib = 12295, .optimizer = "adafactor"},
        Row{.name = "HalfCheckpointingAdafactor",
            .measured_mib = 4847,
            .batch = 1,
            .accumulation = 4,
            .is_checkpointed = true,
            .is_half = true,
            .optimizer = "adafactor"},
        Row{.name = "AdamW8Bit", .measured_mib = 13085, .optimizer = "adamw-8bit"}),
    NameOf);

}  // namespace
}  // namespace ashlar::kernels
