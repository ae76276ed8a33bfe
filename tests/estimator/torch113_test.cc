// Two training steps of PyTorch 1.13.1 that were recorded on the CPU, event by event against the dry run
// (torch113/record.py made the recordings, of torch113/models.py). What a kernel takes for itself differs between CPU
// and GPU and is left out on both sides: an allocation whose free comes next, and what is smaller than 64 bytes. Frees
// that follow one another are compared in any order.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "estimator/dry_run.h"
#include "estimator/run_observer.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/documented_row.h"
#include "tests/estimator/model_file.h"

namespace ashlar::estimate {
namespace {

constexpr char kFolder[] = ASHLAR_SOURCE_DIR "/tests/estimator/torch113/runs/";
constexpr std::uint64_t kLeastBytes = 64;

struct Request {
  std::string phase;  // "step 1 forward"
  std::uint64_t bytes = 0;
  std::size_t allocation = 0;  // that is made, or ended
  bool is_free = false;
};
using Requests = std::vector<Request>;

struct Recording {
  nlohmann::json about;
  Requests requests;
};

Recording Read(const std::string& name) {
  Recording out;
  std::ifstream file(kFolder + name + ".txt");
  std::string line, phase, word;
  std::getline(file, line);
  out.about = nlohmann::json::parse(line);
  std::vector<std::uint64_t> sizes;
  while (std::getline(file, line)) {
    if (absl::string_view heading = line; absl::ConsumePrefix(&heading, "# ")) {
      phase = std::string(heading);
      continue;
    }
    std::istringstream words(line);
    while (words >> word) {
      const bool is_free = word[0] == '-';
      std::uint64_t number = 0;
      EXPECT_TRUE(absl::SimpleAtoi(word.substr(is_free ? 1 : 0), &number)) << word;
      if (!is_free) sizes.push_back(number);
      const std::size_t allocation = is_free ? number : sizes.size() - 1;
      out.requests.push_back({phase, sizes[allocation], allocation, is_free});
    }
  }
  return out;
}

class Listener final : public RunObserver {
 public:
  void OnBegin(const core::CachingAllocator&, const kernels::TensorMemory& memory) override { memory_ = &memory; }
  void OnStep(std::int64_t step) override { step_ = step; }
  void OnEvent(const trace::Event& event, std::uint64_t) override {
    if (step_ == 0) return;
    const std::string phase = absl::StrCat("step ", step_, " ", memory_->phase());
    if (event.action == trace::Action::kAlloc) {
      live_[event.address] = count_;
      list.push_back({phase, event.size_bytes, count_++, false});
    } else if (const auto it = live_.find(event.address);
               event.action == trace::Action::kFreeRequested && it != live_.end()) {
      list.push_back({phase, event.size_bytes, it->second, true});
      live_.erase(it);
    }
  }
  Requests list;

 private:
  const kernels::TensorMemory* memory_ = nullptr;
  std::int64_t step_ = 0;
  std::size_t count_ = 0;
  std::unordered_map<std::uint64_t, std::size_t> live_;
};

Requests RunDry(const nlohmann::json& about) {
  absl::StatusOr<Model> model = ReadModel(about["config"].dump(), {});
  EXPECT_TRUE(model.ok()) << model.status();
  DryRunOptions options;
  options.steps = 2;
  options.batch = about["batch"];
  options.tokens = about["tokens"];
  options.target_tokens = about.value("targets", 0);
  options.is_checkpointed = about.value("is_checkpointed", false);
  options.torch_version = "1.13";
  Listener listener;
  const absl::StatusOr<DryRun> run = RunDry(*model, options, device::AddressOrder::kAscending, &listener);
  EXPECT_TRUE(run.ok()) << run.status();
  return std::move(listener.list);
}

// Without what is small and what is freed at once, the other allocations counted anew.
Requests Lasting(Requests all) {
  std::erase_if(all, [](const Request& r) { return r.bytes < kLeastBytes; });
  Requests kept;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_scratch = i + 1 < all.size() && all[i + 1].is_free && all[i + 1].allocation == all[i].allocation;
    if (is_scratch) {
      ++i;
    } else {
      kept.push_back(std::move(all[i]));
    }
  }
  std::unordered_map<std::size_t, std::size_t> number_of;
  for (Request& request : kept) {
    if (!request.is_free) number_of.emplace(request.allocation, number_of.size());
    request.allocation = number_of.at(request.allocation);
  }
  return kept;
}

// A line each request; frees between two allocations on one line.
std::vector<std::string> Lines(const Requests& requests) {
  std::vector<std::string> out;
  std::set<std::string> together;
  const auto end_frees = [&] {
    std::string line;
    for (const std::string& free : together) absl::StrAppend(&line, free, "; ");
    if (!line.empty()) out.push_back(std::move(line));
    together.clear();
  };
  for (const Request& r : requests) {
    const std::string text = absl::StrCat(r.phase, r.is_free ? ": free " : ": ", r.bytes, " #", r.allocation);
    if (r.is_free) {
      together.insert(text);
    } else {
      end_frees();
      out.push_back(text);
    }
  }
  end_frees();
  return out;
}

// Of bytes that live in a step.
std::uint64_t PeakOf(const Requests& requests, absl::string_view step) {
  std::uint64_t live = 0, peak = 0;
  for (const Request& r : requests) {
    live += r.is_free ? 0 - r.bytes : r.bytes;
    if (absl::StartsWith(r.phase, step)) peak = std::max(peak, live);
  }
  return peak;
}

class TorchRun : public testing::TestWithParam<const char*> {};

// docs/guide/estimate_accuracy.md has the number of events and the peaks of both steps.
TEST_P(TorchRun, AgreesEventByEvent) {
  const Recording recording = Read(GetParam());
  const Requests recorded = Lasting(recording.requests), dry = Lasting(RunDry(recording.about));
  const std::vector<std::string> expected = Lines(recorded), got = Lines(dry);
  const auto differ = std::mismatch(expected.begin(), expected.end(), got.begin(), got.end());
  if (differ.first != expected.end() && differ.second != got.end()) {
    FAIL() << "line " << differ.first - expected.begin() << " of " << expected.size() << ": recorded " << *differ.first
           << ", dry " << *differ.second;
  }
  EXPECT_EQ(got.size(), expected.size());
  const std::string cells = absl::StrCat(FormatCount(recorded.size()), " | ", FormatCount(PeakOf(recorded, "step 1")),
                                         " | ", FormatCount(PeakOf(recorded, "step 2")), " |");
  EXPECT_THAT(tests::DocumentedRow(absl::StrCat("`", GetParam(), "`")), testing::EndsWith(cells));
}

INSTANTIATE_TEST_SUITE_P(Models, TorchRun,
                         testing::Values("gpt2", "gpt_neo", "llama", "qwen2", "gemma", "t5", "distilbert",
                                         "gpt2_checkpointed", "llama_checkpointed", "t5_checkpointed"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace ashlar::estimate
