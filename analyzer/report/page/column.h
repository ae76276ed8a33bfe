// A column of whole numbers as bytes: the smallest little-endian array that gives each value back exactly.
//
//   value[i] = base + scale * raw[i]                    or, where is_delta,
//   value[i] = base + scale * (raw[0] + ... + raw[i])
//
//   const PackedColumn packed = PackColumn({512, 1024, 1536});   // u8, base 512, scale 512, raw 0 1 2
//
// Values are below 2^53 in size, as are all sums above, so that a double holds them. Pure functions.
#ifndef ASHLAR_ANALYZER_REPORT_PAGE_COLUMN_H_
#define ASHLAR_ANALYZER_REPORT_PAGE_COLUMN_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/types/span.h"

namespace ashlar::report {

enum class ColumnType : std::uint8_t { kU8, kU16, kU32, kI8, kI16, kI32, kF64 };

// "u8", "u16", "u32", "i8", "i16", "i32", "f64".
const char* ColumnTypeName(ColumnType type);

struct PackedColumn {
  ColumnType type = ColumnType::kU8;
  std::int64_t base = 0;
  std::int64_t scale = 1;
  bool is_delta = false;
  std::size_t count = 0;
  std::string bytes;
};

// As differences where those are likely to compress better.
PackedColumn PackColumn(absl::Span<const std::int64_t> values);

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_PAGE_COLUMN_H_
