#include "commands/explain/program_view.h"

#include <algorithm>
#include <map>
#include <utility>

#include "analyzer/analyses/causes/leak_shapes.h"
#include "analyzer/analyses/state/live_stacks.h"

namespace ashlar::answers {

ProgramView ViewSteps(analyses::Steps steps, timeline::EventIndex moment, const trace::StackTable* stacks) {
  ProgramView out;
  out.moment = analyses::PhaseOf(steps, moment);
  std::map<std::string, LeakLine> lines;
  for (const analyses::Leak& leak : steps.leaks) {
    const std::string label = stacks == nullptr ? "no stack recorded" : analyses::StackLabel(*stacks, leak.stack);
    LeakLine& line = lines[label];
    line.label = label;
    line.bytes_per_step += leak.bytes_per_step;
    line.blocks += leak.blocks;
    line.bytes += leak.bytes;
  }
  for (auto& [label, line] : lines) out.leaks.push_back(std::move(line));
  std::stable_sort(out.leaks.begin(), out.leaks.end(),
                   [](const LeakLine& a, const LeakLine& b) { return a.bytes_per_step > b.bytes_per_step; });
  out.steps = std::move(steps);
  return out;
}

ProgramView ViewProgram(const analyses::CauseContext& context) {
  const analyses::CauseHistory& history = *context.history;
  ProgramView out = ViewSteps(history.steps, history.moment, history.stacks);
  if (const std::optional<analyses::LeakGrowth> leak = analyses::LeakAt(context); leak.has_value()) {
    out.growing = GrowingBytes{leak->bytes, leak->bytes_per_step};
  }
  return out;
}

}  // namespace ashlar::answers
