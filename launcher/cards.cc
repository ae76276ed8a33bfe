#include "launcher/cards.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "allocator/base/units.h"
#include "console/load_trace.h"

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
    for (const AccountedDevice& device : run.books.has_value() ? run.books->devices : run.left_held) {
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
CardRow RowOfAccounting(const gpus::Gpu& gpu, const HeldOf& held) {
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

CardTable AccountingOnCards(const RunResults& results, const Cards& cards, const answers::RanAs& ran_as) {
  HeldOf most;
  for (const auto& [ordinal, held] : HeldOfDevices(results)) {
    if (held.peak_bytes > most.peak_bytes) most = held;
  }
  CardTable out;
  out.is_replayed = false;
  out.peak_allocated_bytes = Less(most.peak_bytes, most.context_bytes);
  for (const gpus::Gpu* gpu : cards) {
    out.rows.push_back(RowOfAccounting(*gpu, most));
    out.rows.back().ran_as = ran_as;
    out.rows.back().peak_allocated_bytes = out.peak_allocated_bytes;
  }
  return out;
}

// Whether a process had the device to itself until it ended, as one that only looks what there is: its accounting
// closes with the peak of all until then, and two contexts are more.
bool WasAlone(const AccountedDevice& device) { return device.peak_bytes < 2 * device.context_bytes; }

// What of the device's peak is neither the context nor the allocator's; nullopt where several processes share it.
std::optional<std::uint64_t> OutsideBytes(const RunResults& results, const ProcessRun& run) {
  if (!run.books.has_value() || !run.torch.has_value()) return 0;
  std::uint64_t out = 0;
  for (const AccountedDevice& device : run.books->devices) {
    if (device.peak_bytes == 0) continue;
    for (const ProcessRun& other : results.runs) {
      if (&other == &run || !other.books.has_value()) continue;
      for (const AccountedDevice& theirs : other.books->devices) {
        if (theirs.ordinal == device.ordinal && theirs.peak_bytes > 0 && !WasAlone(theirs)) return std::nullopt;
      }
    }
    for (const TorchDevice& torch : run.torch->devices) {
      const std::uint64_t known = device.context_bytes + torch.peak_reserved_bytes;
      if (torch.index == device.ordinal) out = std::max(out, Less(device.peak_bytes, known));
    }
  }
  return out;
}

}  // namespace

Cards AllCards() {
  Cards out;
  for (const gpus::Gpu& gpu : gpus::Gpus()) out.push_back(&gpu);
  return out;
}

absl::StatusOr<CardTable> CardsOfRun(const RunResults& results, const ProcessRun& explained, const Cards& cards,
                                     const answers::RanAs& ran_as, const answers::Progress& progress) {
  if (explained.native.has_value()) return AccountingOnCards(results, cards, ran_as);
  const std::optional<std::uint64_t> outside = OutsideBytes(results, explained);
  if (!outside.has_value()) {
    return absl::FailedPreconditionError("several processes share a device: which card is enough is not replayed");
  }
  const absl::StatusOr<formats::InputBytes> bytes = LoadBytes(explained.history, {});
  if (!bytes.ok()) return bytes.status();
  const absl::StatusOr<answers::Input> history = answers::LoadInput(*bytes);
  if (!history.ok()) return history.status();
  absl::StatusOr<CardTable> out =
      answers::ReplayOnCards(*history, {.cards = cards, .ran_as = ran_as, .outside_bytes = *outside}, progress);
  if (!out.ok() || !explained.torch.has_value()) return out;
  for (CardRow& row : out->rows) row.has_kernels = HasKernelsFor(explained.torch->archs, row.gpu->capability());
  return out;
}

namespace {

// CUDA C++ Programming Guide, "Binary Compatibility", "PTX Compatibility" and "Family-Specific Features".
std::optional<bool> Runs(absl::string_view arch, gpus::Capability card) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(arch, absl::MaxSplits('_', 1));
  absl::string_view digits = parts.second;
  const char kind =
      digits.empty() || absl::ascii_isdigit(static_cast<unsigned char>(digits.back())) ? ' ' : digits.back();
  if (kind != ' ') digits.remove_suffix(1);
  int number = 0;
  const bool is_code = parts.first == "sm", is_text = parts.first == "compute";
  if ((!is_code && !is_text) || !absl::SimpleAtoi(digits, &number)) return std::nullopt;
  const gpus::Capability built = {number / 10, number % 10};
  if (kind == 'a') return built == card;
  if (is_code || kind == 'f') return built.major == card.major && built.minor <= card.minor;
  return built <= card;
}

}  // namespace

std::optional<bool> HasKernelsFor(const std::vector<std::string>& archs, gpus::Capability card) {
  std::optional<bool> out;
  for (const std::string& arch : archs) {
    const std::optional<bool> runs = Runs(arch, card);
    if (runs.has_value()) out = out.value_or(false) || *runs;
  }
  return out;
}

}  // namespace ashlar::cli
