// Which card is enough, from one run: its history replayed at the size of each card, or, of native programs, which have
// no allocator to replay, the peak of the device's accounting held against each.
//
//   absl::StatusOr<CardTable> table = CardsOfRun(results, run, AllCards(), machine.ran_as, progress);
//
// A row is a verdict where the card has the compute capability of the one that the run had (shared/cards.h).
#ifndef ASHLAR_LAUNCHER_CARDS_H_
#define ASHLAR_LAUNCHER_CARDS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analyzer/gpus/gpu_table.h"
#include "commands/shared/cards.h"
#include "launcher/results.h"

namespace ashlar::cli {

using answers::CardOutcome;
using answers::CardRow;
using answers::CardTable;

using Cards = std::vector<const gpus::Gpu*>;

Cards AllCards();  // least memory first

// `explained`: the process whose history is replayed. FailedPrecondition where several processes share a device, whose
// histories cannot be replayed one by one. Of native programs the device counts on which processes held most.
absl::StatusOr<CardTable> CardsOfRun(const RunResults& results, const ProcessRun& explained, const Cards& cards,
                                     const answers::RanAs& ran_as, const answers::Progress& progress);

// Whether a PyTorch was built for a card: by the kernels that are in it, as torch.cuda.get_arch_list() names them.
//
//   HasKernelsFor({"sm_75", "sm_80", "compute_90"}, {8, 6});   // true: those of 8.0 run on 8.6

// nullopt: there is no name that is known.
std::optional<bool> HasKernelsFor(const std::vector<std::string>& archs, gpus::Capability card);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_CARDS_H_
