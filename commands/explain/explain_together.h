// Explains several inputs at once. A text with a message beside the snapshot of the same failure makes one answer: the
// snapshot's history, with what the message adds to it (the device's memory, what is in use by all processes, the
// limit).
//
//   std::vector<NamedInput> inputs;   // "error.log" and "snapshot.pickle", loaded
//   absl::StatusOr<std::vector<Explanation>> explanations = ExplainTogether(inputs, options);
//
// A message belongs to a snapshot where the device agrees, and the request's segment and the free memory that the
// snapshot's last failure recorded lie within what the message prints. Where none does, each is answered by itself, and
// a note says what differs. Sizes are bytes. Safe from any thread.
#ifndef ASHLAR_COMMANDS_EXPLAIN_EXPLAIN_TOGETHER_H_
#define ASHLAR_COMMANDS_EXPLAIN_EXPLAIN_TOGETHER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "commands/explain/explain.h"

namespace ashlar::answers {

struct NamedInput {
  std::string name;
  Input input;
};

// In the order of the inputs; errors name the input.
absl::StatusOr<std::vector<Explanation>> ExplainTogether(const std::vector<NamedInput>& inputs,
                                                         const ExplainSettings& options);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_EXPLAIN_EXPLAIN_TOGETHER_H_
