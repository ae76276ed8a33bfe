// Detectors of the causes that lie in the program, not in the allocator. They go by the parts of the program that the
// stacks name (program_part.h), by its steps and by lifetimes; a program whose names say nothing raises no alarm.
// Private to the registry (cause_detectors.cc). Pure functions.
#ifndef ASHLAR_ANALYZER_ANALYSES_CAUSES_PROGRAM_CAUSES_H_
#define ASHLAR_ANALYZER_ANALYSES_CAUSES_PROGRAM_CAUSES_H_

#include <vector>

#include "analyzer/analyses/causes/cause.h"
#include "analyzer/analyses/steps/program_part.h"

namespace ashlar::analyses {

// --- one training step: causes_training.cc ---
CauseFinding DetectLogitsSpike(const CauseInput& input);
CauseFinding DetectOptimizerState(const CauseInput& input);
CauseFinding DetectOptimizerTemporaries(const CauseInput& input);
// --- from step to step: causes_steps.cc ---
CauseFinding DetectGraphKeptAlive(const CauseInput& input);
CauseFinding DetectGradientsKept(const CauseInput& input);
CauseFinding DetectRankImbalance(const CauseInput& input);
// --- beside the training: causes_phases.cc ---
CauseFinding DetectEvalWithoutNoGrad(const CauseInput& input);
CauseFinding DetectEvalAccumulates(const CauseInput& input);
CauseFinding DetectLoadedTwice(const CauseInput& input);
CauseFinding DetectCacheBetweenPhases(const CauseInput& input);

struct LiveBlock {
  const timeline::BlockSpan* block = nullptr;
  ProgramPart part{};
};
// Of the moment, with the part of the program that allocated them, in the timeline's order.
std::vector<LiveBlock> LiveBlocks(const CauseInput& input);

std::uint64_t BytesOf(const std::vector<LiveBlock>& blocks);
// Their stacks, most bytes first, and a sentence "3.00 GiB from train.py:58 loss" for the first of them.
std::vector<trace::StackId> StacksOf(const std::vector<LiveBlock>& blocks);
std::string MostFrom(const CauseInput& input, const std::vector<LiveBlock>& blocks);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_CAUSES_PROGRAM_CAUSES_H_
