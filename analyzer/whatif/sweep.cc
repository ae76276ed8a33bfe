#include "analyzer/whatif/sweep.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "analyzer/whatif/parallel.h"
#include "analyzer/whatif/settings_space.h"

namespace ashlar::whatif {
namespace {

std::string Tried(const SweepResult& result) {
  return absl::StrCat("the ", FormatCount(result.rows.size()), " settings tried");
}

Advice AdviseOne(const SweepResult& result) {
  std::vector<WhatIfRow> rows;
  for (const SweepRow& row : result.rows) rows.push_back(row.traces.front());
  return Advise(rows, Tried(result));
}

std::string RegretOf(const SweepRow& row) {
  if (row.score.regret < 0.0005) return "in each of them no setting tried has a lower peak";
  return absl::StrFormat("in none of them its peak is more than %.1f %% above the lowest", row.score.regret * 100);
}

std::string SentenceOfSeveral(const SweepResult& result, const SweepRow& row, const SweepRow& baseline) {
  const std::string traces = absl::StrCat("all ", row.traces.size(), " traces");
  switch (result.choice.kind) {
    case ChoiceKind::kNothingFits:
      if (row.score.failing_traces >= baseline.score.failing_traces) {
        return absl::StrCat("none of ", Tried(result), " fits in ", traces,
                            ": the program has to need less where they fail, or a larger device");
      }
      return absl::StrCat("none of ", Tried(result), " fits in ", traces, "; ", NameOf(row.conf),
                          " comes closest: with it ", row.score.failing_traces,
                          row.score.failing_traces == 1 ? " of them fails" : " of them fail", ", as recorded ",
                          baseline.score.failing_traces, "; set it, and have the program need less in what is left");
    case ChoiceKind::kKeep:
      return absl::StrCat("nothing to change: none of ", Tried(result), " serves ", traces,
                          " better by 5 % of the peak than the recorded settings");
    case ChoiceKind::kFits:
      return absl::StrCat(NameOf(row.conf), " fits in ", traces, ", the recorded settings fail in ",
                          baseline.score.failing_traces, "; ", RegretOf(row));
    case ChoiceKind::kGetsPast:
      return absl::StrCat(NameOf(row.conf), " gets past the failed requests of ", traces,
                          "; what comes next is not known in ", row.score.open_traces,
                          " of them, or leaves too little to spare, so nothing is promised");
    case ChoiceKind::kLowersPeak:
      return absl::StrFormat("%s serves %s: %s, under the recorded settings up to %.1f %%", NameOf(row.conf), traces,
                             RegretOf(row), baseline.score.regret * 100);
    case ChoiceKind::kCuresRetries:
      return absl::StrCat(NameOf(row.conf), " needs about the same memory in ", traces, " and takes the ",
                          FormatCount(baseline.retries), " retries away");
    case ChoiceKind::kNamed:
      return absl::StrFormat("nothing to change: %s serves %s best: %s, under the recorded settings up to %.1f %%",
                             NameOf(row.conf), traces, RegretOf(row), baseline.score.regret * 100);
  }
  return "";
}

Advice AdviseSeveral(const SweepResult& result) {
  const SweepRow& row = result.rows[result.choice.row];
  const SweepRow& baseline = result.rows[result.baseline];
  Advice out{.sentence = SentenceOfSeveral(result, row, baseline), .choice = result.choice};
  if (!IsWorthAChange(result.choice.kind)) return out;
  out.paste = PasteLine(row.conf);
  const std::string cautions = CautionsOf(row.risks);
  if (!cautions.empty()) absl::StrAppend(&out.sentence, "; its price: ", cautions);
  return out;
}

}  // namespace

std::vector<std::size_t> RankRows(SweepResult& result) {
  std::vector<absl::Span<const WhatIfRow>> settings;
  for (const SweepRow& row : result.rows) settings.emplace_back(row.traces);
  const std::vector<Score> scores = ScoresOf(settings);
  for (std::size_t i = 0; i < scores.size(); ++i) result.rows[i].score = scores[i];
  std::vector<std::size_t> order(result.rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&result](std::size_t a, std::size_t b) {
    return RanksBefore(result.rows[a].score, result.rows[b].score);
  });
  return order;
}

void AddTrace(WhatIfRow answer, SweepRow& row) {
  answer.conf = row.conf;
  row.retries += answer.retries;
  for (const Risk& risk : answer.risks) {
    const auto same = [&risk](const Risk& other) { return other.name == risk.name; };
    if (std::none_of(row.risks.begin(), row.risks.end(), same)) row.risks.push_back(risk);
  }
  row.traces.push_back(std::move(answer));
}

void FinishRows(const std::string& carried, SweepResult& result) {
  std::vector<SweepRow> sorted;
  for (const std::size_t i : RankRows(result)) sorted.push_back(std::move(result.rows[i]));
  result.rows = std::move(sorted);
  std::vector<Score> scores;
  for (std::size_t i = 0; i < result.rows.size(); ++i) {
    SweepRow& row = result.rows[i];
    row.is_default = row.conf == carried && !(row.is_baseline && result.recorded_confs_differ);
    if (row.is_baseline) result.baseline = i;
    scores.push_back(row.score);
  }
  const std::vector<bool> pareto = ParetoBest(scores);
  for (std::size_t i = 0; i < pareto.size(); ++i) result.rows[i].is_pareto_best = pareto[i];
  result.choice = Choose(scores, result.baseline);
  result.rows[result.choice.row].is_recommended =
      IsWorthAChange(result.choice.kind) || result.choice.kind == ChoiceKind::kKeep;
  result.advice = result.rows.front().traces.size() == 1 ? AdviseOne(result) : AdviseSeveral(result);
}

namespace {

constexpr std::uint64_t kBudgetRequests = 20'000'000;
constexpr std::uint64_t kLeastSettings = 60;
constexpr std::uint64_t kMostSettings = 2000;
constexpr std::size_t kBatch = 32;  // settings between two questions whether to stop

// A setting to replay: its name, and what it is under each trace's version.
struct Candidate {
  std::string conf;
  std::vector<policy::Options> options;
};

class Sweep {
 public:
  Sweep(absl::Span<const WhatIfInput> inputs, const SweepOptions& options) : inputs_(inputs), options_(options) {
    for (const WhatIfInput& input : inputs) {
      sizes_.push_back(SizesOf(input.requests));
      const std::string carried = CarriedConf(input.settings.baseline.conf);
      if (sizes_.size() == 1) carried_ = carried;
      if (carried != carried_) carried_ = "";
    }
    result_.budget_replays = options.budget_replays > 0 ? options.budget_replays : DefaultBudget(inputs);
    result_.is_search = options.confs.empty();
  }

  absl::StatusOr<SweepResult> Run() {
    if (absl::Status status = AddBaseline(); !status.ok()) return status;
    if (absl::Status status = result_.is_search ? Search() : ReplayGiven(); !status.ok()) return status;
    FinishRows(carried_, result_);
    return std::move(result_);
  }

 private:
  absl::Status AddBaseline() {
    Candidate candidate;
    candidate.conf = BaselineConf(inputs_.front().settings.baseline);
    for (const WhatIfInput& input : inputs_) {
      candidate.options.push_back(input.settings.baseline);
      if (BaselineConf(input.settings.baseline) != candidate.conf) result_.recorded_confs_differ = true;
    }
    if (result_.recorded_confs_differ) candidate.conf = "";
    if (absl::Status status = Replay({candidate}); !status.ok()) return status;
    SweepRow& row = result_.rows.front();
    row.is_baseline = true;
    for (std::size_t trace = 0; trace < inputs_.size(); ++trace) {
      row.traces[trace].is_baseline = true;
      row.traces[trace].conf = BaselineConf(inputs_[trace].settings.baseline);
    }
    return absl::OkStatus();
  }

  // The row that already decides so in every trace, if any: the baseline's.
  bool IsBaseline(const Candidate& candidate) const {
    for (std::size_t trace = 0; trace < inputs_.size(); ++trace) {
      if (!SameDecisions(candidate.options[trace], inputs_[trace].settings.baseline)) return false;
    }
    return true;
  }

  absl::StatusOr<Candidate> Parse(const std::string& conf) const {
    Candidate out{conf, {}};
    for (const WhatIfInput& input : inputs_) {
      absl::StatusOr<policy::Options> options =
          policy::ParseConf(conf, input.settings.baseline.compat, policy::Keys::kAshlar);
      if (!options.ok()) return options.status();
      policy::KeepFreeOrder(input.settings.baseline, *options);
      out.options.push_back(*std::move(options));
    }
    return out;
  }

  absl::Status ReplayGiven() {
    std::vector<Candidate> candidates;
    std::vector<std::string> confs = options_.confs;
    confs.insert(confs.begin(), carried_);
    for (std::size_t i = 0; i < confs.size(); ++i) {
      if (std::find(confs.begin(), confs.begin() + static_cast<std::ptrdiff_t>(i), confs[i]) !=
          confs.begin() + static_cast<std::ptrdiff_t>(i)) {
        continue;
      }
      absl::StatusOr<Candidate> candidate = Parse(confs[i]);
      if (!candidate.ok()) return candidate.status();
      if (!IsBaseline(*candidate)) candidates.push_back(*std::move(candidate));
    }
    return Replay(candidates);
  }

  SettingsSpace MakeSpace() const {
    std::vector<RequestSize> sizes;
    SpaceLimits limits;
    limits.compats.clear();
    limits.has_memory_limit = true;
    for (std::size_t trace = 0; trace < inputs_.size(); ++trace) {
      sizes = MergedSizes(sizes, sizes_[trace]);
      const WhatIfSettings& settings = inputs_[trace].settings;
      limits.compats.push_back(settings.baseline.compat);
      // A fraction of memory that is not known is no limit.
      if (!settings.capacity_bytes.has_value()) limits.has_memory_limit = false;
      // Only a limit that every offered conf keeps: the caller's, or one carried over from the recorded conf.
      policy::Options probe =
          policy::ParseConf(carried_, settings.baseline.compat, policy::Keys::kAshlar).value_or(policy::Options{});
      probe.garbage_collection_threshold = 0.5;
      const std::vector<Risk> risks = RisksOf(probe, {}, settings.memory_fraction);
      for (const Risk& risk : risks) {
        if (risk.name == "threshold_without_fraction") limits.has_memory_limit = false;
      }
    }
    return SettingsSpace(sizes, limits);
  }

  absl::Status Search() {
    const SettingsSpace space = MakeSpace();
    result_.space_size = space.Size();
    const std::uint64_t budget = std::max<std::uint64_t>(result_.budget_replays / inputs_.size(), 1);
    std::vector<SettingPoint> next = NextRound(space, {}, budget);
    while (!next.empty() && !result_.is_stopped) {
      if (absl::Status status = ReplayRound(next); !status.ok()) return status;
      next = NextRound(space, Ranked(), budget);
    }
    result_.is_complete = row_of_.size() == result_.space_size;
    return absl::OkStatus();
  }

  absl::Status ReplayRound(const std::vector<SettingPoint>& settings) {
    for (std::size_t begin = 0; begin < settings.size() && !result_.is_stopped; begin += kBatch) {
      std::vector<Candidate> candidates;
      for (std::size_t i = begin; i < std::min(begin + kBatch, settings.size()); ++i) {
        absl::StatusOr<Candidate> candidate = Parse(JoinConfs(ConfOf(settings[i]), carried_));
        if (!candidate.ok()) return candidate.status();
        const bool is_baseline = IsBaseline(*candidate);
        row_of_[settings[i]] = is_baseline ? 0 : result_.rows.size() + candidates.size();
        if (!is_baseline) candidates.push_back(*std::move(candidate));
      }
      if (absl::Status status = Replay(candidates); !status.ok()) return status;
      result_.is_stopped = options_.should_stop && options_.should_stop();
    }
    return absl::OkStatus();
  }

  // Appends one row a candidate.
  absl::Status Replay(const std::vector<Candidate>& candidates) {
    const std::size_t traces = inputs_.size();
    std::vector<absl::StatusOr<WhatIfRow>> answers(candidates.size() * traces, absl::UnknownError("not replayed"));
    std::mutex mutex;
    RunInParallel(answers.size(), ThreadCount(options_.threads), [&](std::size_t i) {
      const std::size_t trace = i % traces;
      answers[i] = ReplayUnder(inputs_[trace].requests, sizes_[trace], inputs_[trace].settings,
                               candidates[i / traces].options[trace],
                               inputs_[trace].next.has_value() ? &*inputs_[trace].next : nullptr);
      const std::lock_guard lock(mutex);
      ++result_.replays;
      if (options_.progress) options_.progress(result_.replays);
    });
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      SweepRow row;
      row.conf = candidates[i].conf;
      for (std::size_t trace = 0; trace < traces; ++trace) {
        absl::StatusOr<WhatIfRow>& answer = answers[i * traces + trace];
        if (!answer.ok()) return answer.status();
        AddAnswer(*std::move(answer), trace, row);
      }
      result_.rows.push_back(std::move(row));
    }
    return absl::OkStatus();
  }

  void AddAnswer(WhatIfRow answer, std::size_t trace, SweepRow& row) const {
    if (!result_.rows.empty()) {
      const std::optional<Risk> risk = RetryRisk(answer.retries, result_.rows.front().traces[trace].retries);
      if (risk.has_value()) answer.risks.push_back(*risk);
    }
    AddTrace(std::move(answer), row);
  }

  // What was replayed of the space, best first.
  std::vector<SettingPoint> Ranked() {
    std::vector<std::size_t> rank(result_.rows.size());
    const std::vector<std::size_t> order = RankRows(result_);
    for (std::size_t i = 0; i < order.size(); ++i) rank[order[i]] = i;
    std::vector<std::pair<std::size_t, SettingPoint>> settings;
    for (const auto& [setting, row] : row_of_) settings.emplace_back(rank[row], setting);
    std::sort(settings.begin(), settings.end());
    std::vector<SettingPoint> out;
    for (const auto& [ignored, setting] : settings) out.push_back(setting);
    return out;
  }

  absl::Span<const WhatIfInput> inputs_;
  const SweepOptions& options_;
  std::vector<std::vector<RequestSize>> sizes_;  // of each trace
  std::string carried_;                          // what every offered conf keeps
  std::map<SettingPoint, std::size_t> row_of_;   // of the space, what was replayed
  SweepResult result_;
};

}  // namespace

std::uint64_t DefaultBudget(absl::Span<const WhatIfInput> inputs) {
  std::uint64_t requests = 1;
  for (const WhatIfInput& input : inputs) requests += input.requests.requests.size();
  return std::clamp(kBudgetRequests / requests, kLeastSettings, kMostSettings) * inputs.size();
}

absl::StatusOr<SweepResult> RunSweep(absl::Span<const WhatIfInput> inputs, const SweepOptions& options) {
  if (inputs.empty()) return absl::InvalidArgumentError("a sweep needs a trace");
  return Sweep(inputs, options).Run();
}

}  // namespace ashlar::whatif
