// A plan is made of one run and followed by another of the same program: other lengths, other steps, steps in another
// order, streams that come in another order or not at all. Each is served, and needs hardly more than without a plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "allocator/base/rng.h"
#include "allocator/policy/size_rule.h"
#include "analyzer/analyses/plan/make_plan.h"
#include "analyzer/replay/request_replay.h"
#include "analyzer/whatif/plan_choice.h"
#include "tests/analyzer/whatif/request_list.h"

namespace ashlar::tests {
namespace {

// What one run of the program does in its own way.
struct Way {
  std::uint64_t seed = 0;             // of the program: what it asks for, and when it frees
  std::uint64_t lengths = 0;          // seed of the steps' lengths; 0: all have the greatest
  bool is_backwards = false;          // the kinds of steps
  std::uint64_t streams[2] = {7, 8};  // of the batches, and of what is sent
  std::uint64_t lost = 0;             // every so many-th request of a step is left out; 0: none
  std::uint64_t more = 0;  // every so many-th request is followed by one that the program did not make before
};

constexpr std::uint64_t kPrograms = 8;
constexpr int kSteps = 10;
constexpr int kKinds = 2;
constexpr std::uint64_t kMostLength = 64;

// Weights for good; of each step a batch on a stream of its own, activations that go backwards, gradients that stay
// until the step ends, and something that is sent.
class Program {
 public:
  explicit Program(const Way& run) : run_(run), lengths_(run.lengths) {
    Rng rng(run.seed);
    for (int i = 0; i < 12; ++i) list.Allocate(Bytes(rng));
    for (int step = 0; step < kSteps; ++step) {
      begins.push_back(static_cast<std::int64_t>(list.trace().requests.size()));
      Step((run.is_backwards ? kSteps - 1 - step : step) % kKinds);
    }
  }

  RequestList list;
  std::vector<std::int64_t> begins;

 private:
  static std::uint64_t Bytes(Rng& rng) {
    return rng.Below(3) == 0 ? rng.Between(512, kMiB) : rng.Between(kMiB, 24 * kMiB);
  }

  void Step(int kind) {
    Rng rng(run_.seed * 10 + static_cast<std::uint64_t>(kind));
    const std::uint64_t length = run_.lengths == 0 ? kMostLength : lengths_.Between(kMostLength / 4, kMostLength);
    const std::uint32_t batch = Ask(rng.Between(kMiB, 8 * kMiB), length, run_.streams[0]);
    std::vector<std::uint32_t> activations, gradients;
    for (int layer = 0; layer < 12; ++layer) {
      const std::uint64_t kept = Bytes(rng), passing = Bytes(rng);
      if (run_.lost != 0 && ++count_ % run_.lost == 0) continue;
      activations.push_back(Ask(kept, length));
      list.Free(Ask(passing, length));
      if (run_.more != 0 && count_ % run_.more == 0) activations.push_back(Ask(passing / 3 + 512, length));
    }
    const std::uint32_t sent = Ask(rng.Between(kMiB, 16 * kMiB), length, run_.streams[1]);
    list.Free(batch);
    while (!activations.empty()) {
      gradients.push_back(list.Allocate(Bytes(rng)));
      list.Free(Ask(Bytes(rng), length));
      list.Free(activations.back());
      activations.pop_back();
    }
    for (const std::uint32_t gradient : gradients) list.Free(gradient);
    list.Free(sent);
  }

  std::uint32_t Ask(std::uint64_t most_bytes, std::uint64_t length, std::uint64_t stream = 0) {
    return list.Allocate(std::max<std::uint64_t>(most_bytes * length / kMostLength, 1), Stream{stream});
  }

  Way run_;
  Rng lengths_;
  std::uint64_t count_ = 0;
};

constexpr std::uint64_t kPage = policy::kRoundLargeBytes;

policy::Options PlanOf(const Program& program) {
  const auto lanes = *whatif::LaneRequestsOf(program.list.trace(), {});
  return whatif::Following(
      {}, analyses::MakePlan(lanes, program.begins, {.target_height = {}, .max_steps = 1'000'000}).plan);
}

// As `ashlar plan` chooses it: none where none helps.
policy::Options ChosenPlanOf(const Program& program) {
  const auto lanes = *whatif::LaneRequestsOf(program.list.trace(), {});
  return whatif::Following({},
                           whatif::ChoosePlan({program.list.trace(), {}, lanes, program.begins, 1'000'000})->made.plan);
}

std::uint64_t SegmentBytes(const policy::Options& options) {
  std::uint64_t bytes = 0;
  if (options.plan == nullptr) return 0;
  for (const policy::LanePlan& lane : options.plan->lanes) bytes += lane.segment_bytes;
  return bytes;
}

struct Addresses final : replay::OpSink {
  void SetOp(std::uint64_t) override {}
  void OnEvent(const trace::Event& event, std::uint64_t) override { all.push_back(event.address); }
  std::vector<std::uint64_t> all;
};

// The address of each event; `is_served`: all requests were.
std::vector<std::uint64_t> Replayed(const trace::RequestTrace& trace, const policy::Options& options,
                                    std::uint64_t capacity_bytes, bool& is_served) {
  replay::RequestReplay replay({options, {.capacity_bytes = capacity_bytes}, {}});
  Addresses addresses;
  EXPECT_EQ(replay.Run(trace, &addresses), absl::OkStatus());
  EXPECT_EQ(replay.allocator().Validate(), absl::OkStatus());
  is_served = replay.allocator().stats().num_ooms == 0;
  return addresses.all;
}

// Every larger device serves every request, too; in steps of a fiftieth. A device that has no room for the plan's
// segments may serve what a larger one does not, so that halving would not find it.
std::uint64_t Need(const trace::RequestTrace& trace, const policy::Options& options, std::uint64_t least_bytes,
                   std::uint64_t most_bytes) {
  const std::uint64_t step = RoundUp(least_bytes / 50, kPage);
  std::uint64_t bytes = least_bytes + (most_bytes - least_bytes) / step * step;
  bool is_served = true;
  while (is_served && bytes >= least_bytes) {
    Replayed(trace, options, bytes, is_served);
    if (is_served) bytes -= step;
  }
  return bytes + step;
}

struct Needs {
  double with = 0;  // of all programs, in devices that hold what they hold
  double without = 0;
  double worst = 0;  // against what is needed without the plan
  int planned = 0;   // programs that have a plan
};

Needs Compare(const Way& planned, const Way& other) {
  Needs out;
  for (std::uint64_t seed = 1; seed <= kPrograms; ++seed) {
    Way a = planned, b = other;
    a.seed = b.seed = seed;
    if (a.lengths != 0) a.lengths += seed * 100;
    if (b.lengths != 0) b.lengths += seed * 100;
    const policy::Options plan = ChosenPlanOf(Program(a));
    const Program program(b);
    const trace::RequestTrace& trace = program.list.trace();
    const std::uint64_t floor = analyses::PageFloor(*whatif::LaneRequestsOf(trace, {}), kPage);
    const std::uint64_t with = Need(trace, plan, floor, 2 * floor + SegmentBytes(plan));
    const std::uint64_t without = Need(trace, {}, floor, 2 * floor);
    out.with += static_cast<double>(with) / static_cast<double>(floor);
    out.without += static_cast<double>(without) / static_cast<double>(floor);
    out.worst = std::max(out.worst, static_cast<double>(with) / static_cast<double>(without));
    out.planned += plan.plan != nullptr;
  }
  return out;
}

struct OtherRun {
  const char* name;
  Way planned;
  Way other;
};

std::vector<OtherRun> OtherRuns() {
  const Way plain, lengths{.lengths = 1};
  return {{"itself", plain, plain},
          {"shorter", plain, lengths},
          {"longer", lengths, plain},
          {"other lengths", lengths, {.lengths = 2}},
          {"kinds of steps in another order", plain, {.is_backwards = true}},
          {"other handles", plain, {.streams = {9, 10}}},
          {"streams change places", plain, {.streams = {8, 7}}},
          {"fewer streams", plain, {.streams = {0, 0}}},
          {"more streams", {.streams = {0, 0}}, plain},
          {"requests left out", plain, {.lost = 7}},
          {"requests in between", plain, {.more = 5}},
          {"all of it", lengths, {.lengths = 2, .is_backwards = true, .lost = 7, .more = 5}}};
}

TEST(PlanOtherRunsTest, NeedHardlyMoreThanByDefault) {
  for (const OtherRun& of : OtherRuns()) {
    const Needs needs = Compare(of.planned, of.other);
    RecordProperty(of.name, absl::StrFormat("%.3f with, %.3f without, worst %.3f, %d planned", needs.with / kPrograms,
                                            needs.without / kPrograms, needs.worst, needs.planned));
    EXPECT_LE(needs.with, needs.without) << of.name << ": of all programs together";
    EXPECT_LE(needs.worst, 1.1) << of.name;
  }
}

// There no request knows of the plan.
TEST(PlanOtherRunsTest, ADeviceWithoutRoomForThePlansSegmentsServesAsByDefault) {
  for (const OtherRun& of : OtherRuns()) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      Way a = of.planned, b = of.other;
      a.seed = b.seed = seed;
      const policy::Options plan = PlanOf(Program(a));
      const Program program(b);
      for (const std::uint64_t missing : {kPage, SegmentBytes(plan) / 3, SegmentBytes(plan) / 2}) {
        const std::uint64_t capacity_bytes = SegmentBytes(plan) - RoundUp(missing, kPage);
        bool with = false, without = false;
        const auto addresses = Replayed(program.list.trace(), plan, capacity_bytes, with);
        EXPECT_EQ(addresses, Replayed(program.list.trace(), {}, capacity_bytes, without)) << of.name;
        EXPECT_EQ(with, without);
      }
    }
  }
}

// Streams and pools have other handles in each run, and come in another order: their first requests tell them.
TEST(PlanOtherRunsTest, StreamsAndPoolsAreToldByTheirFirstRequests) {
  const auto program = [](const std::vector<int>& order, std::uint64_t first_handle) {
    RequestList list;
    std::vector<std::uint32_t> live;
    std::vector<std::uint16_t> pools;
    for (const int of : order) pools.push_back(of < 3 ? std::uint16_t{0} : list.AddPool({first_handle, 100}));
    for (int round = 0; round < 3; ++round) {
      for (std::size_t i = 0; i < order.size(); ++i) {
        const auto size = static_cast<std::uint64_t>(order[i] + 1);
        const Stream stream{order[i] < 3 ? first_handle + i : std::uint64_t{0}};
        live.push_back(list.Allocate(size * 10 * kMiB, stream, pools[i]));
        live.push_back(list.Allocate(size * 10 * kKiB, stream, pools[i]));
      }
    }
    for (const std::uint32_t id : live) list.Free(id);
    return list.trace();
  };
  policy::Options options;
  const trace::RequestTrace planned = program({0, 1, 2, 3}, 70);
  options.plan = std::make_shared<const policy::PlacementPlan>(
      analyses::MakePlan(*whatif::LaneRequestsOf(planned, {}), {}, {}).plan);
  for (const trace::RequestTrace& trace : {planned, program({3, 2, 0, 1}, 80), program({1, 3, 2, 0}, 5)}) {
    replay::RequestReplay replay({options, {.capacity_bytes = replay::kAmpleBytes}, {}});
    ASSERT_EQ(replay.Run(trace), absl::OkStatus());
    EXPECT_EQ(static_cast<std::uint64_t>(replay.allocator().stats().reserved_bytes.all().peak), SegmentBytes(options))
        << "nothing lies beside the plan's segments";
  }
}

}  // namespace
}  // namespace ashlar::tests
