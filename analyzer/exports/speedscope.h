// Bytes by stack for https://www.speedscope.app: one profile of the live bytes at the moment and one of the stranded
// bytes, for each device. The file holds JSON of speedscope's own format (its file-format-schema.json).
//
//   SpeedscopeWriter writer(out);
//   writer.Add(run);       // for each device
//   writer.Finish();
//
// Frames are kept until the end, where the file has them once for all profiles; stacks are written as they come.
#ifndef ASHLAR_ANALYZER_EXPORTS_SPEEDSCOPE_H_
#define ASHLAR_ANALYZER_EXPORTS_SPEEDSCOPE_H_

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "allocator/base/byte_sink.h"
#include "analyzer/exports/exported_run.h"
#include "analyzer/exports/stack_weights.h"

namespace ashlar::exports {

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

#endif  // ASHLAR_ANALYZER_EXPORTS_SPEEDSCOPE_H_
