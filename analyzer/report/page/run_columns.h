// A run of a picture as the page reads it: its JSON, and the two blobs that hold its columns (docs/internals/page.md).
#ifndef ASHLAR_ANALYZER_REPORT_PAGE_RUN_COLUMNS_H_
#define ASHLAR_ANALYZER_REPORT_PAGE_RUN_COLUMNS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "analyzer/answers/picture/picture.h"
#include "analyzer/report/json_values.h"

namespace ashlar::report {

// The sums over time go to one blob, blocks and segments to another; those that are new are appended.
Json RunJson(const answers::RunPicture& run, std::size_t input, std::vector<std::string>& blobs);

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_PAGE_RUN_COLUMNS_H_
