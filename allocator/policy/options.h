// The settings of the allocation policy: a version of PyTorch to be exact with, what PYTORCH_CUDA_ALLOC_CONF says, and
// what goes beyond PyTorch, which is off unless asked for. docs/settings.md has every key.
//
//   absl::StatusOr<Options> options = ParseConf("max_split_size_mb:128,garbage_collection_threshold:0.8",
//                                               Compat::kTorch210);
//
// Errors name the key, the value and the allowed range. Which keys exist depends on the version.
#ifndef ASHLAR_ALLOCATOR_POLICY_OPTIONS_H_
#define ASHLAR_ALLOCATOR_POLICY_OPTIONS_H_

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "allocator/base/units.h"

namespace ashlar::policy {

// Whose decisions to make. kTorch210 has the rules of kTorchLatest with free blocks in address order.
enum class Compat : std::uint8_t { kTorch113, kTorch26, kTorch210, kTorchLatest };

// What decides between free blocks of equal size.
enum class FreeOrder : std::uint8_t {
  kAddress,            // the lowest address (PyTorch up to about 2.11)
  kPerBlockCounter,    // the oldest block object (a short-lived upstream version)
  kPerSegmentCounter,  // the block of the oldest segment, then the lowest address (PyTorch latest)
};

inline constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

// Source of the constants: c10/cuda/CUDACachingAllocator.cpp of PyTorch 1.13.1 and 2.6.0.
inline constexpr std::uint64_t kMinBlockBytes = 512;           // every block is a multiple
inline constexpr std::uint64_t kSmallMaxBytes = kMiB;          // largest rounded size of the small pool
inline constexpr std::uint64_t kSmallSegmentBytes = 2 * kMiB;  // segments of the small pool
inline constexpr std::uint64_t kDefaultLargeSegmentBytes = 20 * kMiB;
inline constexpr std::uint64_t kMinLargeBytes = 10 * kMiB;   // from here on a segment fits its request
inline constexpr std::uint64_t kRoundLargeBytes = 2 * kMiB;  // to a multiple of this

// How much address space one expandable reservation takes.
struct ExpandableReserve {
  std::optional<double> fraction_of_total;  // of the device's memory
  std::optional<std::uint64_t> bytes;
};

struct Options {
  Compat compat = Compat::kTorch210;
  FreeOrder free_order = FreeOrder::kAddress;
  std::uint64_t large_segment_bytes = kDefaultLargeSegmentBytes;
  std::uint64_t max_split_size_bytes = kUnlimited;
  std::uint64_t max_non_split_rounding_bytes = kDefaultLargeSegmentBytes;
  double garbage_collection_threshold = 0;  // 0 = never
  bool expandable_segments = false;
  bool throw_on_cudamalloc_oom = false;
  // Divisions between powers of two, for requests of [2^(20+i), 2^(21+i)); entry 0 is everything below 2 MiB,
  // entry 15 everything from 32 GiB on. 0 and 1 = round to 512 only.
  std::array<std::uint64_t, 16> roundup_power2_divisions{};
  std::uint64_t roundup_bypass_threshold_bytes = kUnlimited;  // 1.13 only: above it round to 512 only
  std::optional<double> per_process_memory_fraction;
  ExpandableReserve expandable_reserve;

  // Beyond PyTorch; with all of them off, every decision is PyTorch's.
  bool search_after_sync = false;                   // the last rung looks into the cache once the events are done
  bool sync_just_enough = false;                    // and waits for as few of them as it can
  bool borrow_across_streams = false;               // idle blocks of another stream, before anything is released
  std::optional<std::uint64_t> memory_limit_bytes;  // of reserved memory, beside per_process_memory_fraction
  std::optional<std::uint64_t> soft_limit_bytes;    // crossing it is told before memory is obtained
  std::optional<double> soft_limit_fraction;        // the same, of the device's memory; the lower one counts

  bool report_leaks = true;  // blocks that live when their allocator ends are told on stderr

  std::string conf;                // as given
  std::vector<std::string> notes;  // keys that are accepted and change no decision, values that are ignored
};

// The free-set order a version uses by default.
FreeOrder DefaultFreeOrder(Compat compat);

// Which keys a text may use.
enum class Keys : std::uint8_t {
  kTorch,   // those of the version of PyTorch, and no others
  kAshlar,  // ours beside them: what is beyond PyTorch, and `compat`, which says the version to be exact with
};

absl::StatusOr<Options> ParseConf(absl::string_view conf, Compat compat, Keys keys = Keys::kTorch);

// Every key that some version knows, ours last.
struct KeyInfo {
  absl::string_view name;
  bool is_ours = false;
  bool has_effect = true;  // false: accepted, and changes no decision
};
std::vector<KeyInfo> AllKeys();

// "torch-1.13", "torch-2.6", "torch-2.10", "torch-latest".
absl::string_view CompatName(Compat compat);
absl::StatusOr<Compat> ParseCompat(absl::string_view name);

// "address", "per-block-counter", "per-segment-counter".
absl::string_view FreeOrderName(FreeOrder order);
absl::StatusOr<FreeOrder> ParseFreeOrder(absl::string_view name);

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_OPTIONS_H_
