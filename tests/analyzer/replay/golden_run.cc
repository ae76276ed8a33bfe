#include "tests/analyzer/replay/golden_run.h"

#include <fstream>
#include <utility>

#include "absl/status/statusor.h"
#include "allocator/base/check.h"
#include "analyzer/formats/input_file.h"
#include "analyzer/formats/plain/plain_trace.h"
#include "nlohmann/json.hpp"

namespace ashlar {
namespace {

policy::Compat CompatOf(const std::string& name) {
  const std::string version = name.substr(0, name.find('/'));
  if (version == "1.13") return policy::Compat::kTorch113;
  if (version == "2.6") return policy::Compat::kTorch26;
  ASHLAR_CHECK(version == "latest");
  return policy::Compat::kTorchLatest;
}

GoldenRun ReadRun(const std::string& name, const nlohmann::json& entry) {
  GoldenRun run;
  run.name = name;
  run.trace = entry.at("trace");
  absl::StatusOr<policy::Options> options = policy::ParseConf(entry.at("conf").get<std::string>(), CompatOf(name));
  ASHLAR_CHECK(options.ok());
  run.options = *std::move(options);
  run.capacity_bytes = entry.at("capacity");
  if (!entry.at("memory_fraction").is_null()) run.memory_fraction = entry.at("memory_fraction").get<double>();
  run.events_complete_immediately = entry.at("events_complete_immediately");
  run.events_sha256 = entry.at("events_norm_sha256");
  for (const auto& [key, value] : entry.items()) {
    if (value.is_number_integer() && key != "capacity" && key != "memory_fraction") run.numbers[key] = value;
  }
  return run;
}

}  // namespace

replay::RequestReplayOptions ReplayOptions(const GoldenRun& run) {
  replay::RequestReplayOptions options;
  options.policy = run.options;
  options.device.capacity_bytes = run.capacity_bytes;
  options.device.events_complete_immediately = run.events_complete_immediately;
  options.memory_fraction = run.memory_fraction;
  return options;
}

GoldenFolder::GoldenFolder(std::string folder) : folder_(std::move(folder)) {
  std::ifstream file(folder_ + "/index.json");
  const nlohmann::json index = nlohmann::json::parse(file);
  for (const auto& [name, entry] : index.items()) runs_.push_back(ReadRun(name, entry));
}

const trace::RequestTrace& GoldenFolder::Trace(const std::string& name) {
  const auto [it, is_new] = traces_.try_emplace(name);
  if (is_new) {
    const absl::StatusOr<std::string> text = formats::ReadInput(folder_ + "/traces/" + name + ".txt.gz");
    ASHLAR_CHECK(text.ok());
    absl::StatusOr<trace::RequestTrace> trace = formats::ParsePlainTrace(*text);
    ASHLAR_CHECK(trace.ok());
    it->second = *std::move(trace);
  }
  return it->second;
}

}  // namespace ashlar
