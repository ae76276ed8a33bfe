// The answer of `ashlar explain` as a value: made from a snapshot, a request trace or an out-of-memory message, and
// printed as text or JSON. Each part is made by the stage in whose header it stands. What is not known is nullopt,
// never 0. All sizes are bytes.
#ifndef ASHLAR_COMMANDS_EXPLAIN_EXPLANATION_H_
#define ASHLAR_COMMANDS_EXPLAIN_EXPLANATION_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "allocator/trace/backend.h"
#include "allocator/trace/note.h"
#include "commands/explain/elsewhere.h"
#include "commands/explain/failure.h"
#include "commands/explain/memory.h"
#include "commands/explain/program_view.h"
#include "commands/explain/verdict.h"
#include "commands/explain/what_ifs.h"
#include "commands/explain/why.h"

namespace ashlar::answers {

struct Picture;  // explain/picture/picture.h

struct Explanation {
  std::string name;                                // of the input, where ExplainTogether made this; no report prints it
  std::string source;                              // what was read: "PyTorch snapshot, device 0, 9,670 events"
  trace::Backend backend = trace::Backend::kCuda;  // of the PyTorch that a snapshot is of
  Verdict verdict;
  Memory memory;
  Failure failure;
  ProgramView program;
  Why why;
  WhatIfs what_ifs;
  std::optional<Elsewhere> elsewhere;  // nullopt: no other device was asked about
  std::vector<trace::Note> notes;
  std::shared_ptr<const Picture> picture;  // where it was asked for and there are events or a state behind this
};

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_EXPLAIN_EXPLANATION_H_
