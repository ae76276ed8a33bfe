// The page holds what the trace holds: its columns are read back by code of the test's own, and what stands at a moment
// is built again of them and compared with the timeline's state and the accounting of it.
#include "commands/explain/page/page.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/analyses/state/state_accounting.h"
#include "analyzer/formats/input_file.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "commands/explain/explain.h"
#include "commands/explain/explain_report.h"
#include "commands/shared/traced_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/commands/example_training.h"
#include "tests/commands/recording.h"
#include "tests/commands/report/drawn_page.h"
#include "tests/commands/report/page_reader.h"
#include "tests/corpus_files.h"

namespace ashlar::tests {
namespace {

using testing::HasSubstr;
using testing::Not;

answers::Explanation ExplainDrawn(const trace::Snapshot& snapshot, answers::PictureLimits limits = {}) {
  absl::StatusOr<answers::Explanation> out = answers::ExplainSnapshot(snapshot, {.picture = limits});
  EXPECT_TRUE(out.ok()) << out.status();
  return *std::move(out);
}

timeline::Timeline MustObserve(const trace::Snapshot& snapshot) {
  absl::StatusOr<answers::ObservedRun> run = answers::ObserveSnapshot(snapshot, {});
  EXPECT_TRUE(run.ok()) << run.status();
  return std::move(run->timeline);
}

// (address, size, is live, requested or -1) of blocks; (address, size, pool, stream) of segments. Ascending.
using Rows = std::vector<std::vector<std::string>>;

std::vector<std::string> Texts(std::initializer_list<std::int64_t> numbers) {
  std::vector<std::string> out;
  for (const std::int64_t number : numbers) out.push_back(std::to_string(number));
  return out;
}

// A column is looked up by name once: these loops look at every block for every moment.
Rows BlocksAt(const RunColumns& run, std::int64_t moment) {
  const auto &alloc = run["block.alloc"], &freed = run["block.freed"], &done = run["block.done"];
  const auto &address = run["block.address"], &size = run["block.size"], &requested = run["block.requested"];
  const auto& flags = run["block.flags"];
  Rows out;
  for (std::size_t i = 0; i < alloc.size(); ++i) {
    if (alloc[i] > moment || moment >= done[i]) continue;
    const bool is_known = (flags[i] & 4) != 0;
    out.push_back(Texts({address[i], size[i], moment < freed[i] ? 1 : 0, is_known ? requested[i] : -1}));
  }
  std::sort(out.begin(), out.end());
  return out;
}

Rows SegmentsAt(const RunColumns& run, std::int64_t moment) {
  const auto &end = run["segment.end"], &first = run["segment.extent"], &since = run["extent.moment"];
  Rows out;
  for (std::size_t i = 0; i < end.size(); ++i) {
    std::int64_t at = -1;
    for (std::int64_t extent = first[i]; extent < first[i + 1]; ++extent) {
      if (since[static_cast<std::size_t>(extent)] <= moment) at = extent;
    }
    if (at < 0 || moment >= end[i]) continue;
    std::vector<std::string> row =
        Texts({run["extent.address"][static_cast<std::size_t>(at)], run["extent.size"][static_cast<std::size_t>(at)]});
    row.push_back(run.json()["pools"][static_cast<std::size_t>(run["segment.pool"][i])]);
    row.push_back(run.json()["streams"][static_cast<std::size_t>(run["segment.stream"][i])]);
    out.push_back(row);
  }
  std::sort(out.begin(), out.end());
  return out;
}

Rows BlocksOf(const timeline::State& state) {
  Rows out;
  for (const timeline::StateSegment& segment : state.segments) {
    for (const timeline::StateBlock& block : segment.blocks) {
      out.push_back(
          Texts({Signed(block.address), Signed(block.size_bytes), block.state == trace::BlockState::kLive ? 1 : 0,
                 block.requested_bytes.has_value() ? Signed(*block.requested_bytes) : -1}));
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

Rows SegmentsOf(const timeline::State& state) {
  Rows out;
  for (const timeline::StateSegment& segment : state.segments) {
    std::vector<std::string> row = Texts({Signed(segment.address), Signed(segment.size_bytes)});
    row.push_back(segment.pool.IsDefault()
                      ? "default"
                      : std::to_string(segment.pool.first) + ":" + std::to_string(segment.pool.second));
    char stream[32];
    std::snprintf(stream, sizeof(stream), Handle(segment.stream) == 0 ? "%lx" : "0x%lx", Handle(segment.stream));
    row.emplace_back(stream);
    out.push_back(row);
  }
  std::sort(out.begin(), out.end());
  return out;
}

void ExpectSums(const RunColumns& run, std::size_t moment, const core::Accounting& parts) {
  EXPECT_EQ(run["allocated"][moment], Signed(parts.allocated_bytes));
  EXPECT_EQ(run["active"][moment], Signed(parts.allocated_bytes + parts.pending_bytes));
  EXPECT_EQ(run["reserved"][moment], Signed(parts.reserved_bytes));
  EXPECT_EQ(run["stranded"][moment], Signed(parts.stranded_bytes));
  EXPECT_EQ(run["private_free"][moment], Signed(parts.private_pool_bytes));
  if (run.Has("requested")) {
    EXPECT_EQ(run["requested"][moment], parts.live_bytes.has_value() ? Signed(*parts.live_bytes) : -1);
  } else {
    EXPECT_FALSE(parts.live_bytes.has_value());
  }
}

// Everything at these moments of the observed run.
void ExpectMoments(const RunColumns& run, const timeline::Timeline& timeline, const std::vector<std::size_t>& moments) {
  for (const std::size_t moment : moments) {
    SCOPED_TRACE(testing::Message() << "moment " << moment);
    const timeline::EventIndex event = run["event"][moment];
    const timeline::State state = timeline.StateAt(event);
    EXPECT_EQ(SegmentsAt(run, static_cast<std::int64_t>(moment)), SegmentsOf(state));
    EXPECT_EQ(BlocksAt(run, static_cast<std::int64_t>(moment)), BlocksOf(state));
    ExpectSums(run, moment, analyses::AccountState(state));
    if (testing::Test::HasFailure()) return;
  }
}

// The first, the last, the verdict's, the peaks', and a dozen between.
std::vector<std::size_t> SomeMoments(const RunColumns& run) {
  std::vector<std::size_t> out = {0, run.moment_count() - 1, run.json()["verdict_moment"]};
  for (const auto& [name, peak] : run.json()["peaks"].items()) out.push_back(peak["moment"]);
  for (std::size_t i = 1; i < 12; ++i) out.push_back(i * run.moment_count() / 12);
  return out;
}

std::vector<std::size_t> AllMoments(const RunColumns& run) {
  std::vector<std::size_t> out(run.moment_count());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = i;
  return out;
}

// Of a what-if: its blocks and segments add up to its sums, and its peak is the row's.
void ExpectWhatIf(const RunColumns& run, const answers::Explanation& explanation) {
  const whatif::WhatIfRow& row = explanation.what_ifs.rows.at(run.json()["what_if_row"]);
  SCOPED_TRACE(row.conf);
  EXPECT_EQ(run.json()["name"], row.conf);
  const std::uint64_t projected = row.projected.has_value() ? row.projected->peak_reserved_bytes : 0;
  EXPECT_EQ(run.json()["peaks"]["reserved"]["bytes"], std::max(row.peak_reserved_bytes, projected));
  EXPECT_EQ(run.json()["projected_from"].is_null(), !row.projected.has_value() || row.projected->requests == 0);
  EXPECT_TRUE(std::is_sorted(run["x"].begin(), run["x"].end()));
  for (const std::size_t moment : SomeMoments(run)) {
    std::int64_t allocated = 0, active = 0, reserved = 0;
    for (const auto& block : BlocksAt(run, static_cast<std::int64_t>(moment))) {
      active += std::stoll(block[1]);
      allocated += block[2] == "1" ? std::stoll(block[1]) : 0;
    }
    for (const auto& segment : SegmentsAt(run, static_cast<std::int64_t>(moment))) reserved += std::stoll(segment[1]);
    EXPECT_EQ(run["allocated"][moment], allocated);
    EXPECT_EQ(run["active"][moment], active);
    EXPECT_EQ(run["reserved"][moment], reserved);
  }
}

void ExpectWholePage(const trace::Snapshot& snapshot) {
  const answers::Explanation explanation = ExplainDrawn(snapshot);
  const PageReader page(PageOf(explanation));
  const nlohmann::json& input = page.index()["inputs"][0];
  EXPECT_EQ(input["explanation"], nlohmann::json::parse(report::ToJson({explanation})));
  ASSERT_EQ(page.index()["runs"].size(), 1 + explanation.what_ifs.rows.size());
  const RunColumns observed(page, 0);
  EXPECT_FALSE(observed.json()["is_thinned"]);
  const timeline::Timeline timeline = MustObserve(snapshot);
  EXPECT_EQ(observed.moment_count(), static_cast<std::size_t>(timeline.event_count()) + 1);
  ExpectMoments(observed, timeline, SomeMoments(observed));
  // The accounting that the explanation prints is that of the verdict's moment.
  const std::size_t verdict = observed.json()["verdict_moment"];
  EXPECT_EQ(observed["stranded"][verdict], input["explanation"]["accounting"]["stranded_bytes"]);
  EXPECT_EQ(observed["reserved"][verdict], input["explanation"]["accounting"]["reserved_bytes"]);
  for (std::size_t i = 1; i < page.index()["runs"].size(); ++i) ExpectWhatIf(RunColumns(page, i), explanation);
}

TEST(PageTest, TheExampleIsWhole) { ExpectWholePage(ExampleTraining()); }

// In parts, which run side by side: under a sanitizer all of them take minutes.
constexpr int kParts = 4;
class RecordedFilesPageTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Part, RecordedFilesPageTest, testing::Range(0, kParts));

TEST_P(RecordedFilesPageTest, EachIsWhole) {
  if (!SharedDir()) GTEST_SKIP() << kNoSharedDir;
  int number = 0;
  for (const char* folder : {"corpus", "captures"}) {
    for (const std::string& file : SnapshotFiles(folder)) {
      if (number++ % kParts != GetParam()) continue;
      SCOPED_TRACE(file);
      const absl::StatusOr<trace::Snapshot> snapshot = formats::ReadTorchSnapshot(*formats::ReadInput(file));
      ASSERT_TRUE(snapshot.ok()) << snapshot.status();
      ExpectWholePage(*snapshot);
    }
  }
}

// Growing, shrinking, joined and cut expandable segments, several pools and streams: every moment.
TEST(PageTest, EveryMomentOfARandomProgramIsTheStateThen) {
  for (const char* conf : {"", "expandable_segments:True"}) {
    SCOPED_TRACE(conf);
    Recording run(conf, 2 * kGiB);
    std::mt19937 random(7);
    std::vector<core::Block*> blocks;
    for (int i = 0; i < 1500; ++i) {
      const std::uint64_t dice = random() % 100;
      if (dice < 52 || blocks.empty()) {
        const std::uint64_t bytes = 1 + random() % (dice < 26 ? 3000 : 60'000'000);
        const PoolId pool{dice < 8 ? 1U : 0U, 0};
        if (core::Block* block = run.Allocate(bytes, Stream{dice % 3}, pool); block != nullptr) blocks.push_back(block);
      } else if (dice < 98) {
        std::swap(blocks[random() % blocks.size()], blocks.back());
        run.Free(blocks.back());
        blocks.pop_back();
      } else {
        run.allocator().EmptyCache();
      }
    }
    const trace::Snapshot snapshot = run.Finish();
    const PageReader page(PageOf(ExplainDrawn(snapshot)));
    const RunColumns observed(page, 0);
    ExpectMoments(observed, MustObserve(snapshot), AllMoments(observed));
  }
}

TEST(PageTest, AThinnedRunIsExactAtEachMomentThatItKeeps) {
  const trace::Snapshot snapshot = ExampleTraining();
  const answers::Explanation explanation = ExplainDrawn(snapshot, {.observed_moments = 300, .what_if_moments = 800});
  const PageReader page(PageOf(explanation));
  const RunColumns observed(page, 0);
  EXPECT_TRUE(observed.json()["is_thinned"]);
  const timeline::Timeline timeline = MustObserve(snapshot);
  EXPECT_LT(observed.moment_count(), 600U);
  EXPECT_LT(observed["block.size"].size(), timeline.blocks().size());
  ExpectMoments(observed, timeline, AllMoments(observed));
  for (const char* sum : {"allocated", "active", "reserved"}) {
    const nlohmann::json& peak = observed.json()["peaks"][sum];
    EXPECT_EQ(observed[sum][peak["moment"].get<std::size_t>()], peak["bytes"]);
    EXPECT_EQ(*std::max_element(observed[sum].begin(), observed[sum].end()), peak["bytes"]);
  }
  EXPECT_EQ(observed["event"][observed.json()["failures"].back().get<std::size_t>()], timeline.oom_events().back());
  for (const nlohmann::json& named : page.index()["inputs"][0]["evidence_moments"]) {
    EXPECT_EQ(observed["event"][named["moment"].get<std::size_t>()], named["event"]);
  }
  for (std::size_t i = 1; i < page.index()["runs"].size(); ++i) ExpectWhatIf(RunColumns(page, i), explanation);
}

// Bytes of the drawn blocks that are live at a moment.
std::int64_t LiveBytes(const RunColumns& run, std::int64_t moment) {
  std::int64_t out = 0;
  for (const auto& block : BlocksAt(run, moment)) out += block[2] == "1" ? std::stoll(block[1]) : 0;
  return out;
}

TEST(PageTest, OfTooManyBlocksThoseOfTheVerdictAndTheLargestAreDrawn) {
  const trace::Snapshot snapshot = ExampleTraining();
  const timeline::Timeline timeline = MustObserve(snapshot);
  const PageReader whole(PageOf(ExplainDrawn(snapshot)));
  const RunColumns all(whole, 0);
  EXPECT_EQ(all.json()["left_out"]["blocks"], 0);
  const std::size_t verdict = all.json()["verdict_moment"];
  const std::size_t most = BlocksAt(all, static_cast<std::int64_t>(verdict)).size() + 40;
  ASSERT_GT(timeline.blocks().size(), 2 * most);
  const PageReader page(PageOf(ExplainDrawn(snapshot, {.observed_blocks = most, .what_if_blocks = 800})));
  const RunColumns cut(page, 0);
  ASSERT_EQ(cut["block.size"].size(), most);
  EXPECT_EQ(cut.json()["left_out"]["blocks"], all["block.size"].size() - most);
  EXPECT_GT(cut.json()["left_out"]["share"], 0.0);
  EXPECT_LT(cut.json()["left_out"]["share"], 1.0);
  ExpectMoments(cut, timeline, {verdict});  // nothing of it is left out
  for (const std::size_t moment : SomeMoments(cut)) {
    EXPECT_EQ(cut["allocated"][moment], all["allocated"][moment]);
    EXPECT_LE(LiveBytes(cut, static_cast<std::int64_t>(moment)), all["allocated"][moment]);
  }
  for (std::size_t i = 1; i < page.index()["runs"].size(); ++i) {
    EXPECT_LE(RunColumns(page, i)["block.size"].size(), 100U);
  }
}

// More events than are all drawn, and blocks of any size at any address, which hardly compress.
TEST(PageTest, ThePageOfALongRunHasAtMost20MiB) {
  Recording run("", 8 * kGiB);
  std::mt19937 random(11);
  std::vector<core::Block*> blocks;
  for (int i = 0; i < 800'000; ++i) {
    if (random() % 2 == 0 || blocks.size() < 500) {
      if (core::Block* block = run.Allocate(1 + random() % 4'000'000); block != nullptr) blocks.push_back(block);
    } else {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      run.Free(blocks.back());
      blocks.pop_back();
    }
  }
  const answers::Explanation explanation = ExplainDrawn(run.Finish());
  EXPECT_TRUE(explanation.picture->runs.front().is_thinned);
  EXPECT_GT(explanation.picture->runs.front().left_out.blocks, 0U);
  EXPECT_LE(PageOf(explanation).size(), 20 * kMiB);
}

TEST(PageTest, ACauseNamesItsBlocksAndAMomentAtWhichTheyAreThere) {
  const answers::Explanation explanation = ExplainDrawn(ExampleTraining());
  const PageReader page(PageOf(explanation));
  const RunColumns run(page, 0);
  const nlohmann::json& input = page.index()["inputs"][0];
  std::size_t with_blocks = 0;
  std::size_t at = 0;
  for (const answers::ExplainedCause& cause : explanation.why.causes) {
    if (cause.finding.finding != analyses::Finding::kFound) continue;
    const nlohmann::json& shown = input["causes"][at++];
    EXPECT_EQ(shown["name"], std::string(analyses::CauseName(cause.finding.kind)));
    if (shown["blocks"].empty()) continue;
    ++with_blocks;
    const std::int64_t moment = shown["moment"];
    const std::size_t first = shown["blocks"][0];
    const bool is_any_there = std::any_of(shown["blocks"].begin(), shown["blocks"].end(), [&](std::size_t block) {
      return run["block.alloc"][block] <= moment && moment < run["block.done"][block];
    });
    EXPECT_TRUE(is_any_there);
    EXPECT_LT(run["block.stack"][first], static_cast<std::int64_t>(input["stacks"]["labels"].size()));
  }
  EXPECT_EQ(at, input["causes"].size());
  EXPECT_GT(with_blocks, 0U);
}

TEST(PageTest, ARequestTraceHasItsRunsOnTheAxisOfItsRequests) {
  absl::StatusOr<answers::Input> input = answers::LoadInput("a 1 3000000 0\na 2 1000 0\nf 1\na 3 2000000 0\n");
  ASSERT_TRUE(input.ok());
  const absl::StatusOr<answers::Explanation> explanation =
      answers::ExplainRequests(*input->requests(), {.picture = answers::PictureLimits{}});
  ASSERT_TRUE(explanation.ok()) << explanation.status();
  const PageReader page(PageOf(*explanation));
  for (std::size_t i = 0; i < page.index()["runs"].size(); ++i) {
    const RunColumns run(page, i);
    EXPECT_EQ(run["x"].back(), 3);
    if (i == 0) {
      EXPECT_EQ(run["allocated"].back(), 2'000'384 + 1024);
    }
  }
}

TEST(PageTest, TheSameInputGivesTheSamePage) {
  const trace::Snapshot snapshot = ExampleTraining();
  EXPECT_EQ(PageOf(ExplainDrawn(snapshot)), PageOf(ExplainDrawn(snapshot)));
}

TEST(PageTest, WhatAFileNamesIsDataAndNothingElse) {
  const std::string hostile = "</script><script>alert(1)</script><!--\"'&\x01\xff\n";
  Recording run("", kGiB);
  run.Allocate(3 * kMiB);
  trace::Snapshot snapshot = run.Finish();
  const trace::FrameId frame = snapshot.stacks.InternFrame(hostile, 7, hostile);
  for (trace::Event& event : snapshot.device_traces[0].Mutable()) event.stack = snapshot.stacks.InternStack({frame});
  const std::string html = PageOf(ExplainDrawn(snapshot), hostile);
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(html, Not(HasSubstr("\x01")));
  EXPECT_THAT(html, Not(HasSubstr("\xff")));
  EXPECT_THAT(html, HasSubstr("<title>&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;!--&quot;&#39;&amp;???"));
  const PageReader page(html);
  const nlohmann::json& frames = page.index()["inputs"][0]["stacks"]["frames"];
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_THAT(frames[0][0].get<std::string>(), HasSubstr("</script><script>alert(1)</script><!--\"'&\x01"));
}

TEST(PageTest, NamesOfHoldersAndSettingsAreThoseOfTheFileAndData) {
  const std::string hostile = "<b onclick='x'>&";
  Recording run("", kGiB);
  run.Allocate(3 * kMiB);
  run.Allocate(5 * kMiB);
  trace::Snapshot snapshot = run.Finish();
  const std::string plain = PageOf(ExplainDrawn(snapshot));
  EXPECT_TRUE(PageReader(plain).index()["inputs"][0]["holders"].empty());
  EXPECT_FALSE(PageReader(plain).index()["runs"][0]["columns"].contains("block.holder"));

  const auto of_size = [&](std::uint64_t bytes) {
    const trace::EventList& events = snapshot.device_traces[0];
    const auto found = std::find_if(events.begin(), events.end(), [bytes](const trace::Event& event) {
      return event.action == trace::Action::kAlloc && event.size_bytes == bytes;
    });
    return found->address;
  };
  trace::Holder holder;
  holder.kind = "local";
  holder.name = hostile;
  snapshot.holders.emplace().holders = {holder};
  snapshot.holders->blocks = {{of_size(5 * kMiB), 0, {}}};
  snapshot.settings.emplace().values = {{"PYTORCH_CUDA_ALLOC_CONF", hostile}};
  const std::string html = PageOf(ExplainDrawn(snapshot));
  EXPECT_THAT(html, Not(HasSubstr("<b onclick")));
  const PageReader page(html);
  const nlohmann::json& input = page.index()["inputs"][0];
  ASSERT_EQ(input["settings"].size(), 1U);
  EXPECT_EQ(input["settings"][0], nlohmann::json::array({"PYTORCH_CUDA_ALLOC_CONF", hostile}));
  const RunColumns columns(page, 0);
  for (std::size_t i = 0; i < columns["block.size"].size(); ++i) {
    const auto holder_of = static_cast<std::size_t>(columns["block.holder"][i]);
    const std::string name = holder_of < input["holders"].size() ? input["holders"][holder_of] : "";
    EXPECT_EQ(name == hostile, columns["block.size"][i] == Signed(5 * kMiB)) << i << ": " << name;
  }
}

TEST(PageTest, ATemplateWithoutItsPlacesIsRefused) {
  for (const char* text : {"", "<!--ashlar:title-->", "<!--ashlar:document-->"}) {
    EXPECT_FALSE(report::PageWriter(text).Finish({}).ok()) << text;
  }
}

}  // namespace
}  // namespace ashlar::tests
