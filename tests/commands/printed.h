// An explanation as it is printed, and what must hold for every one of them.
#ifndef ASHLAR_TESTS_COMMANDS_PRINTED_H_
#define ASHLAR_TESTS_COMMANDS_PRINTED_H_

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "allocator/base/units.h"
#include "commands/explain/explain.h"
#include "commands/explain/explain_report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/commands/schema_check.h"

namespace ashlar::tests {

inline constexpr std::size_t kScreenLines = 60;
inline constexpr std::size_t kScreenColumns = 130;

inline std::string FileBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline nlohmann::json ExplainSchema() {
  return nlohmann::json::parse(FileBytes(ASHLAR_SOURCE_DIR "/docs/schemas/explain.schema.json"));
}

inline answers::ExplainSettings WithCapacity(std::uint64_t capacity_bytes) {
  answers::ExplainSettings out;
  out.replay.capacity_bytes = capacity_bytes;
  return out;
}

inline answers::ExplainSettings WithDevice(int device) {
  answers::ExplainSettings out;
  out.replay.device = device;
  return out;
}

// Characters of a line of UTF-8, not bytes.
inline std::size_t Columns(const std::string& line) {
  std::size_t out = 0;
  for (const char c : line) out += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return out;
}

inline void ExpectFitsOneScreen(const std::string& text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  EXPECT_LE(lines.size(), kScreenLines) << text;
  for (const std::string& line : lines) EXPECT_LE(Columns(line), kScreenColumns) << line;
  for (const char c : text) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n') << static_cast<int>(c);
}

// The parts sum to the whole, in the JSON's own numbers.
inline void ExpectSums(const nlohmann::json& parts) {
  const auto known = [&parts](std::initializer_list<const char*> keys) {
    for (const char* key : keys) {
      if (parts.at(key).is_null()) return false;
    }
    return true;
  };
  const auto value = [&parts](const char* key) { return parts.at(key).get<std::uint64_t>(); };
  if (known({"total_bytes", "reserved_bytes", "outside_bytes", "free_bytes"})) {
    EXPECT_EQ(value("total_bytes"), value("reserved_bytes") + value("outside_bytes") + value("free_bytes")) << parts;
  }
  if (known({"reserved_bytes", "allocated_bytes", "pending_bytes", "stranded_bytes", "whole_free_bytes",
             "private_pool_bytes"})) {
    EXPECT_EQ(value("reserved_bytes"), value("allocated_bytes") + value("pending_bytes") + value("stranded_bytes") +
                                           value("whole_free_bytes") + value("private_pool_bytes"))
        << parts;
  }
  if (known({"allocated_bytes", "live_bytes", "rounding_bytes"})) {
    EXPECT_EQ(value("allocated_bytes"), value("live_bytes") + value("rounding_bytes")) << parts;
  }
}

// The blame sums to the holes it is about.
inline void ExpectPinsSum(const nlohmann::json& json) {
  const nlohmann::json& pins = json["pins"];
  std::uint64_t sum = pins["other_blame_bytes"].get<std::uint64_t>();
  for (const nlohmann::json& line : pins["lines"]) sum += line["blame_bytes"].get<std::uint64_t>();
  const bool is_of_a_message = pins["lines"].empty() && json["peak"]["reserved_bytes"].is_null();
  if (!is_of_a_message) {
    EXPECT_EQ(sum, json["accounting"]["stranded_bytes"].get<std::uint64_t>());
  }
}

// The text shows the JSON's numbers: every part of the accounting, every what-if, every stack.
inline void ExpectTextShows(const nlohmann::json& json, const std::string& text) {
  using testing::HasSubstr;
  const nlohmann::json& parts = json["accounting"];
  for (const auto& [key, value] : parts.items()) {
    const bool is_sum = key == "reserved_bytes" || (key == "allocated_bytes" && !parts["live_bytes"].is_null());
    if (value.is_null() || is_sum || value == 0) continue;
    EXPECT_THAT(text, HasSubstr(FormatBytes(value.get<std::uint64_t>()))) << key;
  }
  if (!json["peak"]["utilisation"].is_null()) {
    EXPECT_THAT(text, HasSubstr("peak allocated " + FormatBytes(json["peak"]["allocated_bytes"].get<std::uint64_t>())));
    EXPECT_THAT(text, HasSubstr("peak reserved " + FormatBytes(json["peak"]["reserved_bytes"].get<std::uint64_t>())));
  }
  for (const nlohmann::json& row : json["what_if"]) {
    const std::string conf = row["conf"].get<std::string>();
    bool is_shown = false;
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
      is_shown = is_shown || (line.find(conf.empty() ? "  default " : "  " + conf) == 0 &&
                              line.find(FormatBytes(row["peak_reserved_bytes"].get<std::uint64_t>())) != line.npos &&
                              line.find(FormatCount(row["driver_calls"].get<std::uint64_t>())) != line.npos);
    }
    EXPECT_TRUE(is_shown) << row << " is not in\n" << text;
  }
  std::size_t shown_causes = 0;
  for (const nlohmann::json& cause : json["causes"]) {
    if (cause["finding"] != "found" || ++shown_causes > 3) continue;
    EXPECT_THAT(text, HasSubstr(FormatBytes(cause["bytes"].get<std::uint64_t>()) + "  " +
                                cause["confidence"].get<std::string>()));
    if (cause["fix"].is_null() || shown_causes > 1) continue;
    for (const char* row : {"before", "after"}) {
      EXPECT_THAT(text, HasSubstr(FormatBytes(cause["fix"][row]["peak_reserved_bytes"].get<std::uint64_t>())));
    }
  }
  for (const nlohmann::json& row : json["stacks"]) {
    EXPECT_THAT(text, HasSubstr(FormatBytes(row["bytes"].get<std::uint64_t>())));
  }
  if (!json["failure"].is_null()) {
    EXPECT_THAT(text,
                HasSubstr("WHY IT FAILED   (" + FormatBytes(json["failure"]["request_bytes"].get<std::uint64_t>())));
    const nlohmann::json& release = json["failure"]["release"];
    const std::uint64_t bytes = release.is_null() ? 0 : release["bytes"].get<std::uint64_t>();
    EXPECT_THAT(text, HasSubstr(release.is_null() ? "no set of live blocks"
                                : bytes == 0      ? "made again"
                                                  : FormatBytes(bytes)));
    for (const nlohmann::json& rung : json["failure"]["rungs"]) {
      if (rung["bytes"].get<std::uint64_t>() == 0 || rung["name"] == "search again") continue;
      EXPECT_THAT(text, HasSubstr("  " + rung["name"].get<std::string>() + " "));
      EXPECT_THAT(text, HasSubstr(FormatBytes(rung["bytes"].get<std::uint64_t>())));
    }
  }
  for (const nlohmann::json& line : json["pins"]["lines"]) {
    EXPECT_THAT(text, HasSubstr(FormatBytes(line["blame_bytes"].get<std::uint64_t>()) + "  behind "));
  }
  if (!json["paste"].is_null()) {
    EXPECT_THAT(text, HasSubstr("\nFIX            " + json["paste"].get<std::string>() + "\n"));
  }
}

// Verdict, causes, table and the line to paste say one thing.
inline void ExpectNoContradiction(const answers::Explanation& e) {
  using answers::OomVerdict;
  const bool is_failure = e.verdict.kind != OomVerdict::kHealthy && e.verdict.kind != OomVerdict::kUnknown;
  const bool is_beyond_settings = e.verdict.kind == OomVerdict::kCapacity ||
                                  e.verdict.kind == OomVerdict::kNearlyFull || e.verdict.kind == OomVerdict::kLeak ||
                                  e.verdict.kind == OomVerdict::kOutside;
  EXPECT_EQ(e.what_ifs.advice.paste.has_value(), !e.what_ifs.rows.empty() &&
                                                     whatif::IsWorthAChange(e.what_ifs.advice.choice.kind) &&
                                                     e.verdict.kind != OomVerdict::kLeak);
  EXPECT_FALSE(is_beyond_settings && e.what_ifs.advice.paste.has_value()) << analyses::VerdictName(e.verdict.kind);
  if (e.what_ifs.advice.paste.has_value() && is_failure) {
    EXPECT_TRUE(e.what_ifs.rows.at(e.what_ifs.advice.choice.row).CarriesThrough());
  }
  const bool is_told_hopeless =
      std::any_of(e.verdict.evidence.begin(), e.verdict.evidence.end(), [](const std::string& sentence) {
        return absl::StrContains(sentence, "no allocator setting can help") ||
               absl::StrContains(sentence, "no allocator packs as well");
      });
  for (const whatif::WhatIfRow& row : e.what_ifs.rows) {
    EXPECT_FALSE(is_told_hopeless && row.is_cut_off && row.ServesAllRecorded()) << row.conf;
    if (e.verdict.kind == OomVerdict::kCapacity && row.is_cut_off && row.ServesAllRecorded()) {
      EXPECT_TRUE(row.projected.has_value() && row.projected->ooms > 0) << row.conf;
    }
  }
}

// Everything above, and the schema. Returns the JSON.
inline nlohmann::json ExpectSound(const answers::Explanation& explanation, SchemaCheck& schema) {
  const nlohmann::json json = nlohmann::json::parse(report::ToJson({explanation}));
  const std::string text = report::ToText(explanation);
  schema.Check(json);
  EXPECT_THAT(schema.errors(), testing::IsEmpty());
  ExpectSums(json["accounting"]);
  ExpectPinsSum(json);
  ExpectTextShows(json, text);
  ExpectFitsOneScreen(text);
  ExpectNoContradiction(explanation);
  return json;
}

}  // namespace ashlar::tests

#endif  // ASHLAR_TESTS_COMMANDS_PRINTED_H_
