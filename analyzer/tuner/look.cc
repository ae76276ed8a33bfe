#include "analyzer/tuner/look.h"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "allocator/policy/options.h"
#include "allocator/trace/codec.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/replay/recorded_options.h"
#include "analyzer/replay/recorded_replay.h"
#include "analyzer/replay/recorded_window.h"
#include "analyzer/timeline/observed.h"
#include "analyzer/whatif/parallel.h"
#include "analyzer/whatif/settings_space.h"
#include "analyzer/whatif/what_if_input.h"

namespace ashlar::tuner {
namespace {

using analyses::EventRange;
using whatif::SettingPoint;

constexpr std::uint64_t kNoCapacity = std::uint64_t{1} << 62;

Figures FiguresOf(const core::Stats& stats) {
  return {static_cast<std::uint64_t>(stats.reserved_bytes.all().peak), stats.num_ooms + stats.num_oom_rejections,
          stats.num_alloc_retries};
}

auto RankOf(const Tried& tried) {
  return std::tuple(tried.figures.failures, tried.figures.retries, tried.figures.peak_reserved_bytes,
                    whatif::KeyCount(tried.conf));
}

// Events since which the settings are what they are.
std::uint64_t LastChange(const trace::RecordingInfo& recording) {
  std::uint64_t last = 0;
  for (const trace::Fact& fact : recording.facts) {
    if (trace::IsAny<trace::fact::SettingsChanged>(fact.what)) last = fact.event;
  }
  return last;
}

std::vector<EventRange> StepsOf(const trace::Snapshot& snapshot, const timeline::Timeline& observed,
                                const LookOptions& options) {
  if (options.step_ends.empty()) {
    return analyses::FindSteps(observed, &snapshot.stacks, snapshot.annotations).steps;
  }
  std::vector<EventRange> out;
  const std::uint64_t before = snapshot.recording->events_before;
  const auto count = static_cast<std::uint64_t>(observed.events().size());
  std::optional<std::uint64_t> begin = before == 0 ? std::optional<std::uint64_t>(0) : std::nullopt;
  for (const std::uint64_t end : options.step_ends) {
    if (end < before || end - before > count) continue;
    if (begin.has_value() && *begin < end - before) {
      out.push_back({static_cast<timeline::EventIndex>(*begin), static_cast<timeline::EventIndex>(end - before)});
    }
    begin = end - before;
  }
  return out;
}

// The settings in force in a recording that has no change after its first event.
absl::StatusOr<policy::Options> OptionsInForce(const trace::Snapshot& snapshot, const policy::Options& head) {
  absl::StatusOr<policy::Options> out = head;
  for (const trace::Fact& fact : snapshot.recording->facts) {
    const auto* const changed = std::get_if<trace::fact::SettingsChanged>(&fact.what);
    if (changed != nullptr && out.ok()) out = policy::ChangedSettings(*out, changed->conf);
  }
  return out;
}

// What the device must have had, as far as the steps tell: less than was refused, not less than was held.
std::uint64_t CapacityOf(const trace::Snapshot& steps, const timeline::Timeline& observed) {
  const trace::RecordingInfo& recording = *steps.recording;
  std::uint64_t capacity = recording.device_total_bytes > 0 ? recording.device_total_bytes : kNoCapacity;
  for (const trace::Fact& fact : recording.facts) {
    const auto* const refused = std::get_if<trace::fact::GrowthRefused>(&fact.what);
    if (refused == nullptr || refused->bytes == 0) continue;
    const auto event = static_cast<timeline::EventIndex>(fact.event);
    const std::uint64_t reserved = event == 0 ? 0 : observed.TotalsAfter(event - 1).reserved_bytes;
    if (event > 0) capacity = std::min(capacity, reserved + refused->bytes - 1);
  }
  return std::max(capacity, observed.reserved_peak().bytes);
}

// The first event before `end` after which the least is reserved. What is reserved stays so until it is returned, so
// that a peak before it says nothing of other settings.
timeline::EventIndex LeastReserved(const timeline::Timeline& observed, timeline::EventIndex end) {
  timeline::EventIndex least = 0;
  for (timeline::EventIndex event = 1; event < end; ++event) {
    if (observed.TotalsAfter(event).reserved_bytes < observed.TotalsAfter(least).reserved_bytes) least = event;
  }
  return least;
}

class Looker {
 public:
  Looker(const timeline::DeviceTrace& steps, const replay::RecordedReplay& recorded, policy::Options in_force,
         timeline::EventIndex least, const LookOptions& options)
      : steps_(steps),
        recorded_(recorded),
        in_force_(std::move(in_force)),
        peaks_from_(least == 0 ? 0 : static_cast<std::uint64_t>(least) + 1),
        options_(options),
        capacity_(CapacityOf(*steps.snapshot, recorded.observed)),
        requests_(whatif::SharedWhatIfRequests(recorded.program, /*is_capacity_known=*/true)),
        sizes_(whatif::SizesOf(*requests_)) {
    cold_.baseline = in_force_;
    cold_.capacity_bytes = capacity_;
  }

  absl::StatusOr<Figures> AsRecorded() const {
    const absl::StatusOr<replay::WarmReplay> replay =
        replay::RunWarmReplay(steps_, recorded_.program, recorded_.options,
                              {.device_total_bytes = steps_.recording->device_total_bytes, .peaks_from = peaks_from_});
    if (!replay.ok()) return replay.status();
    return FiguresOf(replay->stats);
  }

  // From the state in which the steps began.
  absl::StatusOr<Figures> Live(const policy::Options& options) const {
    const absl::StatusOr<replay::WarmReplay> replay =
        replay::RunWarmReplay(steps_, recorded_.program, options,
                              {.device_total_bytes = steps_.recording->device_total_bytes,
                               .other_capacity_bytes = capacity_,
                               .peaks_from = peaks_from_});
    if (!replay.ok()) return replay.status();
    return FiguresOf(replay->stats);
  }

  // From an empty allocator.
  absl::StatusOr<Figures> Start(const policy::Options& options) const {
    const absl::StatusOr<whatif::WhatIfRow> row = whatif::RunWhatIf(*requests_, cold_, options);
    if (!row.ok()) return row.status();
    return Figures{row->peak_reserved_bytes, row->ooms, row->retries};
  }

  const policy::Options& in_force() const { return in_force_; }

  std::optional<Tried> BestLive() const {
    const auto live = [this](const std::string& conf) -> absl::StatusOr<Figures> {
      const absl::StatusOr<policy::Options> options = policy::ChangedSettings(in_force_, conf);
      if (!options.ok()) return options.status();
      return Live(*options);
    };
    std::vector<Tried> tried = Search(live, /*has_all=*/false);
    // Not sync_just_enough: a recording does not tell all that it decides by.
    std::vector<std::string> more = {"search_after_sync:True"};
    if (options_.may_borrow) more.emplace_back("borrow_across_streams:True");
    for (const std::string& key : more) Try({whatif::JoinConfs(in_force_.conf, key)}, live, tried);
    return BestOf(tried);
  }

  std::optional<Tried> BestStart() const {
    const auto start = [this](const std::string& conf) -> absl::StatusOr<Figures> {
      absl::StatusOr<policy::Options> options = policy::ParseConf(conf, in_force_.compat, policy::Keys::kAshlar);
      if (!options.ok()) return options.status();
      policy::KeepFreeOrder(in_force_, *options);
      return Start(*options);
    };
    std::vector<Tried> tried = Search(start, /*has_all=*/true);
    Try({whatif::JoinConfs("policy:ashlar", Carried())}, start, tried);
    return BestOf(tried);
  }

 private:
  std::string Carried() const { return whatif::CarriedConf(in_force_.conf); }

  template <typename Replay>
  void Try(const std::vector<std::string>& confs, const Replay& replay, std::vector<Tried>& out) const {
    std::vector<absl::StatusOr<Figures>> figures(confs.size(), absl::UnknownError("not replayed"));
    whatif::RunInParallel(confs.size(), whatif::ThreadCount(options_.threads),
                          [&](std::size_t i) { figures[i] = replay(confs[i]); });
    for (std::size_t i = 0; i < confs.size(); ++i) {
      if (figures[i].ok()) out.push_back({confs[i], *figures[i]});
    }
  }

  template <typename Replay>
  std::vector<Tried> Search(const Replay& replay, bool has_all) const {
    const whatif::SettingsSpace space(
        sizes_, {.compats = {in_force_.compat}, .has_memory_limit = steps_.recording->limit_bytes.has_value()});
    std::vector<Tried> out;
    std::vector<std::pair<SettingPoint, Figures>> ranked;
    for (;;) {
      std::vector<SettingPoint> best;
      for (const auto& [setting, figures] : ranked) best.push_back(setting);
      const std::vector<SettingPoint> round = whatif::NextRound(space, best, options_.most_replays);
      if (round.empty()) return out;
      std::vector<std::string> confs;
      for (const SettingPoint& setting : round) {
        confs.push_back(whatif::JoinConfs(whatif::ConfOf(setting), Carried()));
      }
      std::vector<Tried> tried;
      for (std::size_t i = 0; i < confs.size(); ++i) {
        const std::size_t before = tried.size();
        if (has_all || !round[i].expandable) Try({confs[i]}, replay, tried);
        const bool is_tried = tried.size() > before;
        ranked.emplace_back(round[i], is_tried ? tried.back().figures : Figures{kNoCapacity, kNoCapacity, 0});
      }
      out.insert(out.end(), tried.begin(), tried.end());
      std::stable_sort(ranked.begin(), ranked.end(),
                       [](const auto& a, const auto& b) { return RankOf({"", a.second}) < RankOf({"", b.second}); });
    }
  }

  std::optional<Tried> BestOf(const std::vector<Tried>& tried) const {
    std::optional<Tried> best;
    for (const Tried& one : tried) {
      const auto& passed = options_.passed_over;
      if (std::find(passed.begin(), passed.end(), one.conf) != passed.end()) continue;
      if (!best.has_value() || RankOf(one) < RankOf(*best)) best = one;
    }
    return best;
  }

  const timeline::DeviceTrace& steps_;
  const replay::RecordedReplay& recorded_;
  const policy::Options in_force_;
  const std::uint64_t peaks_from_;
  const LookOptions& options_;
  const std::uint64_t capacity_;
  const std::shared_ptr<const trace::RequestTrace> requests_;
  const std::vector<whatif::RequestSize> sizes_;
  whatif::WhatIfSettings cold_;
};

std::string Named(const std::string& conf) { return conf.empty() ? "the default settings" : conf; }

std::string BestWas(const Look& look) {
  if (!look.live.has_value()) return "nothing else was tried";
  const double gain = std::max(0.0, GainOf(look.live->figures, look.now));
  return absl::StrFormat("the best was %s by %.1f %%", Named(look.live->conf), 100 * gain);
}

Look Without(LookFinding finding, std::string reason) {
  Look out;
  out.finding = finding;
  out.reason = std::move(reason);
  return out;
}

// `last_begin`: an event; what is judged begins before it.
absl::StatusOr<Look> LookAtSteps(const trace::Snapshot& steps, std::uint64_t count, timeline::EventIndex last_begin,
                                 const LookOptions& options) {
  const timeline::DeviceTrace trace(steps, steps.recording->device);
  const absl::StatusOr<replay::RecordedReplay> recorded = replay::ReplayAsRecorded(trace);
  if (!recorded.ok()) return recorded.status();
  const replay::Fidelity& fidelity = recorded->warm.fidelity;
  if (!fidelity.IsExact()) {
    return Without(LookFinding::kNotExact,
                   absl::StrCat("nothing is tried: the last ", count, " steps do not replay as recorded (",
                                FormatCount(fidelity.matched), " of ", FormatCount(fidelity.total), " addresses)"));
  }
  absl::StatusOr<policy::Options> in_force = OptionsInForce(steps, recorded->options);
  if (!in_force.ok()) return in_force.status();
  const timeline::EventIndex least = LeastReserved(recorded->observed, last_begin);
  const Looker looker(trace, *recorded, *std::move(in_force), least, options);
  Look out;
  out.steps = count;
  out.conf = looker.in_force().conf;
  out.least_bytes = recorded->observed.TotalsAfter(least).reserved_bytes;
  const absl::StatusOr<Figures> now = looker.AsRecorded();
  if (!now.ok()) return now.status();
  out.now = *now;
  const absl::StatusOr<Figures> again = looker.Live(looker.in_force());
  if (!again.ok()) return again.status();
  if (*again != out.now) {
    return Without(LookFinding::kNotExact,
                   absl::StrCat("nothing is tried: what the device answered in the last ", count,
                                " steps does not follow from its size (", InsteadOf(*again, out.now), ")"));
  }
  if (options.compared_conf.has_value()) {
    const auto other = policy::ChangedSettings(looker.in_force(), *options.compared_conf);
    const absl::StatusOr<Figures> figures = other.ok() ? looker.Live(*other) : other.status();
    if (!figures.ok()) return figures.status();
    out.compared = *figures;
  }
  out.live = looker.BestLive();
  const absl::StatusOr<Figures> start_now = looker.Start(looker.in_force());
  if (!start_now.ok()) return start_now.status();
  out.start_now = *start_now;
  out.start = looker.BestStart();
  const bool is_start = out.start.has_value() && Gains(out.start->figures, out.start_now, options.least_gain);
  const std::string in_steps = absl::StrCat(" in ", count, " steps");
  if (out.live.has_value() && Gains(out.live->figures, out.now, options.least_gain)) {
    out.finding = LookFinding::kLive;
    out.reason = absl::StrCat(Named(out.live->conf), ": ", InsteadOf(out.live->figures, out.now), in_steps);
  } else if (is_start) {
    out.finding = LookFinding::kStart;
    out.reason = absl::StrCat("start with ", Named(out.start->conf), ": ", InsteadOf(out.start->figures, out.start_now),
                              in_steps, " from an empty allocator; of what can be switched to ", BestWas(out));
  } else {
    out.finding = LookFinding::kNothing;
    out.reason = absl::StrFormat("nothing gains %.0f %%%s: %s", 100 * options.least_gain, in_steps, BestWas(out));
  }
  return out;
}

}  // namespace

double GainOf(const Figures& by, const Figures& now) {
  if (now.peak_reserved_bytes == 0) return 0;
  return 1 - static_cast<double>(by.peak_reserved_bytes) / static_cast<double>(now.peak_reserved_bytes);
}

bool Gains(const Figures& by, const Figures& now, double least_gain) {
  if (by.failures > now.failures) return false;
  if (by.failures < now.failures) return true;
  if (by.retries > now.retries) return false;
  if (by.retries < now.retries && by.peak_reserved_bytes <= now.peak_reserved_bytes) return true;
  return GainOf(by, now) >= least_gain;
}

std::string InsteadOf(const Figures& by, const Figures& now) {
  std::string out = absl::StrFormat("%s reserved instead of %s (%+.1f %%)", FormatBytes(by.peak_reserved_bytes),
                                    FormatBytes(now.peak_reserved_bytes), -100 * GainOf(by, now));
  if (by.failures != now.failures) absl::StrAppend(&out, ", ", by.failures, " instead of ", now.failures, " failures");
  if (by.retries != now.retries) absl::StrAppend(&out, ", ", by.retries, " instead of ", now.retries, " retries");
  return out;
}

absl::StatusOr<Look> LookAt(absl::string_view recording, const LookOptions& options) {
  const absl::StatusOr<trace::Snapshot> snapshot = trace::Decode(recording);
  if (!snapshot.ok()) return snapshot.status();
  if (!snapshot->recording.has_value() || !snapshot->recording->has_calls) {
    return absl::InvalidArgumentError("only a recording that names every call can be looked at");
  }
  const timeline::DeviceTrace trace(*snapshot, snapshot->recording->device);
  const absl::StatusOr<policy::Options> head = replay::RecordedOptions(*snapshot, replay::GuessCompat(*snapshot));
  if (!head.ok()) return head.status();
  const absl::StatusOr<replay::ObservedProgram> whole = replay::ObserveProgram(trace, replay::SizeRuleOf(*head));
  if (!whole.ok()) return whole.status();
  std::vector<EventRange> steps = StepsOf(*snapshot, whole->observed, options);
  const auto changed = static_cast<timeline::EventIndex>(LastChange(*snapshot->recording));
  std::erase_if(steps, [changed](const EventRange& step) { return step.begin < changed; });
  if (steps.size() < options.least_steps) {
    return Without(LookFinding::kNoSteps, absl::StrCat("nothing is tried: ", steps.size(),
                                                       steps.size() == 1 ? " whole step is" : " whole steps are",
                                                       " seen", changed > 0 ? " since the settings changed" : ""));
  }
  const auto at = [](timeline::EventIndex event) {
    return timeline::WindowEnd{timeline::WindowEnd::Kind::kEvent, static_cast<double>(event)};
  };
  timeline::AskedWindow asked;
  if (steps.front().begin > 0) asked.from = at(steps.front().begin);
  if (steps.back().end < static_cast<timeline::EventIndex>(whole->observed.events().size())) {
    asked.to = at(steps.back().end);
  }
  const timeline::EventIndex last_begin = steps[steps.size() - options.least_steps].end;
  if (asked.IsWhole()) return LookAtSteps(*snapshot, steps.size(), last_begin, options);
  const absl::StatusOr<trace::Snapshot> cut = replay::CutTrace(trace, asked);
  if (!cut.ok()) return cut.status();
  const auto dropped =
      static_cast<timeline::EventIndex>(cut->recording->events_before - snapshot->recording->events_before);
  return LookAtSteps(*cut, steps.size(), last_begin - dropped, options);
}

}  // namespace ashlar::tuner
