#include "launcher/fit_search.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ashlar::cli {
namespace {

using answers::FitChange;
using answers::FitRow;
using answers::FitSet;
using answers::FitVerdict;
using Asked = FitRuns::Asked;

std::vector<std::string> Less(std::vector<std::string> names, const std::string& name) {
  std::erase(names, name);
  return names;
}

// A peak that is not known comes last.
bool TakesLess(const FitRow& a, const FitRow& b) {
  return std::tuple(!a.peak_reserved_bytes.has_value(), a.peak_reserved_bytes) <
         std::tuple(!b.peak_reserved_bytes.has_value(), b.peak_reserved_bytes);
}

}  // namespace

double SetSearch::SecondsLeft() const {
  return budget_ - std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
}

double SetSearch::Most() const { return std::min(most_seconds_, std::max(SecondsLeft(), 1.0)); }

absl::Status SetSearch::RunRows() {
  std::vector<Asked> asked;
  for (const FitChange& change : answer_.changes) {
    if (change.applies) asked.push_back({{change.name}});
  }
  runs_.BeginImports(asked.size());  // beside the one run that is never forked
  const FitRow base = runs_.Run({{{}, /*on_card=*/true, /*is_whole=*/true}}, {.most_seconds = most_seconds_}).front();
  if (!base.why_not.empty()) {
    return absl::UnavailableError(absl::StrCat("the program cannot be run again beside its first run: ", base.why_not));
  }
  if (base.verdict == FitVerdict::kFits) {  // its allocator gives its cache back
    answer_.base = base;
    return absl::OkStatus();
  }
  answer_.base.verdict = base.verdict;
  answer_.base.failed_step = base.failed_step;
  answer_.base.ran_on_card = true;
  runs_.Shorten(asked.size(), most_seconds_);
  answer_.leaves_draws = runs_.leaves_draws();
  answer_.rows = runs_.Run(asked, {.most_seconds = most_seconds_, .start_seconds = SecondsLeft()});
  answer_.untried_changes = static_cast<std::uint64_t>(
      std::count_if(answer_.rows.begin(), answer_.rows.end(), [](const FitRow& row) { return row.is_untried; }));
  return absl::OkStatus();
}

void SetSearch::CountRows() {
  const double left = SecondsLeft();
  std::vector<FitRow*> counted = {&answer_.base};
  for (FitRow& row : answer_.rows) {
    if (row.verdict == FitVerdict::kFits) counted.push_back(&row);
  }
  std::vector<std::vector<std::string>> sets;
  for (const FitRow* row : counted) sets.push_back(row->changes);
  const std::vector<std::optional<answers::FitWork>> work = runs_.CountWork(sets, most_seconds_);
  for (std::size_t i = 0; i < counted.size(); ++i) counted[i]->work = work[i];
  budget_ += left - SecondsLeft();
}

void SetSearch::CountSet() {
  if (!answer_.set.has_value() || answer_.set->changes.size() < 2) return;
  answer_.set->work = runs_.CountWork({answer_.set->changes}, most_seconds_).front();
}

void SetSearch::FindSet() {
  TryFree();
  if (answer_.set.has_value()) return;
  std::vector<FitSet> waiting = SetsThatMayFit();
  std::reverse(waiting.begin(), waiting.end());  // the cheapest last
  while (!waiting.empty() && !answer_.set.has_value()) {
    std::vector<FitSet> next;
    while (!waiting.empty() && next.size() < runs_.at_once()) {
      if (!IsOver() || FitsAlone(waiting.back())) {
        next.push_back(std::move(waiting.back()));
      } else {
        ++answer_.untried;
      }
      waiting.pop_back();
    }
    TrySets(next);
  }
  if (answer_.set.has_value()) answer_.untried = 0;  // what is left is dearer
}

// Of changes that cost nothing, and are enough alone, the one that needs least.
void SetSearch::TryFree() {
  std::vector<FitRow> free;
  for (const FitRow& row : answer_.rows) {
    if (row.verdict == FitVerdict::kFits && answer_.ChangeNamed(row.changes.front()).IsFree()) free.push_back(row);
  }
  std::stable_sort(free.begin(), free.end(), TakesLess);
  for (const FitRow& row : free) {
    answer_.sets.push_back(row);
    if (Prove(row)) return;
  }
}

std::vector<FitSet> SetSearch::SetsThatMayFit() {
  std::vector<FitSet> out = answers::SetsByPrice(answer_);
  answer_.pruned =
      std::erase_if(out, [&](const FitSet& set) { return answer_.LeastBytes(set.changes) > answer_.total_bytes; });
  return out;
}

// Its changes that are not free do by themselves, as is known of a single one.
bool SetSearch::FitsAlone(const FitSet& set) const {
  const FitRow* row = KnownRow(set.priced);
  return row != nullptr && row->verdict == FitVerdict::kFits;
}

void SetSearch::TrySets(const std::vector<FitSet>& sets) {
  std::vector<std::vector<std::string>> changes;
  for (const FitSet& set : sets) changes.push_back(FitsAlone(set) ? set.priced : set.changes);
  for (const FitRow& row : RowsOf(changes)) {
    if (row.verdict != FitVerdict::kFits && row.changes.size() == 1) continue;  // it has its row
    answer_.sets.push_back(row);
    if (row.verdict == FitVerdict::kFits && Prove(WithoutUseless(row))) return;
  }
}

// A set of one change has its row already.
const FitRow* SetSearch::KnownRow(const std::vector<std::string>& changes) const {
  for (const std::vector<FitRow>* rows : {&answer_.rows, &answer_.sets}) {
    for (const FitRow& row : *rows) {
      if (row.changes == changes && row.verdict != FitVerdict::kNotKnown) return &row;
    }
  }
  return nullptr;
}

std::vector<FitRow> SetSearch::RowsOf(const std::vector<std::vector<std::string>>& sets) {
  std::vector<Asked> asked;
  for (const std::vector<std::string>& set : sets) {
    if (KnownRow(set) == nullptr) asked.push_back({set});
  }
  std::vector<FitRow> ran = asked.empty() ? std::vector<FitRow>() : runs_.Run(asked, {.most_seconds = Most()});
  std::vector<FitRow> out;
  std::size_t next = 0;
  for (const std::vector<std::string>& set : sets) {
    const FitRow* known = KnownRow(set);
    out.push_back(known != nullptr ? *known : ran[next++]);
  }
  return out;
}

// Without the changes that cost nothing and are not needed either.
FitRow SetSearch::WithoutUseless(const FitRow& row) {
  std::vector<std::vector<std::string>> fewer;
  if (IsOver()) return row;
  for (const std::string& name : row.changes) {
    if (row.changes.size() > 1 && answer_.ChangeNamed(name).IsFree()) fewer.push_back(Less(row.changes, name));
  }
  std::vector<std::string> kept = row.changes;
  std::optional<FitRow> best;
  const std::vector<FitRow> ran = RowsOf(fewer);
  for (std::size_t i = 0; i < ran.size(); ++i) {
    if (ran[i].verdict != FitVerdict::kFits) continue;
    for (const std::string& name : row.changes) {
      if (std::find(fewer[i].begin(), fewer[i].end(), name) == fewer[i].end()) kept = Less(kept, name);
    }
    if (!best.has_value() || TakesLess(ran[i], *best)) best = ran[i];
  }
  if (!best.has_value()) return row;
  if (kept.empty() || kept == best->changes) return *best;
  const FitRow least = RowsOf({kept}).front();
  return least.verdict == FitVerdict::kFits ? least : *best;
}

// On the card itself, to the program's end.
bool SetSearch::Prove(const FitRow& row) {
  auto [proof, end] = runs_.Prove(row.changes, most_seconds_);
  if (row.changes != answer_.sets.back().changes) answer_.sets.push_back(row);
  if (proof.verdict == FitVerdict::kFits) {
    answer_.set = proof;
    answer_.set->work = row.work;
    proof_ = std::move(end);
    return true;
  }
  answer_.sets.back().verdict = proof.verdict;
  answer_.sets.back().why_not = proof.why_not;
  return false;
}

}  // namespace ashlar::cli
