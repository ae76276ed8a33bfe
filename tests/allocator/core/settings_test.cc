// Settings from the environment, and docs/library/settings.md, which must have every key that the parser knows.
#include "allocator/core/settings.h"

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ashlar::core {
namespace {

using testing::HasSubstr;

Environment With(const std::map<std::string, std::string>& variables) {
  return [variables](const char* name) -> std::optional<std::string> {
    const auto it = variables.find(name);
    if (it == variables.end()) return std::nullopt;
    return it->second;
  };
}

std::string ErrorOf(const std::map<std::string, std::string>& variables) {
  return std::string(OptionsFromEnvironment(With(variables)).status().message());
}

TEST(SettingsTest, NothingSetIsEveryDefault) {
  const policy::Options options = *OptionsFromEnvironment(With({}));
  EXPECT_EQ(options.compat, policy::Compat::kTorch210);
  EXPECT_EQ(options.max_split_size_bytes, policy::kUnlimited);
  EXPECT_FALSE(options.search_after_sync || options.sync_just_enough || options.borrow_across_streams);
  EXPECT_FALSE(options.memory_limit_bytes || options.soft_limit_bytes || options.soft_limit_fraction);
}

TEST(SettingsTest, OurKeysStandBesidePyTorchs) {
  const policy::Options options = *OptionsFromEnvironment(
      With({{"ASHLAR_CONF",
             "max_split_size_mb:21, compat:torch-2.6, free_order:per-segment-counter, search_after_sync:True, "
             "sync_just_enough:True, borrow_across_streams:True, memory_limit_mb:3, soft_limit_mb:2, "
             "soft_limit_fraction:0.5, report_leaks:False"}}));
  EXPECT_EQ(options.compat, policy::Compat::kTorch26);
  EXPECT_EQ(options.free_order, policy::FreeOrder::kPerSegmentCounter);
  EXPECT_EQ(options.max_split_size_bytes, 21 * kMiB);
  EXPECT_TRUE(options.search_after_sync && options.sync_just_enough && options.borrow_across_streams);
  EXPECT_EQ(options.memory_limit_bytes, 3 * kMiB);
  EXPECT_EQ(options.soft_limit_bytes, 2 * kMiB);
  EXPECT_EQ(options.soft_limit_fraction, 0.5);
  EXPECT_FALSE(options.report_leaks);
}

TEST(SettingsTest, PyTorchsVariableIsReadWhenAskedForOnly) {
  std::map<std::string, std::string> variables = {{"PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64"},
                                                  {"PYTORCH_ALLOC_CONF", "max_split_size_mb:128"},
                                                  {"ASHLAR_CONF", "search_after_sync:True"}};
  EXPECT_EQ(OptionsFromEnvironment(With(variables))->max_split_size_bytes, policy::kUnlimited);
  variables["ASHLAR_USE_PYTORCH_CONF"] = "1";
  EXPECT_EQ(OptionsFromEnvironment(With(variables))->max_split_size_bytes, 64 * kMiB);
  EXPECT_TRUE(OptionsFromEnvironment(With(variables))->search_after_sync);
  variables["ASHLAR_CONF"] = "max_split_size_mb:256";
  EXPECT_EQ(OptionsFromEnvironment(With(variables))->max_split_size_bytes, 256 * kMiB) << "ours wins";
  variables["PYTORCH_CUDA_ALLOC_CONF"] = "";
  EXPECT_TRUE(OptionsFromEnvironment(With(variables)).ok()) << "set to nothing is set: the other is not even read";
  variables["PYTORCH_CUDA_ALLOC_CONF"] = "garbage_collection_threshold:0.5, ";
  EXPECT_EQ(OptionsFromEnvironment(With(variables))->max_split_size_bytes, 256 * kMiB) << "a comma at the end is fine";
  variables.erase("PYTORCH_CUDA_ALLOC_CONF");
  variables.erase("ASHLAR_CONF");
  EXPECT_EQ(OptionsFromEnvironment(With(variables))->max_split_size_bytes, 128 * kMiB);
}

TEST(SettingsTest, OneBadKeyIsOneClearError) {
  EXPECT_EQ(ErrorOf({{"ASHLAR_CONF", "max_split_mb:64"}}),
            "ASHLAR_CONF: 'max_split_mb' is no setting of torch-2.10 (value '64'); did you mean 'max_split_size_mb'?");
  EXPECT_EQ(ErrorOf({{"ASHLAR_CONF", "zebra:1"}}), "ASHLAR_CONF: 'zebra' is no setting of torch-2.10 (value '1')");
  EXPECT_EQ(ErrorOf({{"ASHLAR_CONF", "memory_limit_mb:0"}}),
            "ASHLAR_CONF: memory_limit_mb: '0' is too small: use a whole number of MiB > 0");
  EXPECT_THAT(ErrorOf({{"ASHLAR_CONF", "soft_limit_fraction:1.5"}}), HasSubstr("use a number above 0, up to 1"));
  EXPECT_THAT(ErrorOf({{"ASHLAR_CONF", "compat:torch-9"}}), HasSubstr("use one of torch-1.13, torch-2.6"));
  EXPECT_THAT(ErrorOf({{"ASHLAR_CONF", "free_order:size"}}), HasSubstr("use one of address"));
  EXPECT_THAT(ErrorOf({{"ASHLAR_CONF", "search_after_sync:yes"}}), HasSubstr("use True or False"));
  EXPECT_EQ(ErrorOf({{"ASHLAR_USE_PYTORCH_CONF", "maybe"}}),
            "ASHLAR_USE_PYTORCH_CONF: 'maybe' is not allowed: use 1 or 0");
  const std::map<std::string, std::string> theirs = {{"ASHLAR_USE_PYTORCH_CONF", "True"},
                                                     {"PYTORCH_CUDA_ALLOC_CONF", "search_after_sync:True"}};
  EXPECT_EQ(ErrorOf(theirs), "PYTORCH_CUDA_ALLOC_CONF: 'search_after_sync' is no setting of torch-2.10 (value 'True')")
      << "what PyTorch would refuse is refused";
  EXPECT_THAT(ErrorOf({{"ASHLAR_USE_PYTORCH_CONF", "1"},
                       {"PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:32"},
                       {"ASHLAR_CONF", "large_segment_size_mb:64"}}),
              HasSubstr("PYTORCH_CUDA_ALLOC_CONF with ASHLAR_CONF: max_split_size_mb: '32'"));
}

// key, from, values, default, effect
std::vector<std::vector<std::string>> DocumentedKeys() {
  std::ifstream file(std::string(ASHLAR_SOURCE_DIR) + "/docs/library/settings.md");
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "| `")) continue;
    std::vector<std::string> cells = absl::StrSplit(line, '|');
    for (std::string& cell : cells) absl::StripAsciiWhitespace(&cell);
    if (cells.size() == 7) rows.push_back({cells.begin() + 1, cells.end() - 1});
  }
  return rows;
}

TEST(SettingsTest, EveryKeyIsDocumented) {
  const std::vector<std::vector<std::string>> rows = DocumentedKeys();
  const std::vector<policy::KeyInfo> keys = policy::AllKeys();
  ASSERT_EQ(rows.size(), keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string name(keys[i].name);
    EXPECT_EQ(rows[i][0], "`" + name + "`");
    EXPECT_EQ(rows[i][1] == "Ashlar", keys[i].is_ours) << name;
    EXPECT_FALSE(rows[i][2].empty() || rows[i][4].empty()) << name;
    EXPECT_EQ(rows[i][3].empty(), !keys[i].has_effect) << name << ": the default of a key with an effect";
    EXPECT_EQ(rows[i][4] == "accepted, changes no decision", !keys[i].has_effect) << name;
  }
}

// "From" in the table is what the parser does: a key is known to its version, and to none before.
TEST(SettingsTest, EveryKeyIsKnownFromItsVersionOn) {
  const std::vector<std::string> versions = {"1.13", "2.6", "2.10", "latest"};
  for (const std::vector<std::string>& row : DocumentedKeys()) {
    const std::string key = row[0].substr(1, row[0].size() - 2);
    bool is_known = false;
    for (const std::string& version : versions) {
      is_known = row[1] == "1.13 only" ? version == "1.13" : is_known || row[1] == version;
      const absl::Status status = policy::ParseConf(key + ":?", *policy::ParseCompat("torch-" + version)).status();
      EXPECT_EQ(!absl::StrContains(status.message(), "is no setting of"), is_known) << key << " " << version;
    }
  }
}

}  // namespace
}  // namespace ashlar::core
