// The page's program, built of page and kept in the program `ashlar`: one HTML file with places for a title
// and a document (explain/page/page.h).
#ifndef ASHLAR_COMMANDS_EXPLAIN_PAGE_PAGE_TEMPLATE_H_
#define ASHLAR_COMMANDS_EXPLAIN_PAGE_PAGE_TEMPLATE_H_

#include "absl/strings/string_view.h"

namespace ashlar::cli {

absl::string_view PageTemplate();

}  // namespace ashlar::cli

#endif  // ASHLAR_COMMANDS_EXPLAIN_PAGE_PAGE_TEMPLATE_H_
