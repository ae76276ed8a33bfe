// A remedy in the program is offered for a cause that was found and is sure, with the bytes that were proven.
#include "analyzer/whatif/program_remedies.h"

#include <string>

#include "gtest/gtest.h"

namespace ashlar::whatif {
namespace {

using analyses::CauseKind;
using analyses::Confidence;
using analyses::Finding;

TestedCause Cause(CauseKind kind, Confidence confidence, std::uint64_t bytes) {
  TestedCause out;
  out.finding.kind = kind;
  out.finding.finding = Finding::kFound;
  out.finding.confidence = confidence;
  out.finding.bytes = bytes;
  return out;
}

TEST(ProgramRemediesTest, OnlyWhatIsFoundAndSureAndTheProgramsOwn) {
  std::vector<TestedCause> causes = {
      Cause(CauseKind::kGraphKeptAlive, Confidence::kPossible, 100),
      Cause(CauseKind::kNotExpandable, Confidence::kProven, 100),  // a setting's
      Cause(CauseKind::kEvalAccumulates, Confidence::kLikely, 300),
  };
  causes.push_back(Cause(CauseKind::kLoadedTwice, Confidence::kProven, 500));
  causes.push_back(Cause(CauseKind::kLogitsSpike, Confidence::kProven, 900));
  causes.back().finding.finding = Finding::kAbsent;
  const std::vector<ProgramRemedy> remedies = ProgramRemedies(causes);
  ASSERT_EQ(remedies.size(), 2u);
  EXPECT_EQ(remedies[0].cause, CauseKind::kEvalAccumulates);  // in the order of the causes
  EXPECT_EQ(remedies[1].cause, CauseKind::kLoadedTwice);
  EXPECT_EQ(remedies[1].bytes, 500u);
  for (const ProgramRemedy& remedy : remedies) {
    EXPECT_FALSE(remedy.sentence.empty());
    EXPECT_FALSE(remedy.python.empty());
    EXPECT_FALSE(remedy.replayed_bytes.has_value());
    EXPECT_FALSE(remedy.is_proven);
  }
}

TEST(ProgramRemediesTest, AWeightIsNotTakenForData) {
  TestedCause cause = Cause(CauseKind::kLongLivedTensor, Confidence::kLikely, 100);
  EXPECT_NE(ProgramRemedies({cause})[0].python[0].find("pin_memory"), std::string::npos);
  cause.finding.is_of_weights = true;
  const std::vector<ProgramRemedy> remedies = ProgramRemedies({cause});
  for (const std::string& line : remedies[0].python) EXPECT_EQ(line.find("cpu"), std::string::npos);
}

TEST(ProgramRemediesTest, AReplayedChangeSaysWhatItTookOffThePeak) {
  TestedCause cause = Cause(CauseKind::kStreamsDoNotShare, Confidence::kProven, 100);
  cause.fix.emplace().change = "all requests on one stream";
  cause.fix->before.peak_reserved_bytes = 1000;
  cause.fix->after.peak_reserved_bytes = 700;
  cause.fix->shows_symptom = cause.fix->removes_symptom = true;
  std::vector<ProgramRemedy> remedies = ProgramRemedies({cause});
  ASSERT_EQ(remedies.size(), 1u);
  EXPECT_EQ(remedies[0].replayed_bytes, 300u);
  EXPECT_TRUE(remedies[0].is_proven);

  cause.fix->after.peak_reserved_bytes = 1100;
  cause.fix->removes_symptom = false;
  remedies = ProgramRemedies({cause});
  EXPECT_EQ(remedies[0].replayed_bytes, 0u);
  EXPECT_FALSE(remedies[0].is_proven);

  // A setting's test says nothing of a change in the program.
  cause.fix->is_setting = true;
  EXPECT_FALSE(ProgramRemedies({cause})[0].replayed_bytes.has_value());
}

TEST(ProgramRemediesTest, EveryCauseOfTheProgramHasOne) {
  for (const CauseKind kind :
       {CauseKind::kLogitsSpike, CauseKind::kOptimizerTemporaries, CauseKind::kGraphKeptAlive,
        CauseKind::kEvalWithoutNoGrad, CauseKind::kEvalAccumulates, CauseKind::kLoadedTwice, CauseKind::kRecordStream,
        CauseKind::kStreamsDoNotShare, CauseKind::kGradientsKept, CauseKind::kCacheBetweenPhases}) {
    EXPECT_EQ(ProgramRemedies({Cause(kind, Confidence::kLikely, 1)}).size(), 1u) << analyses::CauseName(kind);
  }
}

}  // namespace
}  // namespace ashlar::whatif
