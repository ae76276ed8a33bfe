#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/nearest_word.h"
#include "commands/commands.h"
#include "commands/documents/documents.h"
#include "commands/shared/layout.h"
#include "console/command.h"

namespace ashlar::cli {
namespace {

constexpr int kNameColumns = 20;

int PrintDocument(absl::Span<const KeptDocument> documents, const char* kind, const std::string& name) {
  const KeptDocument* document = FindDocument(documents, name);
  if (document != nullptr) return Print(std::string(document->text)) ? kOk : kUnreadable;
  const std::string question = DidYouMean(name, NamesOf(documents));
  return Fail(kUsage, absl::InvalidArgumentError(absl::StrCat("no ", kind, " is called '", name, "'",
                                                              question.empty() ? "" : ": ", question, " `ashlar ", kind,
                                                              "` lists them")));
}

int RunGuide(const std::string& topic) {
  if (!topic.empty()) {
    std::vector<KeptDocument> pages(Guide().begin(), Guide().end());
    pages.insert(pages.end(), CausePages().begin(), CausePages().end());
    return PrintDocument(pages, "guide", topic);
  }
  std::string out;
  for (const KeptDocument& page : Guide()) {
    absl::StrAppend(&out, absl::StrFormat("%-*s", kNameColumns, page.name));
    report::AppendWrapped(FirstSentence(page), kNameColumns, out);
  }
  return Print(out) ? kOk : kUnreadable;
}

int RunSchema(const std::string& name) {
  if (!name.empty()) return PrintDocument(Schemas(), "schema", name);
  std::string out;
  for (const KeptDocument& schema : Schemas()) absl::StrAppend(&out, schema.name, "\n");
  return Print(out) ? kOk : kUnreadable;
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
  schema.OnRun([name] { return RunSchema(*name); });
}

}  // namespace ashlar::cli
