#include "commands/shared/cards.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/replay/op_sink.h"
#include "analyzer/replay/request_replay.h"
#include "analyzer/whatif/settings_space.h"
#include "analyzer/whatif/sweep.h"
#include "commands/shared/traced_run.h"

namespace ashlar::answers {
namespace {

constexpr char kExpandable[] = "expandable_segments:True";
constexpr std::uint64_t kSearchRequests = 4'000'000;  // that a search may replay
constexpr std::uint64_t kLeastReplays = 12, kMostReplays = 120;

// A recorded run, ready to be replayed under other settings.
struct Recorded {
  whatif::WhatIfInput input;
  std::vector<timeline::EventIndex> events;  // of each request
  analyses::Steps steps;
};

absl::StatusOr<Recorded> RecordedOf(const trace::Snapshot& snapshot) {
  const absl::StatusOr<ObservedRun> run = ObserveSnapshot(snapshot, {});
  if (!run.ok()) return run.status();
  const replay::SnapshotProgram& program = run->recorded.program;
  if (program.requests.requests.empty()) return absl::InvalidArgumentError("the history has nothing to replay");
  Recorded out;
  out.input =
      whatif::InputOf(run->recorded, run->timeline,
                      {.capacity_bytes = replay::kAmpleBytes, .segment_addresses = device::AddressOrder::kDriver});
  for (const replay::RecordedAnswer& answer : program.answers) {
    // Left out of what is replayed, as WhatIfRequests does: the allocator gives back by itself.
    if (answer.release != replay::Release::kMaybeLadder) out.events.push_back(answer.event);
  }
  out.steps = analyses::FindSteps(run->timeline, &snapshot.stacks, snapshot.annotations);
  return out;
}

class CardReplays {
 public:
  CardReplays(Recorded recorded, const Progress& progress)
      : recorded_(std::move(recorded)), carried_(whatif::CarriedConf(Baseline().conf)), progress_(progress) {}

  absl::StatusOr<CardTable> Run(const CardsAsked& asked) {
    table_.outside_bytes = asked.outside_bytes;
    const absl::StatusOr<policy::Options> by_default = OptionsOf("");
    if (!by_default.ok()) return by_default.status();
    const absl::StatusOr<CardOutcome> ample = Outcome(*by_default, replay::kAmpleBytes);
    if (!ample.ok()) return ample.status();
    for (const gpus::Gpu* gpu : asked.cards) {
      const std::uint64_t taken = gpus::ContextOf(*gpu, gpus::ModuleLoading::kLazy).value + asked.outside_bytes;
      const std::uint64_t total = gpu->total_bytes.value;
      if (progress_) progress_(absl::StrCat("replaying on ", gpu->name));
      CardRow row;
      row.gpu = gpu;
      row.ran_as = asked.ran_as;
      row.allocator_bytes = total > taken ? total - taken : 0;
      if (const absl::Status status = Fill(*by_default, row); !status.ok()) return status;
      table_.rows.push_back(std::move(row));
    }
    for (CardRow& row : table_.rows) row.peak_allocated_bytes = table_.peak_allocated_bytes;
    return std::move(table_);
  }

 private:
  const policy::Options& Baseline() const { return recorded_.input.settings.baseline; }

  absl::StatusOr<policy::Options> OptionsOf(const std::string& conf) const {
    absl::StatusOr<policy::Options> out =
        policy::ParseConf(whatif::JoinConfs(conf, carried_), Baseline().compat, policy::Keys::kAshlar);
    if (out.ok()) policy::KeepFreeOrder(Baseline(), *out);
    return out;
  }

  absl::Status Fill(const policy::Options& by_default, CardRow& out) {
    const std::uint64_t capacity_bytes = out.allocator_bytes;
    absl::StatusOr<CardOutcome> outcome = Outcome(by_default, capacity_bytes);
    if (!outcome.ok()) return outcome.status();
    out.by_default = *std::move(outcome);
    if (!out.HasVerdict()) return absl::OkStatus();
    if (const absl::StatusOr<policy::Options> options = OptionsOf(kExpandable); options.ok()) {
      outcome = Outcome(*options, capacity_bytes);
      if (!outcome.ok()) return outcome.status();
      out.expandable = *std::move(outcome);
    }
    if (table_.peak_allocated_bytes > capacity_bytes) return absl::OkStatus();  // whatever the settings are
    outcome = Best(out, capacity_bytes);
    if (!outcome.ok()) return outcome.status();
    out.best = *std::move(outcome);
    return absl::OkStatus();
  }

  // Where a standard setting fits, what serves best in ample room will do; else a search in this much.
  absl::StatusOr<CardOutcome> Best(const CardRow& row, std::uint64_t capacity_bytes) {
    const bool fits =
        row.by_default.headroom_bytes.has_value() || (row.expandable && row.expandable->headroom_bytes.has_value());
    const std::uint64_t room = fits ? replay::kAmpleBytes : capacity_bytes;
    if (best_.count(room) == 0) {
      const absl::StatusOr<std::string> conf = Search(room);
      if (!conf.ok()) return conf.status();
      best_[room] = *conf;
    }
    const absl::StatusOr<policy::Options> options =
        policy::ParseConf(best_[room], Baseline().compat, policy::Keys::kAshlar);
    if (!options.ok()) return options.status();
    policy::Options ordered = *options;
    policy::KeepFreeOrder(Baseline(), ordered);
    absl::StatusOr<CardOutcome> found = Outcome(ordered, capacity_bytes);
    if (!found.ok()) return found;
    return Better(row.expandable.value_or(row.by_default), Better(row.by_default, *found));
  }

  // One that fits, then the one with more to spare; the first where they are alike.
  static CardOutcome Better(const CardOutcome& a, const CardOutcome& b) {
    if (a.headroom_bytes.has_value() != b.headroom_bytes.has_value()) return a.headroom_bytes.has_value() ? a : b;
    return b.headroom_bytes.value_or(0) > a.headroom_bytes.value_or(0) ? b : a;
  }

  // The settings that a sweep would advise: where nothing fits those that come closest.
  absl::StatusOr<std::string> Search(std::uint64_t capacity_bytes) {
    whatif::WhatIfInput input = recorded_.input;
    input.settings.capacity_bytes = capacity_bytes;
    const std::uint64_t requests = input.requests.requests.size();
    whatif::SweepOptions options;
    options.budget_replays = std::clamp(kSearchRequests / requests, kLeastReplays, kMostReplays);
    const absl::StatusOr<whatif::SweepResult> result = whatif::RunSweep({&input, 1}, options);
    if (!result.ok()) return result.status();
    table_.replays += result->replays;
    const whatif::ChoiceKind kind = result->choice.kind;
    const bool keeps = kind == whatif::ChoiceKind::kKeep || kind == whatif::ChoiceKind::kNamed;
    return result->rows[keeps ? result->baseline : result->choice.row].conf;
  }

  // What never reached the limit goes the same way with it, so that most cards take no replay of their own.
  absl::StatusOr<CardOutcome> Outcome(const policy::Options& options, std::uint64_t capacity_bytes) {
    if (const auto known = ample_.find(options.conf); known != ample_.end() && known->second <= capacity_bytes) {
      return CardOutcome{options.conf, capacity_bytes - known->second};
    }
    replay::RequestReplayOptions replay_options{options, recorded_.input.settings.device, {}};
    replay_options.device.capacity_bytes = capacity_bytes;
    replay::RequestReplay replay(std::move(replay_options));
    replay::FirstFailure failure;
    if (absl::Status status = replay.Run(recorded_.input.requests, &failure); !status.ok()) return status;
    ++table_.replays;
    const core::Stats& stats = replay.allocator().stats();
    const auto peak = static_cast<std::uint64_t>(stats.reserved_bytes.all().peak);
    CardOutcome out{options.conf};
    out.retries = stats.num_alloc_retries;
    if (failure.op().has_value()) {
      SetFailure(*failure.op(), out);
      return out;
    }
    if (out.retries == 0) ample_[options.conf] = peak;
    table_.peak_allocated_bytes =
        std::max(table_.peak_allocated_bytes, static_cast<std::uint64_t>(stats.allocated_bytes.all().peak));
    out.headroom_bytes = capacity_bytes - std::min(peak, capacity_bytes);
    return out;
  }

  void SetFailure(std::uint64_t op, CardOutcome& out) const {
    const timeline::EventIndex event = recorded_.events[op];
    out.failed_at = analyses::PhaseOf(recorded_.steps, event);
    if (out.failed_at.empty()) {
      out.failed_at =
          absl::StrCat("request ", FormatCount(op + 1), " of ", FormatCount(recorded_.input.requests.requests.size()));
    }
    const std::optional<std::size_t> step = analyses::StepAt(recorded_.steps, event);
    if (step.has_value()) out.failed_step = *step + 1;
  }

  Recorded recorded_;
  std::string carried_;
  Progress progress_;
  CardTable table_;
  std::map<std::string, std::uint64_t> ample_;  // peaks of settings that needed no retry
  std::map<std::uint64_t, std::string> best_;   // by how much memory there is
};

}  // namespace

absl::string_view UnifiedMemoryCard(std::uint64_t total_bytes) {
  const gpus::Gpu* const gpu = gpus::UnifiedMemoryGpu(total_bytes);
  return gpu == nullptr ? absl::string_view() : gpu->name;
}

absl::StatusOr<CardTable> ReplayOnCards(const Input& history, const CardsAsked& asked, const Progress& progress) {
  if (history.snapshot() == nullptr) return absl::InvalidArgumentError("this input is no snapshot");
  absl::StatusOr<Recorded> recorded = RecordedOf(*history.snapshot());
  if (!recorded.ok()) return recorded.status();
  return CardReplays(*std::move(recorded), progress).Run(asked);
}

}  // namespace ashlar::answers
