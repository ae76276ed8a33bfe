// Finds the cards that are enough for a run. The twin replays the history of a run in ample memory at the size of each
// card, under the default settings, expandable segments and the best settings a search finds.
//
//   absl::StatusOr<CardTable> table = ReplayOnCards(*LoadInput(bytes), {.cards = cards, .ran_as = a100}, progress);
//   table->rows.front().by_default.headroom_bytes;   // nullopt: it fails there
//
// Nothing is run: the requests are those of the recorded run, and its kernels those of the card that it ran as. A card
// of another compute capability may take others, and so other memory: its row is no verdict. Sizes are bytes.
#ifndef ASHLAR_COMMANDS_SHARED_CARDS_H_
#define ASHLAR_COMMANDS_SHARED_CARDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "analyzer/gpus/gpu_table.h"
#include "commands/shared/input.h"
#include "commands/shared/replay_settings.h"

namespace ashlar::answers {

struct CardOutcome {
  std::string conf = {};                             // as for PYTORCH_CUDA_ALLOC_CONF
  std::optional<std::uint64_t> headroom_bytes = {};  // between the card and the peak; nullopt: a request failed
  std::uint64_t retries = 0;                         // the cache was given back this often
  std::string failed_at = {};                        // "step 3, backward", "request 812 of 9,670"
  std::optional<std::uint64_t> failed_step = {};     // from 1; nullopt: it did not fail, or there are no steps
};

// Whose kernels a run took.
struct RanAs {
  std::string name;  // of the table, such as "A100-80GB", or of a profile
  gpus::Capability capability;
};

struct CardRow {
  const gpus::Gpu* gpu = nullptr;
  RanAs ran_as;
  std::uint64_t allocator_bytes = 0;  // the card's memory less the context and what else is outside
  std::uint64_t peak_allocated_bytes = 0;
  std::optional<bool> has_kernels;  // whether the program's PyTorch was built for the card; nullopt: not known
  CardOutcome by_default;
  std::optional<CardOutcome> expandable;  // nullopt: the release has none, or there is no verdict
  std::optional<CardOutcome> best;  // nullopt: no settings can help, as live blocks alone take more; or no verdict

  // Else `by_default` says what the card that ran would do with as much memory.
  bool HasVerdict() const { return ran_as.capability == gpu->capability(); }
  bool MayBeEnough() const { return HasVerdict() && has_kernels.value_or(true); }
};

struct CardTable {
  std::vector<CardRow> rows;  // in the order of the cards asked for
  std::uint64_t peak_allocated_bytes = 0;
  std::uint64_t outside_bytes = 0;  // of the allocator and the context
  std::uint64_t replays = 0;
  bool is_replayed = true;  // false: the peak of the accounting against each card, in `by_default` alone
};

struct CardsAsked {
  absl::Span<const gpus::Gpu* const> cards;
  RanAs ran_as;                     // the recorded run
  std::uint64_t outside_bytes = 0;  // what other libraries of the process hold
};

// The name of a card that has the host's own memory, of such a size; empty: none.
absl::string_view UnifiedMemoryCard(std::uint64_t total_bytes);

// InvalidArgument where the history has nothing to replay.
absl::StatusOr<CardTable> ReplayOnCards(const Input& history, const CardsAsked& asked, const Progress& progress);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_SHARED_CARDS_H_
