// Values of columns in few bytes: a timeline of ten million events has millions of each. Both convert from and to what
// they stand for, so that code speaks of events and optionals as ever.
//
//   ColumnIndex freed = kNever;                  // 4 bytes in place of 8
//   if (event < freed) ...
//   ColumnBytes requested = std::nullopt;        // 8 bytes in place of 16
//   total += requested.value_or(size_bytes);
#ifndef ASHLAR_ANALYZER_TIMELINE_COLUMN_VALUES_H_
#define ASHLAR_ANALYZER_TIMELINE_COLUMN_VALUES_H_

#include <cstdint>
#include <limits>
#include <optional>

namespace ashlar::timeline {

using EventIndex = std::int64_t;
inline constexpr EventIndex kBeforeWindow = -1;
inline constexpr EventIndex kNever = std::numeric_limits<EventIndex>::max();

// The most events that a timeline has: the indices of more do not fit a column.
inline constexpr EventIndex kMostEvents = std::numeric_limits<std::int32_t>::max() - 1;

// kBeforeWindow, kNever, or an index below kMostEvents.
class ColumnIndex {
 public:
  constexpr ColumnIndex() = default;
  constexpr ColumnIndex(EventIndex event)  // NOLINT: it is that index
      : value_(event == kNever ? kNeverHere : static_cast<std::int32_t>(event)) {}
  constexpr operator EventIndex() const { return value_ == kNeverHere ? kNever : value_; }  // NOLINT

 private:
  static constexpr std::int32_t kNeverHere = std::numeric_limits<std::int32_t>::max();
  std::int32_t value_ = static_cast<std::int32_t>(kBeforeWindow);
};

// A number of bytes or nothing. No block has 2^64 - 1 bytes.
class ColumnBytes {
 public:
  constexpr ColumnBytes() = default;
  constexpr ColumnBytes(std::nullopt_t) {}                                                             // NOLINT
  constexpr ColumnBytes(std::uint64_t bytes) : bytes_(bytes) {}                                        // NOLINT
  constexpr ColumnBytes(const std::optional<std::uint64_t>& bytes) : bytes_(bytes.value_or(kNone)) {}  // NOLINT
  constexpr operator std::optional<std::uint64_t>() const {                                            // NOLINT
    return has_value() ? std::optional(bytes_) : std::nullopt;
  }
  constexpr bool has_value() const { return bytes_ != kNone; }
  constexpr std::uint64_t operator*() const { return bytes_; }
  constexpr std::uint64_t value_or(std::uint64_t other) const { return has_value() ? bytes_ : other; }

 private:
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t bytes_ = kNone;
};

}  // namespace ashlar::timeline

#endif  // ASHLAR_ANALYZER_TIMELINE_COLUMN_VALUES_H_
