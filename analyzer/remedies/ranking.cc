#include "analyzer/remedies/ranking.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "absl/strings/string_view.h"

namespace ashlar::remedies {
namespace {

constexpr double kAnyShare = -1e300;  // whatever its peak

bool IsBad(const Score& score) { return score.risk == RiskLevel::kNotRecommended; }

// A note is no reason to rank lower.
int CountedAs(RiskLevel level) { return level < RiskLevel::kCaution ? 0 : static_cast<int>(level); }

auto RankKey(const Score& s) {
  return std::tuple(s.failing_traces, s.ooms, s.open_traces, IsBad(s), s.regret, s.cost_ns, s.driver_calls,
                    CountedAs(s.risk), s.keys, absl::string_view(s.conf));
}

// Between settings of about the same peak and price.
auto SimplicityKey(const Score& s) {
  return std::tuple(s.keys, s.regret, s.cost_ns, s.driver_calls, absl::string_view(s.conf));
}

bool NoWorse(const Score& a, const Score& b) {
  return std::tie(a.failing_traces, a.ooms) <= std::tie(b.failing_traces, b.ooms) && a.regret <= b.regret &&
         a.cost_ns <= b.cost_ns && CountedAs(a.risk) <= CountedAs(b.risk);
}

double SavedShare(const Score& score, const Score& baseline) { return 1 - (1 + score.regret) / (1 + baseline.regret); }

// The positions whose `value` is at most `slack` of the least.
template <typename Value, typename Slack>
std::vector<std::size_t> Lowest(const std::vector<Score>& scores, const std::vector<std::size_t>& positions,
                                Value value, Slack slack) {
  std::vector<std::size_t> out;
  if (positions.empty()) return out;
  const auto less = [&](std::size_t a, std::size_t b) { return value(scores[a]) < value(scores[b]); };
  const auto limit = slack(value(scores[*std::min_element(positions.begin(), positions.end(), less)]));
  std::copy_if(positions.begin(), positions.end(), std::back_inserter(out),
               [&](std::size_t i) { return value(scores[i]) <= limit; });
  return out;
}

// Of the settings under which all fits and that are at least `saved_share` below the baseline: the one to advise, by
// the rule in ranking.h. nullopt where there is none.
std::optional<std::size_t> Best(const std::vector<Score>& scores, std::size_t baseline, double saved_share) {
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const Score& score = scores[i];
    if (score.failing_traces > 0 || IsBad(score) || SavedShare(score, scores[baseline]) < saved_share) continue;
    left.push_back(i);
  }
  left =
      Lowest(scores, left, [](const Score& s) { return 1 + s.regret; }, [](double x) { return x * (1 + kAlikeShare); });
  left = Lowest(scores, left, [](const Score& s) { return CountedAs(s.risk); }, [](int x) { return x; });
  left = Lowest(
      scores, left, [](const Score& s) { return s.cost_ns; }, [](std::uint64_t x) { return x + kWorthwhileStallNs; });
  if (left.empty()) return std::nullopt;
  return *std::min_element(left.begin(), left.end(), [&](std::size_t a, std::size_t b) {
    return SimplicityKey(scores[a]) < SimplicityKey(scores[b]);
  });
}

// The best of those for which `is_out` is false.
template <typename IsOut>
std::optional<std::size_t> BestWithout(std::vector<Score> scores, std::size_t baseline, double saved_share,
                                       IsOut is_out) {
  for (Score& score : scores) score.failing_traces += is_out(score) ? 1 : 0;
  return Best(scores, baseline, saved_share);
}

}  // namespace

bool RanksBefore(const Score& a, const Score& b) { return RankKey(a) < RankKey(b); }

std::vector<bool> ParetoBest(const std::vector<Score>& scores) {
  std::vector<bool> out(scores.size(), true);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    for (std::size_t j = 0; j < scores.size() && out[i]; ++j) {
      if (i == j || !NoWorse(scores[j], scores[i])) continue;
      if (!NoWorse(scores[i], scores[j]) || RanksBefore(scores[j], scores[i])) out[i] = false;
    }
  }
  return out;
}

bool IsWorthAChange(ChoiceKind kind) {
  return kind == ChoiceKind::kFits || kind == ChoiceKind::kLowersPeak || kind == ChoiceKind::kCuresRetries;
}

Choice Choose(const std::vector<Score>& scores, std::size_t baseline) {
  const Score& recorded = scores[baseline];
  const auto choice = [&](ChoiceKind kind, std::size_t row) {
    return Choice{kind, row, SavedShare(scores[row], recorded)};
  };
  if (recorded.failing_traces > 0) {
    const auto is_open = [](const Score& score) { return score.open_traces > 0; };
    if (const auto best = BestWithout(scores, baseline, kAnyShare, is_open)) return choice(ChoiceKind::kFits, *best);
    if (const auto best = Best(scores, baseline, kAnyShare)) return choice(ChoiceKind::kGetsPast, *best);
    const auto closest = std::min_element(scores.begin(), scores.end(), RanksBefore);
    return choice(ChoiceKind::kNothingFits, static_cast<std::size_t>(closest - scores.begin()));
  }
  const auto other = [&](const std::optional<std::size_t>& best) { return best.has_value() && *best != baseline; };
  const auto worthwhile = Best(scores, baseline, kWorthwhileShare);
  if (other(worthwhile)) return choice(ChoiceKind::kLowersPeak, *worthwhile);
  const auto retries = [](const Score& score) { return score.retries > 0; };
  const auto calm = BestWithout(scores, baseline, -kAlikeShare, retries);
  if (recorded.retries > 0 && calm.has_value()) return choice(ChoiceKind::kCuresRetries, *calm);
  const auto named = Best(scores, baseline, kNamedShare);
  if (other(named)) return choice(ChoiceKind::kNamed, *named);
  return choice(ChoiceKind::kKeep, baseline);
}

}  // namespace ashlar::remedies
