// Finds the cards that are enough for a run. The twin replays the history of a run in ample memory at the size of every
// card of the table, under the default settings, expandable segments and the best settings a search finds.
//
//   absl::StatusOr<CardTable> table = ReplayOnCards(*LoadInput(bytes), outside_bytes, progress);
//   table->rows.front().by_default.headroom_bytes;   // nullopt: it fails there
//
// Nothing is run: the requests are those of the recorded run. Sizes are bytes.
#ifndef ASHLAR_ANALYZER_ANSWERS_CARDS_H_
#define ASHLAR_ANALYZER_ANSWERS_CARDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analyzer/answers/input.h"
#include "analyzer/answers/replay_settings.h"
#include "analyzer/gpus/gpu_table.h"

namespace ashlar::answers {

struct CardOutcome {
  std::string conf = {};                             // as for PYTORCH_CUDA_ALLOC_CONF
  std::optional<std::uint64_t> headroom_bytes = {};  // between the card and the peak; nullopt: a request failed
  std::uint64_t retries = 0;                         // the cache was given back this often
  std::string failed_at = {};                        // "step 3, backward", "request 812 of 9,670"
  std::optional<std::uint64_t> failed_step = {};     // from 1; nullopt: it did not fail, or there are no steps
};

struct CardRow {
  const gpus::Gpu* gpu = nullptr;
  std::uint64_t allocator_bytes = 0;  // the card's memory less the context and what else is outside
  CardOutcome by_default;
  std::optional<CardOutcome> expandable;  // nullopt: the release has none
  std::optional<CardOutcome> best;        // nullopt: no settings can help, as live blocks alone take more
};

struct CardTable {
  std::vector<CardRow> rows;  // least memory first
  std::uint64_t peak_allocated_bytes = 0;
  std::uint64_t outside_bytes = 0;  // of the allocator and the context
  std::uint64_t replays = 0;
  bool is_replayed = true;  // false: the peak of the books against each card, in `by_default` alone
};

// `outside_bytes`: what other libraries of the process hold. InvalidArgument where the history has nothing to replay.
absl::StatusOr<CardTable> ReplayOnCards(const Input& history, std::uint64_t outside_bytes, const Progress& progress);

}  // namespace ashlar::answers

#endif  // ASHLAR_ANALYZER_ANSWERS_CARDS_H_
