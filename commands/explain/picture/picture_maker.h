// Makes the picture of an explanation beside it: it watches the what-ifs, and draws the observed run when all else is
// known.
//
//   PictureMaker maker(*options.picture, timeline, &snapshot.stacks, snapshot.labels);
//   maker.SetOrigins(RequestOrigins::OfProgram(...));
//   whatif::RunWhatIfs(requests, settings, progress, next, maker.watch());
//   explanation.picture = maker.Draw(explanation);
//
// Not thread-safe, but for watch().
#ifndef ASHLAR_COMMANDS_EXPLAIN_PICTURE_PICTURE_MAKER_H_
#define ASHLAR_COMMANDS_EXPLAIN_PICTURE_PICTURE_MAKER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "allocator/trace/snapshot.h"
#include "allocator/trace/stack_table.h"
#include "analyzer/timeline/timeline.h"
#include "commands/explain/explanation.h"
#include "commands/explain/picture/picture.h"
#include "commands/explain/picture/run_picture.h"
#include "commands/explain/picture/what_if_pictures.h"
#include "commands/shared/request_origins.h"

namespace ashlar::answers {

class PictureMaker {
 public:
  // `stacks` is nullptr where the trace has none. What is given must outlive it.
  PictureMaker(const PictureLimits& limits, const timeline::Timeline& observed, const trace::StackTable* stacks,
               const trace::LabelTable& labels);

  // Of the requests of the what-ifs.
  void SetOrigins(RequestOrigins origins) { origins_ = std::move(origins); }
  // The place of each event of the observed run; without it an event stands at its own number.
  void SetPlaces(std::vector<std::int64_t> places) { places_ = std::move(places); }
  whatif::WhatIfWatch* watch() { return &what_ifs_; }
  // What a snapshot has beside the run: its settings, and pinned memory of the host, drawn as a run of its own where
  // its events and segments agree.
  void AddRecord(const trace::Snapshot& snapshot);

  // Once, when the explanation is complete but for its picture.
  std::shared_ptr<const Picture> Draw(const Explanation& explanation);

 private:
  std::vector<timeline::EventIndex> PointedAt(const Explanation& explanation) const;
  void AddObserved(const Explanation& explanation, Picture& out);
  void AddCauses(const Explanation& explanation, const std::vector<std::uint32_t>& block_sources, Picture& out);
  timeline::EventIndex EventOfCause(const analyses::CauseFinding& finding) const;
  static void AddHolders(const Explanation& explanation, const std::vector<std::uint32_t>& block_sources, Picture& out);
  void AddSteps(const Explanation& explanation, RunPicture& run) const;

  const PictureLimits limits_;
  const timeline::Timeline& observed_;
  const trace::StackTable* table_;
  const BlockTexts texts_;
  RequestOrigins origins_;
  std::vector<std::int64_t> places_;
  WhatIfPictures what_ifs_;
  std::optional<RunPicture> host_;
  std::vector<std::pair<std::string, std::string>> settings_;
};

// Numbers the stacks that a picture's blocks and segments name anew, from 0 and in the order in which they are met, and
// takes over their labels and frames.
//
//   PictureStacks stacks(&snapshot.stacks);
//   for (BlockPicture& block : run.blocks) block.stack = stacks.Number(block.stack);
//   stacks.MoveTo(picture);
//
// Not thread-safe.
class PictureStacks {
 public:
  // nullptr: the trace has none. Must outlive it.
  explicit PictureStacks(const trace::StackTable* table) : table_(table) {}

  // kNoStack stays.
  std::uint32_t Number(trace::StackId stack);
  // Of all blocks and segments of a run.
  void Renumber(RunPicture& run);
  void MoveTo(Picture& picture);

 private:
  std::uint32_t NumberOfFrame(trace::FrameId frame);

  const trace::StackTable* table_;
  absl::flat_hash_map<trace::StackId, std::uint32_t> numbers_;
  absl::flat_hash_map<trace::FrameId, std::uint32_t> frame_numbers_;
  std::vector<StackPicture> stacks_;
  std::vector<trace::Frame> frames_;
};

// The events that the sentences of an explanation name, so that a reader of a picture can go there.
//
//   NamedEvents(explanation)   {812, 6768} of "... since event 812", "the out-of-memory error, event 6,768"

// Numbers that follow "event " or "events ", digits grouped by commas or not; of "events 12 to 34" both.
void AddNamedEvents(absl::string_view sentence, std::vector<timeline::EventIndex>& out);

// Of all sentences and figures of the explanation, ascending, each once.
std::vector<timeline::EventIndex> NamedEvents(const Explanation& explanation);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_EXPLAIN_PICTURE_PICTURE_MAKER_H_
