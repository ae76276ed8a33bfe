// Columns of numbers and texts as one compressed text of the page.
#ifndef ASHLAR_COMMANDS_EXPLAIN_PAGE_COLUMN_BLOB_H_
#define ASHLAR_COMMANDS_EXPLAIN_PAGE_COLUMN_BLOB_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "commands/shared/json_values.h"

namespace ashlar::report {

// Columns laid one after another into one compressed text, and the JSON that says where each lies.
//
//   BlobWriter blob;
//   blob.Add("allocated", allocated_bytes);
//   blob.Add("reserved", reserved_bytes);
//   blob.MoveTo(blobs, columns);   // columns["allocated"] = {"blob": 0, "offset": 0, ...}
//
// Not thread-safe.
class BlobWriter {
 public:
  void Add(absl::string_view name, absl::Span<const std::int64_t> values);
  // Appends the blob, base64 of gzip, where `blobs` has none that is equal (what-ifs often decide alike), and the
  // columns as members of an object. Leaves it empty.
  void MoveTo(std::vector<std::string>& blobs, Json& columns);

 private:
  std::vector<std::pair<std::string, Json>> columns_;
  std::string bytes_;
};

// A column of whole numbers as bytes: the smallest little-endian array that gives each value back exactly.
//
//   value[i] = base + scale * raw[i]                    or, where is_delta,
//   value[i] = base + scale * (raw[0] + ... + raw[i])
//
//   const PackedColumn packed = PackColumn({512, 1024, 1536});   // u8, base 512, scale 512, raw 0 1 2
//
// Values are below 2^53 in size, as are all sums above, so that a double holds them. Pure functions.
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

// Compresses bytes as one gzip member without name and time: the same bytes in, the same bytes out. Any size; a failure
// is one of memory, and ends the program.
//
//   Deflate(columns)   // what DecompressionStream('gzip') and gunzip read

std::string Deflate(absl::string_view bytes);

}  // namespace ashlar::report

#endif  // ASHLAR_COMMANDS_EXPLAIN_PAGE_COLUMN_BLOB_H_
