// Draws the what-ifs of an explanation while they are replayed: a run a row, its requests at the places where they
// stand in the record.
//
//   WhatIfPictures pictures(limits, origins, texts);
//   whatif::RunWhatIfs(requests, settings, progress, next, &pictures);
//   for (auto& [row, run] : pictures.runs()) ...
//
// Begin and End may be called for several rows at once.
#ifndef ASHLAR_COMMANDS_EXPLAIN_PICTURE_WHAT_IF_PICTURES_H_
#define ASHLAR_COMMANDS_EXPLAIN_PICTURE_WHAT_IF_PICTURES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "analyzer/whatif/what_if.h"
#include "commands/explain/picture/picture.h"
#include "commands/explain/picture/run_picture.h"
#include "commands/shared/request_origins.h"

namespace ashlar::answers {

class WhatIfPictures final : public whatif::WhatIfWatch {
 public:
  // All must outlive it. `events` are those of the observed run: a replay has about as many.
  WhatIfPictures(const PictureLimits& limits, const RequestOrigins& origins, const BlockTexts& texts,
                 std::size_t events)
      : limits_(limits), origins_(origins), texts_(texts), events_(events) {}

  std::size_t MostAtOnce() const override;
  replay::OpSink* Begin(std::size_t row) override;
  absl::Status End(std::size_t index, const whatif::WhatIfRow& row) override;

  // By row; valid when all have ended.
  std::map<std::size_t, RunPicture>& runs() { return runs_; }

 private:
  struct Replay {
    explicit Replay(const RequestOrigins& origins) : sink(&ops, &origins) {}

    std::vector<std::uint32_t> ops;
    PlacedSink sink;
  };

  std::unique_ptr<Replay> Take(std::size_t row);

  const PictureLimits& limits_;
  const RequestOrigins& origins_;
  const BlockTexts& texts_;
  const std::size_t events_;
  std::mutex mutex_;  // of what follows
  std::map<std::size_t, std::unique_ptr<Replay>> replays_;
  std::map<std::size_t, RunPicture> runs_;
};

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_EXPLAIN_PICTURE_WHAT_IF_PICTURES_H_
