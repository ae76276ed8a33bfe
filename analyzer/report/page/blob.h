// Columns laid one after another into one compressed text, and the JSON that says where each lies.
//
//   BlobWriter blob(/*number=*/0);
//   Json columns = Json::Object();
//   columns["allocated"] = blob.Add(allocated_bytes);
//   std::string element = blob.Finish();   // base64 of gzip
//
// Not thread-safe.
#ifndef ASHLAR_ANALYZER_REPORT_PAGE_BLOB_H_
#define ASHLAR_ANALYZER_REPORT_PAGE_BLOB_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "analyzer/report/json_values.h"

namespace ashlar::report {

class BlobWriter {
 public:
  explicit BlobWriter(std::size_t number) : number_(number) {}

  // Where the column lies and how it is packed.
  Json Add(absl::Span<const std::int64_t> values);
  // Leaves it empty.
  std::string Finish();

 private:
  std::size_t number_;
  std::string bytes_;
};

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_PAGE_BLOB_H_
