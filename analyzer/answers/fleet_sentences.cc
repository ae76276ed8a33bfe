// The part of fleet.h that says the answer in plain sentences, the most pressing first.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "analyzer/answers/fleet.h"

namespace ashlar::answers {
namespace {

constexpr std::size_t kMostOutlierRanks = 3;  // in the sentences; the section has more

std::string InSeconds(std::int64_t us) { return absl::StrFormat("%.3f s", static_cast<double>(us) / 1e6); }

// The first to fail, and whom it may have taken along.
std::string FailureSentence(const FleetAnswer& answer) {
  Members read;
  for (Member member = 0; member < answer.members.size(); ++member) {
    if (answer.members[member].summary.has_value()) read.push_back(member);
  }
  if (answer.failures.empty()) return absl::StrCat("no request failed in ", CountedRanks(answer.members, read));
  Members failed;
  for (const FleetFailure& failure : answer.failures) failed.push_back(failure.member);
  const auto name = [&answer](const FleetFailure& failure) { return answer.members[failure.member].name; };
  std::string out = absl::StrCat(FormatCount(CountRanks(answer.members, failed)), " of ",
                                 CountedRanks(answer.members, read), " ran out of memory: ");
  if (answer.failures.size() == 1) return absl::StrCat(out, name(answer.failures.front()));
  if (!answer.failures_in_order) return absl::StrCat(out, RanksOf(answer.members, failed));
  absl::StrAppend(&out, name(answer.failures.front()), " first, after ", InSeconds(*answer.failures.front().after_us),
                  "; then ", name(answer.failures[1]), ", after ", InSeconds(*answer.failures[1].after_us));
  if (answer.failures.size() > 2) absl::StrAppend(&out, " and ", answer.failures.size() - 2, " more");
  return out;
}

// What the failed have in common; without a failure, what the ranks suffer from.
void AddCauseSentence(const FleetAnswer& answer, std::vector<std::string>& out) {
  std::vector<const FleetCause*> of_failed;
  std::set<Member> explained;
  for (const FleetCause& cause : answer.causes) {
    if (cause.failed.empty()) continue;
    of_failed.push_back(&cause);
    explained.insert(cause.failed.begin(), cause.failed.end());
  }
  if (answer.failures.empty() || of_failed.empty()) return;
  std::string sentence;
  Members others;
  for (const FleetFailure& failure : answer.failures) {
    if (explained.count(failure.member) == 0) others.push_back(failure.member);
  }
  if (of_failed.size() == 1 && others.empty()) {
    sentence = answer.failures.size() == 1 ? "its cause: " : "one cause in all that failed: ";
    absl::StrAppend(&sentence, of_failed.front()->sentence);
  } else {
    sentence = absl::StrCat(of_failed.size(), of_failed.size() == 1 ? " cause" : " causes", " in those that failed: ");
    for (const FleetCause* cause : of_failed) {
      absl::StrAppend(&sentence, cause == of_failed.front() ? "" : "; ", cause->sentence, " (",
                      RanksOf(answer.members, cause->failed, 3), ")");
    }
    if (!others.empty()) absl::StrAppend(&sentence, "; in ", RanksOf(answer.members, others, 3), " none was found");
  }
  out.push_back(std::move(sentence));
}

// "rank 37 holds 2.90 GiB, its stage 938 MiB": of each rank the figure that lies farthest off.
void AddOutlierSentences(const FleetAnswer& answer, std::vector<std::string>& out) {
  std::set<Member> named;
  for (const FleetOutlier& outlier : answer.outliers) named.insert(outlier.member);
  const Members all(named.begin(), named.end());
  if (named.empty()) return;
  std::set<Member> told;
  std::string sentence =
      absl::StrCat(CountedRanks(answer.members, all), CountRanks(answer.members, all) == 1 ? " differs" : " differ",
                   " from the others", answer.stages.empty() ? "" : " of the same stage", ": ");
  for (const FleetOutlier& outlier : answer.outliers) {
    if (told.size() == kMostOutlierRanks) break;
    if (!told.insert(outlier.member).second) continue;
    std::string figure = outlier.figure;
    std::replace(figure.begin(), figure.end(), '_', ' ');
    absl::StrAppend(&sentence, told.size() == 1 ? "" : "; ", answer.members[outlier.member].name, " ", figure, " ",
                    FormatBytes(outlier.bytes), ", the others ", FormatBytes(outlier.median_bytes));
  }
  if (named.size() > told.size()) absl::StrAppend(&sentence, "; and ", named.size() - told.size(), " more");
  out.push_back(std::move(sentence));
}

std::string GrowthPerStep(const FleetGrowth& growth) {
  if (growth.least_bytes_per_step == growth.most_bytes_per_step) return FormatBytes(growth.most_bytes_per_step);
  return absl::StrCat(FormatBytes(growth.least_bytes_per_step), " to ", FormatBytes(growth.most_bytes_per_step));
}

void AddGrowthSentence(const FleetAnswer& answer, std::vector<std::string>& out) {
  if (answer.growths.empty()) return;
  const FleetGrowth& growth = answer.growths.front();
  std::string sentence =
      absl::StrCat(RanksOf(answer.members, growth.members), growth.members.size() == 1 ? " grows" : " grow", " by ",
                   GrowthPerStep(growth), " each step");
  if (!growth.line.empty()) absl::StrAppend(&sentence, ", from ", growth.line);
  if (answer.growths.size() > 1) {
    Members others;
    for (auto other = answer.growths.begin() + 1; other != answer.growths.end(); ++other) {
      others.insert(others.end(), other->members.begin(), other->members.end());
    }
    absl::StrAppend(&sentence, "; ", CountedRanks(answer.members, others), " more by other lines");
  }
  out.push_back(std::move(sentence));
}

void AddSettingsSentence(const FleetAnswer& answer, std::vector<std::string>& out) {
  if (answer.settings.size() < 2) return;
  const FleetSettings& usual = answer.settings.front();
  std::string sentence;
  for (std::size_t i = 1; i < answer.settings.size() && i < 4; ++i) {
    const FleetSettings& other = answer.settings[i];
    std::string what;
    const auto add = [&what](const std::string& text) { absl::StrAppend(&what, what.empty() ? "" : ", ", text); };
    if (other.conf != usual.conf) add(other.conf.empty() ? "the default settings" : other.conf);
    if (other.compat != usual.compat) add(absl::StrCat("the rules of ", other.compat));
    if (other.total_bytes != usual.total_bytes) {
      add(other.total_bytes.has_value() ? absl::StrCat("a device of ", FormatBytes(*other.total_bytes))
                                        : "a device of unknown size");
    }
    absl::StrAppend(&sentence, i == 1 ? "" : "; ", RanksOf(answer.members, other.members), " ran under ", what);
  }
  absl::StrAppend(&sentence, "; the other ", CountedRanks(answer.members, usual.members), " under ",
                  usual.conf.empty() ? "the default settings" : usual.conf);
  if (answer.settings.size() > 4) absl::StrAppend(&sentence, "; there are more, see --json");
  out.push_back(std::move(sentence));
}

void AddBrokenSentence(const FleetAnswer& answer, std::vector<std::string>& out) {
  if (answer.broken.empty()) return;
  const FleetMember& first = answer.members[answer.broken.front()];
  std::string sentence = absl::StrCat(FormatCount(answer.broken.size()), answer.broken.size() == 1 ? " file" : " files",
                                      " could not be used: ", first.path, ": ", first.error);
  if (answer.broken.size() > 1) absl::StrAppend(&sentence, "; and ", answer.broken.size() - 1, " more");
  out.push_back(std::move(sentence));
}

}  // namespace

std::vector<std::string> SentencesOf(const FleetAnswer& answer) {
  std::vector<std::string> out;
  if (answer.broken.size() < answer.members.size()) {
    out.push_back(FailureSentence(answer));
    AddCauseSentence(answer, out);
    AddOutlierSentences(answer, out);
    AddGrowthSentence(answer, out);
    AddSettingsSentence(answer, out);
  }
  AddBrokenSentence(answer, out);
  if (answer.tried.has_value()) out.push_back(answer.tried->result.advice.sentence);
  return out;
}

}  // namespace ashlar::answers
