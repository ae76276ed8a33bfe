// The page (explain/page/page.h) as files of commands: `report` itself, and `--report FILE` and `--open` of others.
//
//   report::PageFacts facts{.title = "a.pickle"};
//   absl::StatusOr<std::string> html = PageOf(explanations, std::move(facts));
//
// Not thread-safe.
#ifndef ASHLAR_COMMANDS_EXPLAIN_PAGE_PAGE_FILE_H_
#define ASHLAR_COMMANDS_EXPLAIN_PAGE_PAGE_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "commands/explain/explanation.h"
#include "commands/explain/page/page.h"

namespace ashlar::cli {

// The program's version and the command line are filled in.
absl::StatusOr<std::string> FinishPage(report::PageWriter writer, report::PageFacts facts);
// Of explanations with pictures; an explanation without a name is of an input called as the page.
absl::StatusOr<std::string> PageOf(const std::vector<answers::Explanation>& explanations, report::PageFacts facts);

// Into a new folder of this user alone, and shown by $BROWSER, else by xdg-open on a graphical desktop. Says on stderr
// where the page lies, and whether nothing opened it. Does not wait for what opens it. Unavailable: it could not be
// written.
absl::Status OpenPage(const std::string& html);
// The same of a page that lies there.
void ShowPageFile(const std::string& file);

}  // namespace ashlar::cli

#endif  // ASHLAR_COMMANDS_EXPLAIN_PAGE_PAGE_FILE_H_
