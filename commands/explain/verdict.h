// The verdict on a run. The failed request alone gives a first one (FirstVerdict, core::JudgeOom, or the message's).
// What the causes, the replays and the projection of the cut-off step tell may overrule it, so that verdict, causes,
// table and advice never contradict each other: the first rule of VerdictRules that holds has the last word.
//
//   const LastWord word = LastWordOn({.first = first, .accounting = accounting, .what_ifs = what_ifs});
//   word.verdict.kind, word.withheld   // kLeak, "no setting cures a leak"
//
// Whatever no setting can cure pastes none. Pure functions.
#ifndef ASHLAR_COMMANDS_EXPLAIN_VERDICT_H_
#define ASHLAR_COMMANDS_EXPLAIN_VERDICT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "analyzer/analyses/causes/cause.h"
#include "analyzer/analyses/message/oom_message_verdict.h"
#include "commands/explain/program_view.h"
#include "commands/explain/what_ifs.h"

namespace ashlar::answers {

using analyses::ByteSpan;
using analyses::OomAccounting;
using analyses::OomVerdict;

// How to learn more.
struct NextStep {
  std::string sentence = {};
  std::vector<std::string> lines = {};  // to write into the program, or
  bool is_command = false;              // for the shell
  bool is_of_names = false;             // the text says it in brief, where the names would stand

  bool operator==(const NextStep&) const = default;
};

struct Verdict {
  std::string headline = {};  // what happened
  OomVerdict kind = OomVerdict::kUnknown;
  bool is_certain = true;
  std::vector<std::string> evidence = {};  // plain sentences, the verdict's own first
  NextStep next = {};

  bool operator==(const Verdict&) const = default;
};

// Of the failed request alone; without one of the run.
Verdict FirstVerdict(const analyses::CauseHistory& history, const OomAccounting& accounting);

// What the last word goes by.
struct VerdictCase {
  const Verdict& first;
  const OomAccounting& accounting;
  std::optional<ByteSpan> headroom = {};
  std::optional<GrowingBytes> growing = {};
  const WhatIfs& what_ifs;
  std::uint64_t to_come_bytes = 0;  // of an optimizer in its first step: what the rest of the step will make
  bool is_program_first = false;    // the cause to mend first lies in the program, and in no holes
  std::optional<std::uint64_t> device_bytes = {};  // that the run could have; nullopt: as the accounting has it
};

// What a rule says.
struct Ruling {
  std::optional<OomVerdict> kind = {};       // nullopt: the first verdict stays
  std::string sentence = {};                 // of the verdict; empty where the first stays
  std::optional<std::string> withheld = {};  // why no setting is advised; nullopt: the advice stays
};

struct VerdictRule {
  absl::string_view name;
  bool (*holds)(const VerdictCase& of);
  Ruling (*says)(const VerdictCase& of);
};

// In the order in which they are asked. The last one always holds.
absl::Span<const VerdictRule> VerdictRules();

struct LastWord {
  absl::string_view rule;
  Verdict verdict;
  std::optional<std::string> withheld = {};
};
LastWord LastWordOn(const VerdictCase& of);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_EXPLAIN_VERDICT_H_
