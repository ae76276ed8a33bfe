// Which card is enough for programs that call the device themselves.
#include "analyzer/cli/launch_cards.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"

namespace ashlar::cli {
namespace {

// What processes held of one device together.
struct HeldOf {
  std::uint64_t peak_bytes = 0;     // contexts included
  std::uint64_t context_bytes = 0;  // of each
  std::uint64_t processes = 0;
};

std::map<int, HeldOf> HeldOfDevices(const RunResults& results) {
  std::map<int, HeldOf> out;
  for (const ProcessRun& run : results.runs) {
    for (const DeviceBooks& device : run.books.has_value() ? run.books->devices : run.left_held) {
      if (device.peak_bytes == 0) continue;
      HeldOf& held = out[device.ordinal];
      held.peak_bytes = std::max(held.peak_bytes, device.peak_bytes);  // each knows the peak of all
      held.context_bytes = std::max(held.context_bytes, device.context_bytes);
      ++held.processes;
    }
  }
  return out;
}

std::uint64_t Less(std::uint64_t from, std::uint64_t bytes) { return from - std::min(from, bytes); }

// With the card's contexts in place of those of the run. How many there were at the peak is not known: all of them
// where the card's are bigger, else one.
CardRow RowOfBooks(const gpus::Gpu& gpu, const HeldOf& held) {
  const std::uint64_t context = gpus::ContextOf(gpu, gpus::ModuleLoading::kLazy).value;
  const std::uint64_t more = held.processes * Less(context, held.context_bytes);
  const std::uint64_t needed = Less(held.peak_bytes + more, Less(held.context_bytes, context));
  const std::uint64_t total = gpu.total_bytes.value;
  CardRow out;
  out.gpu = &gpu;
  out.allocator_bytes = Less(total, context);
  if (needed <= total) {
    out.by_default.headroom_bytes = total - needed;
  } else {
    out.by_default.failed_at = absl::StrCat(FormatBytes(needed - total), " are missing");
  }
  return out;
}

}  // namespace

CardTable BooksOnCards(const RunResults& results) {
  HeldOf most;
  for (const auto& [ordinal, held] : HeldOfDevices(results)) {
    if (held.peak_bytes > most.peak_bytes) most = held;
  }
  CardTable out;
  out.is_replayed = false;
  out.peak_allocated_bytes = Less(most.peak_bytes, most.context_bytes);
  for (const gpus::Gpu& gpu : gpus::Gpus()) out.rows.push_back(RowOfBooks(gpu, most));
  return out;
}

}  // namespace ashlar::cli
