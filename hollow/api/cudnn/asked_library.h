// What the program's own cuDNN says of plans, by its heuristics without a device. `ashlar` asks it, in a process of its
// own, where the run has --workspaces cudnn: ASHLAR_HOLLOW_CUDNN is the path of its socket then
// (launcher/cudnn_server.h).
//
//   if (const std::vector<AskedConfig> found = AskForConfigs(question); !found.empty()) ...
//   const AskedPlan plan = AskForPlan(question, found[0].number);
//
// A question is a text of backend_text.h. Sizes are bytes. Thread rule: any thread; each question is a connection of
// its own, and a library that gave no answer to one may have one for the next.
#ifndef ASHLAR_HOLLOW_API_CUDNN_ASKED_LIBRARY_H_
#define ASHLAR_HOLLOW_API_CUDNN_ASKED_LIBRARY_H_

#include <cstdint>
#include <string>
#include <vector>

namespace ashlar::hollow {

// Whether the run has --workspaces cudnn.
bool IsCudnnAsked();

// A configuration that its heuristics found, in its order.
struct AskedConfig {
  int number = 0;
  std::int64_t engine = 0;
  std::int64_t workspace_bytes = 0;
  std::vector<std::int32_t> numerical_notes, behavior_notes;
};

// Empty: no answer, or none that becomes a plan.
std::vector<AskedConfig> AskForConfigs(const std::string& question);

struct AskedPlan {
  bool is_answered = false;
  bool is_plan = false;  // the configuration becomes one
  std::int64_t workspace_bytes = 0;
};
AskedPlan AskForPlan(const std::string& question, int number);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_CUDNN_ASKED_LIBRARY_H_
