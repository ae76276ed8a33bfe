// Bytes by call stack, as folded stacks and for speedscope.
#ifndef ASHLAR_COMMANDS_EXPORT_FLAME_GRAPHS_H_
#define ASHLAR_COMMANDS_EXPORT_FLAME_GRAPHS_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "allocator/base/byte_sink.h"
#include "allocator/trace/stack_table.h"
#include "commands/export/exported_run.h"

namespace ashlar::exports {

// Bytes by call stack at the moment of a run: what flame graphs are drawn of.
struct StackWeight {
  trace::StackId stack = trace::kNoStack;  // kNoStack: not in the trace
  std::uint64_t bytes = 0;
};

// A picture: what it shows, and its stacks, most bytes first.
struct WeightedStacks {
  std::string name;  // "device 0: live bytes at the out-of-memory error, event 6,768"
  std::vector<StackWeight> stacks;
};

// Live bytes at the moment; they add up to the allocated bytes there.
WeightedStacks LiveWeights(const ExportedRun& run);
// Free bytes that cannot be used or returned, by the stacks of the blocks that pin them (pin_blame.h); they add up to
// the stranded bytes.
WeightedStacks StrandedWeights(const ExportedRun& run);

inline constexpr char kNoStackText[] = "no stack recorded";

// Live bytes at the moment as folded stacks: a line a stack, outermost frame first, which flamegraph.pl, inferno and
// speedscope read.
//
//   main (train.py:12);forward (model.py:211) 4194304
//
// A frame's ';' becomes ':', its line breaks become blanks. With several devices the first frame is "device 0".

void WriteFolded(const ExportedRun& run, bool names_device, ByteSink& out);

// Bytes by stack for https://www.speedscope.app: one profile of the live bytes at the moment and one of the stranded
// bytes, for each device. The file holds JSON of speedscope's own format (its file-format-schema.json).
//
//   SpeedscopeWriter writer(out);
//   writer.Add(run);       // for each device
//   writer.Finish();
//
// Frames are kept until the end, where the file has them once for all profiles; stacks are written as they come.
class SpeedscopeWriter {
 public:
  explicit SpeedscopeWriter(ByteSink& out);
  void Add(const ExportedRun& run);
  void Finish();

 private:
  using FrameKey = std::tuple<std::string, std::string, std::int64_t>;  // function, file, line

  void Profile(const WeightedStacks& picture, const trace::StackTable& stacks);
  std::size_t IndexOf(const trace::Frame& frame);
  std::size_t IndexOf(FrameKey key);

  ByteSink& out_;
  bool is_first_ = true;
  std::map<FrameKey, std::size_t> indices_;
  std::vector<std::string> frames_;  // JSON of each
};

}  // namespace ashlar::exports

#endif  // ASHLAR_COMMANDS_EXPORT_FLAME_GRAPHS_H_
