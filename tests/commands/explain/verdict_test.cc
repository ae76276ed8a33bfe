// The rules of the last word on a failure: each one by itself, their order, and that no verdict stands beside a row of
// the table that says otherwise.
#include "commands/explain/verdict.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "allocator/core/oom_report.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ashlar::answers {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

whatif::WhatIfRow CutOffRow(std::uint64_t ooms) {
  whatif::WhatIfRow out;
  out.conf = "expandable_segments:True";
  out.is_cut_off = true;
  out.ooms = ooms;
  out.gets_past = ooms == 0;
  return out;
}

// A run that failed: the recorded settings' row fails too, and one other row fails as often as is said.
struct Failed {
  Verdict first;
  OomAccounting accounting = {};
  std::optional<GrowingBytes> growing = {};
  WhatIfs what_ifs = {};
  std::uint64_t to_come_bytes = 0;
  bool is_program_first = false;

  Failed(OomVerdict kind, const std::string& sentence, std::uint64_t ooms_of_row) {
    first = {.headline = "OUT OF MEMORY", .kind = kind, .evidence = {sentence}};
    whatif::WhatIfRow recorded = CutOffRow(1);
    recorded.conf = "";
    recorded.is_baseline = true;
    what_ifs.rows = {recorded, CutOffRow(ooms_of_row)};
  }

  whatif::WhatIfRow& row() { return what_ifs.rows[1]; }
  void Advise() {
    what_ifs.advice.paste = "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True";
    what_ifs.advice.choice.row = 1;
  }
  // Which lowers the peak, on a device that has room for it.
  void AdviseWithRoom(std::uint64_t total_bytes) {
    Advise();
    what_ifs.advice.choice.kind = whatif::ChoiceKind::kLowersPeak;
    what_ifs.rows[0].peak_reserved_bytes = 500;
    row().peak_reserved_bytes = 300;
    accounting.outside_bytes = 100;
    accounting.total_bytes = total_bytes;
  }
  void OfferOwn() {
    what_ifs.own.emplace().row = CutOffRow(0);
    what_ifs.own->run = "python -m ashlar_gpu.torch train.py";
  }
  void Leak() {
    accounting.live_bytes = 1000;
    growing = GrowingBytes{.bytes = 900, .bytes_per_step = 10};
  }
  void Try(bool ends) { what_ifs.run_again = SettingRun{"expandable_segments:True", ends, 90}; }
  void ShortLater() {
    whatif::ProjectedPart& next = row().projected.emplace();
    next.ooms = 1;
    next.needed_bytes = 200;
    next.available_bytes = 100;
  }

  VerdictCase of() const {
    return {.first = first,
            .accounting = accounting,
            .headroom = ByteSpan{10, 10, 10},
            .growing = growing,
            .what_ifs = what_ifs,
            .to_come_bytes = to_come_bytes,
            .is_program_first = is_program_first};
  }
  LastWord Judge() const { return LastWordOn(of()); }
};

std::string AllEvidence(const LastWord& word) {
  std::string out;
  for (const std::string& sentence : word.verdict.evidence) out += sentence + "\n";
  return out;
}

struct RuleCase {
  const char* rule;
  OomVerdict first;
  std::function<void(Failed&)> change;
  OomVerdict last;
  const char* sentence;  // what the evidence begins with
  const char* withheld;  // what the advice is replaced by; nullptr: it stays
};

// In the order of the rules: what makes each one hold.
const std::vector<RuleCase>& RuleCases() {
  static const auto* const kCases = new std::vector<RuleCase>{
      {"room_to_spare", OomVerdict::kHealthy, [](Failed& of) { of.AdviseWithRoom(1000); }, OomVerdict::kHealthy,
       "first",
       "nothing needs a change: the peak is 600 B of the 1000 B of the device; expandable_segments:True would lower "
       "the "
       "reserved peak to 300 B"},
      {"no_failure", OomVerdict::kHealthy, [](Failed& of) { of.AdviseWithRoom(999); }, OomVerdict::kHealthy, "first",
       nullptr},
      {"run_again_and_ends", OomVerdict::kCapacity, [](Failed& of) { of.Try(true); }, OomVerdict::kFragmentation,
       "fragmentation: run again under expandable_segments:True, the program ends", nullptr},
      {"leak", OomVerdict::kFragmentation, [](Failed& of) { of.Leak(); }, OomVerdict::kLeak, "leak: 900 B",
       "no setting cures a leak: expandable_segments:True gets past"},
      {"limit_to_raise", OomVerdict::kLimit, [](Failed&) {}, OomVerdict::kLimit, "first", "raise the limit"},
      {"not_of_this_allocator", OomVerdict::kOutside, [](Failed&) {}, OomVerdict::kOutside, "first", nullptr},
      {"optimizer_state_to_come", OomVerdict::kNearlyFull, [](Failed& of) { of.to_come_bytes = 11; },
       OomVerdict::kCapacity, "capacity: the optimizer's first step has 11 B",
       "no setting makes room for the optimizer's state"},
      {"short_later", OomVerdict::kFragmentation, [](Failed& of) { of.ShortLater(); }, OomVerdict::kCapacity,
       "capacity: without holes this request would fit, but not those that follow it: they need 200 B where the "
       "allocator can hold 100 B",
       nullptr},
      {"run_again_and_fails", OomVerdict::kFragmentation, [](Failed& of) { of.Try(false); }, OomVerdict::kCapacity,
       "capacity: run again under expandable_segments:True, the program runs out of memory as well",
       "run again under expandable_segments:True, the program runs"},
      {"not_reproduced", OomVerdict::kFragmentation, [](Failed& of) { of.what_ifs.rows[0].ooms = 0; },
       OomVerdict::kFragmentation, "first", "replayed from an empty allocator the recorded settings do not fail"},
      {"setting_carries_through", OomVerdict::kCapacity, [](Failed& of) { of.Advise(); }, OomVerdict::kFragmentation,
       "fragmentation: expandable_segments:True carries the run through", nullptr},
      {"own_allocator_carries_through", OomVerdict::kCapacity, [](Failed& of) { of.OfferOwn(); },
       OomVerdict::kFragmentation, "fragmentation: Ashlar's own allocator carries the run through", nullptr},
      {"just_gets_past", OomVerdict::kCapacity, [](Failed&) {}, OomVerdict::kNearlyFull,
       "nearly full: expandable_segments:True just gets past", nullptr},
      {"program_comes_first", OomVerdict::kFragmentation, [](Failed& of) { of.is_program_first = true; },
       OomVerdict::kNearlyFull, "nearly full: no setting is known to carry the run on", nullptr},
      {"first_stays", OomVerdict::kCapacity, [](Failed& of) { of.row().ooms = 1; }, OomVerdict::kCapacity, "first",
       nullptr},
  };
  return *kCases;
}

TEST(VerdictTest, EachRuleHasItsCase) {
  ASSERT_THAT(VerdictRules(), SizeIs(RuleCases().size()));
  for (std::size_t i = 0; i < RuleCases().size(); ++i) {
    const RuleCase& rule = RuleCases()[i];
    SCOPED_TRACE(rule.rule);
    EXPECT_EQ(VerdictRules()[i].name, rule.rule);
    Failed failed(rule.first, "first", 0);
    rule.change(failed);
    const LastWord word = failed.Judge();
    EXPECT_EQ(word.rule, rule.rule);
    EXPECT_EQ(word.verdict.kind, rule.last);
    EXPECT_EQ(word.verdict.headline, "OUT OF MEMORY");
    EXPECT_THAT(word.verdict.evidence.front(), testing::StartsWith(rule.sentence));
    EXPECT_EQ(word.verdict.evidence.size(), rule.first == rule.last ? 1u : 2u);  // an overruled one keeps its figures
    ASSERT_EQ(word.withheld.has_value(), rule.withheld != nullptr);
    EXPECT_THAT(word.withheld.value_or(""), testing::StartsWith(rule.withheld == nullptr ? "" : rule.withheld));
  }
}

// What comes next is judged by the row that gets furthest: one that fails sooner for its holes says nothing of it.
TEST(VerdictTest, TheRowThatGetsFurthestSaysWhatComesNext) {
  const auto judge = [](std::uint64_t needed_bytes) {
    Failed failed(OomVerdict::kFragmentation, "first", 0);
    failed.ShortLater();
    failed.row().projected->needed_bytes = needed_bytes;
    failed.row().projected->failed_after = 60;
    failed.what_ifs.rows.push_back(failed.row());
    failed.what_ifs.rows.back().projected->needed_bytes = 90;
    failed.what_ifs.rows.back().projected->failed_after = 5;
    return failed.Judge().verdict;
  };
  EXPECT_EQ(judge(101).kind, OomVerdict::kCapacity);
  EXPECT_EQ(judge(99).kind, OomVerdict::kNearlyFull);
  EXPECT_THAT(judge(99).evidence.front(), HasSubstr("they need 99 B where the allocator can hold 100 B"));
  EXPECT_EQ(judge(98).kind, OomVerdict::kFragmentation);
}

// Where several hold, the earlier one has the last word: each pair of neighbours, and all at once.
TEST(VerdictTest, AnEarlierRuleGoesFirst) {
  const auto rule_of = [](OomVerdict first, const std::vector<std::function<void(Failed&)>>& changes) {
    Failed failed(first, "first", 0);
    for (const auto& change : changes) change(failed);
    return std::string(failed.Judge().rule);
  };
  const auto leak = [](Failed& of) { of.Leak(); };
  const auto to_come = [](Failed& of) { of.to_come_bytes = 11; };
  const auto is_short = [](Failed& of) { of.ShortLater(); };
  const auto fits = [](Failed& of) {
    of.what_ifs.rows[0].ooms = 0;
    of.what_ifs.rows[0].projected = of.row().projected;
  };
  const auto advise = [](Failed& of) { of.Advise(); };
  const auto own = [](Failed& of) { of.OfferOwn(); };
  EXPECT_EQ(rule_of(OomVerdict::kUnknown, {leak, to_come, is_short, fits, advise, own}), "no_failure");
  const auto ends = [](Failed& of) { of.Try(true); };
  const auto fails = [](Failed& of) { of.Try(false); };
  EXPECT_EQ(rule_of(OomVerdict::kLimit, {ends, leak}), "run_again_and_ends");
  EXPECT_EQ(rule_of(OomVerdict::kLimit, {leak, fails}), "leak");
  EXPECT_EQ(rule_of(OomVerdict::kLimit, {to_come}), "limit_to_raise");
  EXPECT_EQ(rule_of(OomVerdict::kLimit, {to_come, advise}), "not_of_this_allocator");
  EXPECT_EQ(rule_of(OomVerdict::kLimit, {own}), "not_of_this_allocator");
  EXPECT_EQ(rule_of(OomVerdict::kOutside, {to_come, is_short, advise, own}), "not_of_this_allocator");
  EXPECT_EQ(rule_of(OomVerdict::kCapacity, {to_come, is_short, fits, advise, own}), "optimizer_state_to_come");
  EXPECT_EQ(rule_of(OomVerdict::kCapacity, {is_short, fits, advise, own}), "short_later");
  EXPECT_EQ(rule_of(OomVerdict::kCapacity, {is_short, fails, fits, advise}), "short_later");
  EXPECT_EQ(rule_of(OomVerdict::kCapacity, {fails, fits, advise}), "run_again_and_fails");
  EXPECT_EQ(rule_of(OomVerdict::kCapacity, {fails, own}), "own_allocator_carries_through");
  EXPECT_EQ(rule_of(OomVerdict::kCapacity, {fits, advise, own}), "not_reproduced");
  EXPECT_EQ(rule_of(OomVerdict::kCapacity, {advise, own}), "setting_carries_through");
  EXPECT_EQ(rule_of(OomVerdict::kCapacity, {own}), "own_allocator_carries_through");
  EXPECT_EQ(rule_of(OomVerdict::kFragmentation, {advise, own}), "first_stays");
}

TEST(VerdictTest, AClaimOfTheRequestAloneGoesWhereARowGetsPast) {
  const std::string full = std::string("nearly full: it would fit") + core::kNonePacksAsWell;
  for (const std::uint64_t ooms : {std::uint64_t{0}, std::uint64_t{1}}) {
    const LastWord word = Failed(OomVerdict::kNearlyFull, full, ooms).Judge();
    EXPECT_EQ(word.verdict.kind, OomVerdict::kNearlyFull);
    const bool is_claimed = AllEvidence(word).find("packs as well") != std::string::npos;
    EXPECT_EQ(is_claimed, ooms > 0);
    EXPECT_EQ(AllEvidence(word).find("expandable_segments:True just gets past") != std::string::npos, ooms == 0);
  }
  Failed e(OomVerdict::kCapacity, std::string("capacity: short by 1") + core::kNoSettingHelps, 1);
  e.what_ifs.own.emplace().row = CutOffRow(0);  // our own allocator's
  EXPECT_THAT(AllEvidence(e.Judge()), Not(HasSubstr("can help")));
}

TEST(VerdictTest, ALeakThatWasRunAgainSaysWhatCameOfIt) {
  Failed failed(OomVerdict::kFragmentation, "first", 0);
  failed.Leak();
  failed.Try(false);
  EXPECT_EQ(
      failed.Judge().withheld,
      "no setting cures a leak: run again under expandable_segments:True, the program runs out of memory as well");
}

TEST(VerdictTest, StepsLeftOfALeakAreThoseOfTheRow) {
  Failed e(OomVerdict::kFragmentation, "fragmentation: x", 0);
  e.Leak();
  e.what_ifs.capacity_bytes = 100000;  // room for thousands of steps of that growth
  EXPECT_EQ(e.Judge().verdict.kind, OomVerdict::kLeak);
  EXPECT_THAT(*e.Judge().withheld, HasSubstr("how long it lasts is not known"));

  e.row().projected.emplace().ooms = 1;
  e.row().projected->failed_steps_later = 3;
  EXPECT_THAT(*e.Judge().withheld, HasSubstr("fails about 3 steps later (projected)"));
  e.row().projected->failed_steps_later = 0;
  EXPECT_THAT(*e.Judge().withheld, HasSubstr("fails in the same step (projected)"));
}

TEST(VerdictTest, GrowthThatEndsIsNoLeak) {
  Failed e(OomVerdict::kFragmentation, "fragmentation: x", 0);
  e.Leak();
  e.row().projected.emplace().available_bytes = 1000;
  e.row().projected->peak_reserved_bytes = 900;
  EXPECT_EQ(e.Judge().verdict.kind, OomVerdict::kFragmentation);
  e.row().projected->growth_bytes_per_step = 10;
  EXPECT_EQ(e.Judge().verdict.kind, OomVerdict::kLeak);
}

// A tenth of what is live is a leak where it is more than the holes, and a quarter in any case.
TEST(VerdictTest, AFewLeftBytesAreALeakBesideFewHoles) {
  Failed e(OomVerdict::kFragmentation, "fragmentation: x", 0);
  e.accounting.live_bytes = 1000;
  e.accounting.allocated_bytes = 1000;
  e.accounting.reserved_bytes = 1100;
  const auto kind_with = [&e](std::uint64_t left) {
    e.growing = GrowingBytes{.bytes = left, .bytes_per_step = 10};
    return e.Judge().verdict.kind;
  };
  EXPECT_EQ(kind_with(100), OomVerdict::kFragmentation);  // as much as the holes
  EXPECT_EQ(kind_with(101), OomVerdict::kLeak);
  e.accounting.reserved_bytes = 2000;
  EXPECT_EQ(kind_with(249), OomVerdict::kFragmentation);
  EXPECT_EQ(kind_with(250), OomVerdict::kLeak);
}

TEST(VerdictTest, WhatIsWithheldPastesNothing) {
  Failed e(OomVerdict::kFragmentation, "fragmentation: x", 0);
  e.Advise();
  e.OfferOwn();
  const WhatIfs none = Withheld(e.what_ifs, "because");
  EXPECT_EQ(none.advice.paste, std::nullopt);
  EXPECT_EQ(none.advice.sentence, "because");
  EXPECT_FALSE(none.own.has_value());
  EXPECT_EQ(none.rows.size(), 2u);
}

}  // namespace
}  // namespace ashlar::answers
