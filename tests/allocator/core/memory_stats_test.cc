// The statistics by PyTorch's names, and as OpenMetrics text, read back by a strict parser of its grammar.
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/stats.h"
#include "allocator/device/sim_device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ashlar::tests {
namespace {

using core::CachingAllocator;

// What torch.cuda.memory_stats() of PyTorch returns, key by key, in its order.
constexpr absl::string_view kNames = R"(
active.all.allocated active.all.current active.all.freed active.all.peak active.large_pool.allocated
active.large_pool.current active.large_pool.freed active.large_pool.peak active.small_pool.allocated
active.small_pool.current active.small_pool.freed active.small_pool.peak active_bytes.all.allocated
active_bytes.all.current active_bytes.all.freed active_bytes.all.peak active_bytes.large_pool.allocated
active_bytes.large_pool.current active_bytes.large_pool.freed active_bytes.large_pool.peak
active_bytes.small_pool.allocated active_bytes.small_pool.current active_bytes.small_pool.freed
active_bytes.small_pool.peak allocated_bytes.all.allocated allocated_bytes.all.current allocated_bytes.all.freed
allocated_bytes.all.peak allocated_bytes.large_pool.allocated allocated_bytes.large_pool.current
allocated_bytes.large_pool.freed allocated_bytes.large_pool.peak allocated_bytes.small_pool.allocated
allocated_bytes.small_pool.current allocated_bytes.small_pool.freed allocated_bytes.small_pool.peak
allocation.all.allocated allocation.all.current allocation.all.freed allocation.all.peak
allocation.large_pool.allocated allocation.large_pool.current allocation.large_pool.freed allocation.large_pool.peak
allocation.small_pool.allocated allocation.small_pool.current allocation.small_pool.freed allocation.small_pool.peak
inactive_split.all.allocated inactive_split.all.current inactive_split.all.freed inactive_split.all.peak
inactive_split.large_pool.allocated inactive_split.large_pool.current inactive_split.large_pool.freed
inactive_split.large_pool.peak inactive_split.small_pool.allocated inactive_split.small_pool.current
inactive_split.small_pool.freed inactive_split.small_pool.peak inactive_split_bytes.all.allocated
inactive_split_bytes.all.current inactive_split_bytes.all.freed inactive_split_bytes.all.peak
inactive_split_bytes.large_pool.allocated inactive_split_bytes.large_pool.current
inactive_split_bytes.large_pool.freed inactive_split_bytes.large_pool.peak inactive_split_bytes.small_pool.allocated
inactive_split_bytes.small_pool.current inactive_split_bytes.small_pool.freed inactive_split_bytes.small_pool.peak
max_split_size num_alloc_retries num_device_alloc num_device_free num_oom_rejections num_ooms num_sync_all_streams
oversize_allocations.allocated oversize_allocations.current oversize_allocations.freed oversize_allocations.peak
oversize_segments.allocated oversize_segments.current oversize_segments.freed oversize_segments.peak
requested_bytes.all.allocated requested_bytes.all.current requested_bytes.all.freed requested_bytes.all.peak
requested_bytes.large_pool.allocated requested_bytes.large_pool.current requested_bytes.large_pool.freed
requested_bytes.large_pool.peak requested_bytes.small_pool.allocated requested_bytes.small_pool.current
requested_bytes.small_pool.freed requested_bytes.small_pool.peak reserved_bytes.all.allocated
reserved_bytes.all.current reserved_bytes.all.freed reserved_bytes.all.peak reserved_bytes.large_pool.allocated
reserved_bytes.large_pool.current reserved_bytes.large_pool.freed reserved_bytes.large_pool.peak
reserved_bytes.small_pool.allocated reserved_bytes.small_pool.current reserved_bytes.small_pool.freed
reserved_bytes.small_pool.peak segment.all.allocated segment.all.current segment.all.freed segment.all.peak
segment.large_pool.allocated segment.large_pool.current segment.large_pool.freed segment.large_pool.peak
segment.small_pool.allocated segment.small_pool.current segment.small_pool.freed segment.small_pool.peak
)";

// 100 MiB asked for less 1000 bytes, which takes a segment whole; 30 MiB freed, of which 5 are used again; two small
// blocks, of which one waits for stream 7.
class MemoryStatsTest : public testing::Test {
 protected:
  MemoryStatsTest()
      : device_({.capacity_bytes = 256 * kMiB}),
        allocator_(&device_, *policy::ParseConf("max_split_size_mb:64", policy::Compat::kTorch210)) {
    (void)*allocator_.Allocate(100 * kMiB - 1000, Stream{0});
    allocator_.Free(*allocator_.Allocate(30 * kMiB, Stream{0}));
    (void)*allocator_.Allocate(5 * kMiB, Stream{0});
    (void)*allocator_.Allocate(1000, Stream{0});
    core::Block* waits = *allocator_.Allocate(512, Stream{0});
    allocator_.RecordStream(waits, Stream{7});
    allocator_.Free(waits);
  }

  std::map<std::string, std::int64_t> Values() {
    std::map<std::string, std::int64_t> out;
    for (const auto& [name, value] : core::MemoryStats(allocator_.stats(), allocator_.options())) out[name] = value;
    return out;
  }

  device::SimDevice device_;
  CachingAllocator allocator_;
};

TEST_F(MemoryStatsTest, HasEveryNameOfPyTorchAndNoOther) {
  std::vector<std::string> names;
  for (const auto& [name, value] : core::MemoryStats(allocator_.stats(), allocator_.options())) names.push_back(name);
  const std::vector<std::string> expected = absl::StrSplit(kNames, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  EXPECT_EQ(names, expected);
  EXPECT_EQ(names.size(), 123u);
}

TEST_F(MemoryStatsTest, CountsWhatHappened) {
  const std::map<std::string, std::int64_t> values = Values();
  const auto mib = [](std::int64_t count) { return count * static_cast<std::int64_t>(kMiB); };
  const std::map<std::string, std::int64_t> expected = {
      {"allocation.all.allocated", 5},
      {"allocation.all.current", 3},
      {"allocation.all.freed", 2},
      {"allocation.large_pool.peak", 2},
      {"allocation.small_pool.current", 1},
      {"active.small_pool.current", 2},
      {"allocated_bytes.all.current", mib(105) + 1024},
      {"allocated_bytes.large_pool.peak", mib(130)},
      {"active_bytes.small_pool.current", 1024 + 512},
      {"requested_bytes.all.current", mib(105) - 1000 + 1000 + 512},
      {"reserved_bytes.all.current", mib(100 + 30 + 2)},
      {"segment.all.current", 3},
      {"segment.large_pool.current", 2},
      {"inactive_split.small_pool.current", 1},
      {"inactive_split_bytes.small_pool.current", mib(2) - 1024 - 512},
      {"inactive_split_bytes.large_pool.current", mib(25)},
      {"oversize_allocations.current", 1},
      {"oversize_segments.current", 1},
      {"num_device_alloc", 3},
      {"num_ooms", 0},
      {"max_split_size", mib(64)},
  };
  for (const auto& [name, value] : expected) EXPECT_EQ(values.at(name), value) << name;
}

TEST_F(MemoryStatsTest, AFailureIsCounted) {
  EXPECT_FALSE(allocator_.Allocate(kGiB, Stream{0}).ok());
  const std::map<std::string, std::int64_t> values = Values();
  EXPECT_EQ(values.at("num_ooms"), 1);
  EXPECT_EQ(values.at("num_alloc_retries"), 1);
  EXPECT_EQ(values.at("num_sync_all_streams"), 1);
  EXPECT_EQ(values.at("active.small_pool.current"), 1) << "the retry waited for stream 7";
}

TEST(MemoryStatsUnlimitedTest, NoSplitLimitIsMinusOne) {
  const auto values = core::MemoryStats({}, {});
  EXPECT_THAT(values, testing::Contains(testing::Pair("max_split_size", -1)));
}

// --- OpenMetrics 1.0.0 ---

bool IsName(absl::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  return text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:") ==
         absl::string_view::npos;
}

// What a text breaks of the grammar and the rules of the specification; empty = nothing. Samples are collected.
class StrictReader {
 public:
  std::vector<std::string> Read(absl::string_view text) {
    if (!absl::ConsumeSuffix(&text, "# EOF\n")) Complain("does not end with # EOF and a line feed");
    std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
    if (lines.back().empty()) lines.pop_back();
    for (const absl::string_view line : lines) {
      line_ = std::string(line);
      if (absl::StartsWith(line, "# ")) {
        Metadata(line.substr(2));
      } else {
        Sample(line);
      }
    }
    return std::move(complaints_);
  }
  const std::map<std::string, double>& samples() const { return samples_; }

 private:
  void Complain(const std::string& what) { complaints_.push_back(absl::StrCat(what, ": ", line_)); }

  void Metadata(absl::string_view text) {
    const std::vector<std::string> words = absl::StrSplit(text, absl::MaxSplits(' ', 2));
    if (words.size() != 3) return Complain("metadata is not 'KEYWORD name text'");
    if (words[1] != family_) {
      if (!families_.insert(words[1]).second) Complain("the family stands twice, or is interleaved with another");
      family_ = words[1];
      type_ = "unknown";
      seen_keywords_.clear();
      has_samples_ = false;
    }
    if (!IsName(family_)) Complain("no metric name");
    if (has_samples_) Complain("metadata after samples");
    if (!seen_keywords_.insert(words[0]).second) Complain("the keyword stands twice");
    if (words[0] == "TYPE") {
      type_ = words[2];
      if (type_ != "gauge" && type_ != "counter") Complain("no type that is expected here");
      if (type_ == "counter" && absl::EndsWith(family_, "_total")) Complain("a counter's family ends with _total");
    } else if (words[0] == "UNIT") {
      if (!absl::EndsWith(family_, absl::StrCat("_", words[2]))) Complain("the name does not end with the unit");
    } else if (words[0] != "HELP") {
      Complain("no keyword");
    }
  }

  void Sample(absl::string_view line) {
    const std::size_t brace = line.find('{');
    if (brace == absl::string_view::npos) return Complain("a sample without labels");
    has_samples_ = true;
    const std::string expected = type_ == "counter" ? absl::StrCat(family_, "_total") : family_;
    if (line.substr(0, brace) != expected) Complain("a sample outside its family");
    std::size_t at = brace + 1;
    const std::string labels = Labels(line, at);
    absl::string_view rest = line.substr(std::min(at, line.size()));
    if (!absl::ConsumePrefix(&rest, "} ")) return Complain("no '} ' behind the labels");
    double value = 0;
    if (rest == "+Inf") {
      value = std::numeric_limits<double>::infinity();
    } else if (!absl::SimpleAtod(rest, &value) || absl::StrContains(rest, " ")) {
      Complain("no number");
    }
    if (type_ == "counter" && value < 0) Complain("a counter below 0");
    if (!samples_.emplace(absl::StrCat(expected, "{", labels, "}"), value).second) Complain("the sample stands twice");
  }

  // name="value",... with the escapes undone.
  std::string Labels(absl::string_view line, std::size_t& at) {
    std::string out;
    std::set<std::string> names;
    while (at < line.size() && line[at] != '}') {
      const std::size_t equals = line.find("=\"", at);
      if (equals == absl::string_view::npos) {
        Complain("a label without a value");
        at = line.size();
        return out;
      }
      const std::string name(line.substr(at, equals - at));
      if (!IsName(name) || absl::StrContains(name, ":") || !names.insert(name).second) Complain("bad label name");
      absl::StrAppend(&out, out.empty() ? "" : ",", name, "=");
      for (at = equals + 2; at < line.size() && line[at] != '"'; ++at) {
        if (line[at] == '\\') {
          ++at;
          if (at >= line.size() || !absl::StrContains("\\\"n", line.substr(at, 1))) Complain("bad escape");
        }
        if (at < line.size()) out += line[at];
      }
      ++at;
      if (at < line.size() && line[at] == ',') ++at;
    }
    return out;
  }

  std::vector<std::string> complaints_;
  std::map<std::string, double> samples_;
  std::set<std::string> families_;
  std::set<std::string> seen_keywords_;
  std::string family_, type_, line_;
  bool has_samples_ = false;
};

TEST(OpenMetricsTest, TheReaderFindsWhatIsWrong) {
  const std::vector<std::string> bad = {
      "",
      "# TYPE a gauge\na{} 1\n",
      "# TYPE a gauge\na{} 1\n\n# EOF\n",
      "# TYPE a gauge\nb{} 1\n# EOF\n",
      "# TYPE a counter\na{} 1\n# EOF\n",
      "# TYPE a counter\na_total{} -1\n# EOF\n",
      "# TYPE a gauge\n# UNIT a bytes\na{} 1\n# EOF\n",
      "# TYPE a gauge\na{} 1\na{} 2\n# EOF\n",
      "# TYPE a gauge\na{x=\"1\",x=\"2\"} 1\n# EOF\n",
      "# TYPE a gauge\na{x=\"\\q\"} 1\n# EOF\n",
      "# TYPE a gauge\na{x=\"1\"} 1 \n# EOF\n",
      "# TYPE a gauge\na{} one\n# EOF\n",
      "# TYPE a gauge\na{} 1\n# HELP a late\n# EOF\n",
      "# TYPE a gauge\na{} 1\n# TYPE b gauge\nb{} 1\n# TYPE a gauge\n# EOF\n",
      "# TYPE 1a gauge\n1a{} 1\n# EOF\n",
  };
  for (const std::string& text : bad) EXPECT_FALSE(StrictReader().Read(text).empty()) << text;
  EXPECT_TRUE(StrictReader().Read("# TYPE a counter\na_total{x=\"1\\\"\"} 1\n# EOF\n").empty());
}

TEST_F(MemoryStatsTest, TheOpenMetricsTextIsValidAndHasEveryValue) {
  const std::vector<core::MetricsSource> sources = {
      {"0", allocator_.stats(), allocator_.options().max_split_size_bytes}, {"a \"b\"\n\\", {}}};
  const std::string text = core::OpenMetricsText(sources);
  StrictReader reader;
  EXPECT_THAT(reader.Read(text), testing::IsEmpty()) << text;
  const std::map<std::string, double>& samples = reader.samples();
  EXPECT_EQ(samples.size(), 2 * 123u) << "each of PyTorch's values, for two devices";
  const auto mib = [](double count) { return count * static_cast<double>(kMiB); };
  EXPECT_EQ(samples.at("ashlar_allocated_bytes{device=0,pool=all}"), mib(105) + 1024);
  EXPECT_EQ(samples.at("ashlar_allocated_peak_bytes{device=0,pool=large}"), mib(130));
  EXPECT_EQ(samples.at("ashlar_allocation_increase_blocks_total{device=0,pool=all}"), 5);
  EXPECT_EQ(samples.at("ashlar_allocation_decrease_blocks_total{device=0,pool=all}"), 2);
  EXPECT_EQ(samples.at("ashlar_held_segments{device=0,pool=large}"), 2);
  EXPECT_EQ(samples.at("ashlar_oversize_blocks{device=0}"), 1);
  EXPECT_EQ(samples.at("ashlar_device_alloc_total{device=0}"), 3);
  EXPECT_EQ(samples.at("ashlar_max_split_size_bytes{device=0}"), mib(64));
  EXPECT_EQ(samples.at("ashlar_max_split_size_bytes{device=a \"b\"n\\}"), std::numeric_limits<double>::infinity());
  EXPECT_THAT(text, testing::StartsWith("# TYPE ashlar_active_blocks gauge\n# UNIT ashlar_active_blocks blocks\n"));
}

}  // namespace
}  // namespace ashlar::tests
