// Columns laid one after another into one compressed text, and the JSON that says where each lies.
//
//   BlobWriter blob;
//   blob.Add("allocated", allocated_bytes);
//   blob.Add("reserved", reserved_bytes);
//   blob.MoveTo(blobs, columns);   // columns["allocated"] = {"blob": 0, "offset": 0, ...}
//
// Not thread-safe.
#ifndef ASHLAR_ANALYZER_REPORT_PAGE_BLOB_H_
#define ASHLAR_ANALYZER_REPORT_PAGE_BLOB_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "analyzer/report/json_values.h"

namespace ashlar::report {

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

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_PAGE_BLOB_H_
