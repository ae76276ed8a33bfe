#include "analyzer/remedies/sweep_rows.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"

namespace ashlar::remedies {
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

}  // namespace ashlar::remedies
