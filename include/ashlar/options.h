// Options are the settings of an allocator: the version of PyTorch to decide as, PyTorch's own settings, and settings
// beyond PyTorch's, which are off unless asked for. docs/library/settings.md has every key.
//
//   absl::StatusOr<ashlar::Options> options = ashlar::Options::Parse("max_split_size_mb:128,memory_limit_mb:20480");
//   absl::StatusOr<ashlar::Options> options = ashlar::Options::FromEnvironment();   // ASHLAR_CONF
//
// Errors are kInvalidArgument, and name the key, the value and the allowed range. Sizes are bytes.
#ifndef ASHLAR_OPTIONS_H_
#define ASHLAR_OPTIONS_H_

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ashlar/export.h"
#include "ashlar/units.h"

namespace ashlar {
namespace policy {
struct PlacementPlan;
}  // namespace policy

// Whose decisions to make. kTorch210 and kTorch212 have the rules of kTorchLatest (2.13 to 2.15), but the order of free
// blocks of equal size: by address up to 2.11, by block in 2.12, by segment from 2.13 on.
// kTorchXpu is PyTorch's allocator for Intel's GPUs, whose snapshots are replayed.
enum class Compat : std::uint8_t { kTorch113, kTorch26, kTorch210, kTorch212, kTorchLatest, kTorchXpu };

// What decides between free blocks of equal size.
enum class FreeOrder : std::uint8_t {
  kAddress,            // the lowest address (PyTorch up to about 2.11)
  kPerBlockCounter,    // the oldest block object (a short-lived upstream version)
  kPerSegmentCounter,  // the block of the oldest segment, then the lowest address (PyTorch latest)
};

// Who decides where memory comes from when no cached block fits. docs/internals/policy.md.
enum class Policy : std::uint8_t {
  kTorch,   // PyTorch's rules
  kAshlar,  // pages: whole free pages move to where a request needs them, before the device is asked for more
};

// Which keys a text may use.
enum class Keys : std::uint8_t {
  kTorch,   // those of the version of PyTorch, and no others
  kAshlar,  // ours beside them: what is beyond PyTorch, and `compat`, which says the version to be exact with
};

inline constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

// How much address space one expandable reservation takes.
struct ExpandableReserve {
  std::optional<double> fraction_of_total;  // of the device's memory
  std::optional<std::uint64_t> bytes;
};

struct Options {
  // `compat` is the version where the text does not name one.
  ASHLAR_EXPORT static absl::StatusOr<Options> Parse(absl::string_view conf, Compat compat = Compat::kTorch210,
                                                     Keys keys = Keys::kAshlar);
  // ASHLAR_CONF, and PyTorch's own variable where ASHLAR_USE_PYTORCH_CONF=1. Errors name the variable. Threads: as
  // getenv, so not while another thread changes the environment.
  ASHLAR_EXPORT static absl::StatusOr<Options> FromEnvironment();

  Compat compat = Compat::kTorch210;
  FreeOrder free_order = FreeOrder::kAddress;
  std::uint64_t large_segment_bytes = 20 * kMiB;
  std::uint64_t max_split_size_bytes = kUnlimited;
  std::uint64_t max_non_split_rounding_bytes = 20 * kMiB;
  double garbage_collection_threshold = 0;  // 0 = never
  bool expandable_segments = false;
  bool throw_on_cudamalloc_oom = false;
  // While a graph is captured: a block that other streams used is free as soon as the graph orders their work before
  // what comes next on its own.
  bool graph_capture_record_stream_reuse = false;
  // Divisions between powers of two, for requests of [2^(20+i), 2^(21+i)); entry 0 is everything below 2 MiB,
  // entry 15 everything from 32 GiB on. 0 and 1 = round to 512 only.
  std::array<std::uint64_t, 16> roundup_power2_divisions{};
  std::uint64_t roundup_bypass_threshold_bytes = kUnlimited;  // 1.13 only: above it round to 512 only
  std::optional<double> per_process_memory_fraction;
  ExpandableReserve expandable_reserve;

  // Beyond PyTorch; with all of them off, every decision is PyTorch's.
  Policy policy = Policy::kTorch;                   // kAshlar: expandable_segments is on
  bool search_after_sync = false;                   // the last rung looks into the cache once the events are done
  bool sync_just_enough = false;                    // and waits for as few of them as it can
  bool borrow_across_streams = false;               // idle blocks of another stream, before anything is released
  std::optional<std::uint64_t> borrow_most_waits;   // of streams for that, in 1,000 requests; nothing: any number
  std::optional<std::uint64_t> memory_limit_bytes;  // of reserved memory, beside per_process_memory_fraction
  std::optional<std::uint64_t> soft_limit_bytes;    // crossing it is told before memory is obtained
  std::optional<double> soft_limit_fraction;        // the same, of the device's memory; the lower one counts

  // Where large blocks go, read from a file that `ashlar plan` made; nullptr: by the rules alone.
  std::shared_ptr<const policy::PlacementPlan> plan;

  bool report_leaks = true;  // blocks that live when their allocator ends are told on stderr

  std::string conf;                // as given
  std::vector<std::string> notes;  // keys that are accepted and change no decision, values that are ignored
};

}  // namespace ashlar

#endif  // ASHLAR_OPTIONS_H_
