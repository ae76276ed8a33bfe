// The words beside an OOM message's verdict: what proves it, what "tried" means, what to do next. Private to the
// analysis of OOM messages.
#ifndef ASHLAR_ANALYZER_ANALYSES_MESSAGE_OOM_MESSAGE_EVIDENCE_H_
#define ASHLAR_ANALYZER_ANALYSES_MESSAGE_OOM_MESSAGE_EVIDENCE_H_

#include <optional>
#include <string>
#include <vector>

#include "analyzer/analyses/message/oom_message_verdict.h"

namespace ashlar::analyses::oom {

// Whether the family comes from PyTorch's caching allocator, whose "tried" is a segment and whose gap is stranded.
bool IsCachingAllocator(const formats::OomMessage& message);
// Whether reserved - allocated is memory in holes: those and CUDA.jl.
bool HoldsHoles(const formats::OomMessage& message);

// What the program can have asked, given the figure printed as tried.
std::optional<ByteSpan> RequestInterval(const formats::OomMessage& message);
std::string TriedMeaning(const formats::OomMessage& message);

// Fills evidence, next_step and next_lines from the figures and the kind already in `verdict`.
void WriteEvidence(const formats::OomMessage& message, OomMessageVerdict& verdict);

// The sentences of serving engines' checks (oom_engines.cc), and of libraries that ask the device beside PyTorch's
// allocator and the warnings of that allocator; the second says whether the message is one of those.
void WriteEngine(const formats::OomMessage& message, std::vector<std::string>& out);
bool WriteLibrary(const formats::OomMessage& message, std::vector<std::string>& out);

// What to try for a serving engine's own check, by its figures (oom_engines.cc); empty: it is no such check.
std::vector<OomTry> EngineTries(const formats::OomMessage& message);
// What to try first, where the message has figures for it (oom_first_try.cc); nullopt: it has none.
std::optional<OomTry> FirstTryOf(const formats::OomMessage& message);
// Whether a program of no library known here said it: its first try stands beside the others, and for none of them.
bool IsOfNativeProgram(const formats::OomMessage& message);

// What helps where the message was raised, and how to learn more there (oom_advice.cc): tries, levers, next_step,
// next_lines.
void WriteAdvice(const formats::OomMessage& message, OomMessageVerdict& verdict);

}  // namespace ashlar::analyses::oom

#endif  // ASHLAR_ANALYZER_ANALYSES_MESSAGE_OOM_MESSAGE_EVIDENCE_H_
