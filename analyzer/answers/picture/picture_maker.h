// Makes the picture of an explanation beside it: it watches the what-ifs, and draws the observed run when all else is
// known.
//
//   PictureMaker maker(*options.picture, timeline, &snapshot.stacks, snapshot.labels);
//   maker.SetOrigins(RequestOrigins::OfProgram(...));
//   remedies::RunWhatIfs(requests, settings, progress, next, maker.watch());
//   maker.Finish(explanation);   // sets explanation.picture
//
// Not thread-safe, but for watch().
#ifndef ASHLAR_ANALYZER_ANSWERS_PICTURE_PICTURE_MAKER_H_
#define ASHLAR_ANALYZER_ANSWERS_PICTURE_PICTURE_MAKER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "allocator/trace/label_table.h"
#include "allocator/trace/snapshot.h"
#include "allocator/trace/stack_table.h"
#include "analyzer/answers/explanation.h"
#include "analyzer/answers/picture/block_texts.h"
#include "analyzer/answers/picture/picture.h"
#include "analyzer/answers/picture/picture_limits.h"
#include "analyzer/answers/picture/request_origins.h"
#include "analyzer/answers/picture/what_if_pictures.h"
#include "analyzer/timeline/timeline.h"

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
  remedies::WhatIfWatch* watch() { return &what_ifs_; }
  // Pinned memory of the host, drawn as a run of its own where its events and segments agree.
  void AddHost(const trace::Snapshot& snapshot);

  // Once, when the explanation is complete.
  void Finish(Explanation& out);

 private:
  std::vector<timeline::EventIndex> PointedAt(const Explanation& explanation) const;
  void AddObserved(const Explanation& explanation, Picture& out);
  void AddCauses(const Explanation& explanation, const std::vector<std::uint32_t>& block_sources, Picture& out);
  timeline::EventIndex EventOfCause(const analyses::CauseFinding& finding) const;
  void AddSteps(const Explanation& explanation, RunPicture& run) const;

  const PictureLimits limits_;
  const timeline::Timeline& observed_;
  const trace::StackTable* table_;
  const BlockTexts texts_;
  RequestOrigins origins_;
  std::vector<std::int64_t> places_;
  WhatIfPictures what_ifs_;
  std::optional<RunPicture> host_;
};

}  // namespace ashlar::answers

#endif  // ASHLAR_ANALYZER_ANSWERS_PICTURE_PICTURE_MAKER_H_
