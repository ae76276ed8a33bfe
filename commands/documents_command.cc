#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "allocator/base/nearest_word.h"
#include "commands/commands.h"
#include "commands/documents/documents.h"
#include "commands/shared/layout.h"
#include "console/command.h"

namespace ashlar::cli {
namespace {

constexpr int kNameColumns = 20;

int FailUnknown(const char* kind, const std::string& name, const std::vector<std::string>& names) {
  const std::string question = DidYouMean(name, names);
  return Fail(kUsage, absl::InvalidArgumentError(absl::StrCat("no ", kind, " is called '", name, "'",
                                                              question.empty() ? "" : ": ", question, " `ashlar ", kind,
                                                              "` lists them")));
}

int RunGuide(const std::string& topic) {
  if (!topic.empty()) {
    std::vector<KeptDocument> pages(Guide().begin(), Guide().end());
    pages.insert(pages.end(), CausePages().begin(), CausePages().end());
    const KeptDocument* page = FindDocument(pages, topic);
    if (page == nullptr) return FailUnknown("guide", topic, NamesOf(pages));
    return Print(std::string(page->text)) ? kOk : kUnreadable;
  }
  std::string out;
  for (const KeptDocument& page : Guide()) {
    absl::StrAppend(&out, absl::StrFormat("%-*s", kNameColumns, page.name));
    report::AppendWrapped(FirstSentence(page), kNameColumns, out);
  }
  return Print(out) ? kOk : kUnreadable;
}

int PrintSchema(const std::string& name) {
  if (name.empty()) return Print(absl::StrCat(absl::StrJoin(SchemaNames(), "\n"), "\n")) ? kOk : kUnreadable;
  const std::optional<std::string> schema = SchemaNamed(name);
  if (!schema.has_value()) return FailUnknown("schema", name, SchemaNames());
  return Print(*schema) ? kOk : kUnreadable;
}

}  // namespace

void AddDocuments(CommandLine& line) {
  Command guide = line.AddCommand("guide", "a page of the guide, or of a cause; without a name, which pages there are");
  guide.Example("ashlar guide my_training_died");
  auto topic = std::make_shared<std::string>();
  guide.Add("topic", *topic, "the page's name, such as fit, or that of a cause, such as graph_kept_alive").NotEmpty();
  guide.OnRun([topic] { return RunGuide(*topic); });

  Command schema = line.AddCommand("schema", "the JSON schema of an answer; without a name, which there are");
  schema.Example("ashlar schema explain");
  auto name = std::make_shared<std::string>();
  schema.Add("name", *name, "of the command whose --json it describes, such as diff").NotEmpty();
  schema.OnRun([name] { return PrintSchema(*name); });
}

}  // namespace ashlar::cli
