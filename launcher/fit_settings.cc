#include "launcher/fit_settings.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace ashlar::cli {
namespace {

using answers::FitAnswer;
using answers::FitRow;
using answers::FitSetting;

constexpr std::size_t kMostRows = 2;  // beside the set, the nearest to the card's memory

std::uint64_t BytesApart(const FitRow& row, std::uint64_t total_bytes) {
  return std::max(*row.device_bytes, total_bytes) - std::min(*row.device_bytes, total_bytes);
}

bool NeedsAboutTheCard(const FitAnswer& answer, const FitRow& row) {
  const bool is_allowed = std::all_of(row.changes.begin(), row.changes.end(), [&](const std::string& name) {
    return answer.IsAllowed(answer.ChangeNamed(name));
  });
  return is_allowed && row.device_bytes.has_value() && !row.is_over_host &&
         BytesApart(row, answer.total_bytes) <= answer.total_bytes / 10;
}

std::vector<const FitRow*> RowsNearTheCard(const FitAnswer& answer) {
  std::vector<const FitRow*> out;
  if (NeedsAboutTheCard(answer, answer.base)) out.push_back(&answer.base);
  for (const std::vector<FitRow>* rows : {&answer.rows, &answer.sets}) {
    for (const FitRow& row : *rows) {
      const bool is_known =
          std::any_of(out.begin(), out.end(), [&](const FitRow* other) { return other->changes == row.changes; });
      const bool is_set = answer.set.has_value() && answer.set->changes == row.changes;
      if (!is_known && !is_set && NeedsAboutTheCard(answer, row)) out.push_back(&row);
    }
  }
  std::stable_sort(out.begin(), out.end(), [&](const FitRow* a, const FitRow* b) {
    return BytesApart(*a, answer.total_bytes) < BytesApart(*b, answer.total_bytes);
  });
  out.resize(std::min(out.size(), kMostRows));
  return out;
}

// What the replays of a run's requests say: the setting that is worth a change, else our own allocator, else its own
// setting.
void PutBest(const answers::WhatIfs& what_ifs, FitSetting& out) {
  if (what_ifs.rows.empty()) {
    out.why_not = what_ifs.advice.sentence;
    return;
  }
  const bool has_better = what_ifs.advice.paste.has_value();
  const auto& row = what_ifs.rows[has_better ? what_ifs.advice.choice.row : 0];
  const bool takes_own = !row.ServesAllRecorded() && what_ifs.own.has_value() && what_ifs.own->run.has_value();
  const auto& best = takes_own ? what_ifs.own->row : row;
  out.is_own = takes_own;
  if (has_better && !takes_own) out.conf = best.conf;
  out.fits = best.ServesAllRecorded();
  out.peak_reserved_bytes = best.peak_reserved_bytes;
}

absl::StatusOr<answers::Explanation> ExplainOnCard(const RerunEnd& end, const HollowMachine& card,
                                                   const answers::Progress& progress) {
  const ProcessRun* const run = ToExplain(end.results);
  if (run == nullptr) return absl::UnavailableError(end.why_not.empty() ? "it has no history" : end.why_not);
  return ExplainProcess(*run,
                        {.total_bytes = card.total.bytes,
                         .is_held_to_total = true,
                         .context_bytes = card.context.bytes,
                         .in_use_bytes = card.in_use.bytes,
                         .addresses = card.addresses},
                        progress);
}

FitSetting BestSettingOf(const std::vector<std::string>& changes, const RerunEnd& end, const HollowMachine& card,
                         const answers::Progress& progress) {
  FitSetting out;
  out.changes = changes;
  if (!end.why_not.empty()) {
    out.why_not = end.why_not;
    return out;
  }
  const absl::StatusOr<answers::Explanation> explanation = ExplainOnCard(end, card, progress);
  if (explanation.ok()) {
    PutBest(explanation->what_ifs, out);
  } else {
    out.why_not = std::string(explanation.status().message());
  }
  return out;
}

// What the causes of a failure ask of the program, and no row has made from outside; in their order.
std::vector<answers::FitEstimate> EstimatesOf(const FitAnswer& answer, const answers::Why& why) {
  std::vector<answers::FitEstimate> out;
  for (const auto& remedy : why.remedies) {
    const auto& names = remedy.from_outside;
    const bool is_made = std::any_of(answer.changes.begin(), answer.changes.end(), [&](const answers::FitChange& one) {
      return one.applies && std::find(names.begin(), names.end(), one.name) != names.end();
    });
    const auto cause = std::find_if(why.causes.begin(), why.causes.end(),
                                    [&](const auto& of) { return of.finding.kind == remedy.cause; });
    if (is_made || cause == why.causes.end()) continue;
    out.push_back({.change = remedy.sentence,
                   .where = cause->lines.empty() ? "" : cause->lines.front(),
                   .bytes = remedy.bytes,
                   .lines = remedy.python});
  }
  return out;
}

}  // namespace

std::vector<answers::FitEstimate> Estimates(const SettingsAsked& asked, const FitAnswer& answer,
                                            const answers::Progress& progress, FitRuns& runs) {
  if (answer.base.verdict != answers::FitVerdict::kFails || asked.seconds_left <= 0) return {};
  const RerunEnd end = runs.RunWithNames({.on_card = true, .is_whole = true}, asked.most_seconds);
  const absl::StatusOr<answers::Explanation> explanation = ExplainOnCard(end, asked.card, progress);
  return explanation.ok() ? EstimatesOf(answer, explanation->why) : std::vector<answers::FitEstimate>();
}

std::vector<FitSetting> BestSettings(const SettingsAsked& asked, const FitAnswer& answer, const RerunEnd& proof,
                                     const answers::Progress& progress, FitRuns& runs) {
  std::vector<FitSetting> out;
  if (answer.set.has_value()) out.push_back(BestSettingOf(answer.set->changes, proof, asked.card, progress));
  std::vector<FitRuns::Asked> rows;
  for (const FitRow* row : RowsNearTheCard(answer)) rows.push_back({.changes = row->changes, .is_whole = true});
  const std::vector<RerunEnd> ends =
      runs.RunWithHistories(rows, {.most_seconds = asked.most_seconds, .start_seconds = asked.seconds_left});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!ends[i].is_untried) out.push_back(BestSettingOf(rows[i].changes, ends[i], asked.card, progress));
  }
  return out;
}

}  // namespace ashlar::cli
