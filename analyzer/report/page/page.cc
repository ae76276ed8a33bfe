#include "analyzer/report/page/page.h"

#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "analyzer/answers/picture/picture.h"
#include "analyzer/report/explain_report.h"
#include "analyzer/report/json.h"
#include "analyzer/report/page/run_columns.h"
#include "analyzer/report/printable.h"

namespace ashlar::report {
namespace {

using answers::Picture;

Json StackTableJson(const Picture& picture) {
  Json labels = Json::Array();
  Json starts = Json::Array({0});
  Json stack_frames = Json::Array();
  std::uint64_t count = 0;
  for (const answers::StackPicture& stack : picture.stacks) {
    labels.Append(stack.label);
    for (const std::uint32_t frame : stack.frames) stack_frames.Append(frame);
    starts.Append(count += stack.frames.size());
  }
  Json frames = Json::Array();
  for (const trace::Frame& frame : picture.frames) {
    frames.Append(Json::Array({frame.file, frame.line < 0 ? Json() : Json(frame.line), frame.function}));
  }
  return {{"labels", std::move(labels)},
          {"frames", std::move(frames)},
          {"starts", std::move(starts)},
          {"stack_frames", std::move(stack_frames)}};
}

Json CausePicturesJson(const Picture& picture) {
  Json out = Json::Array();
  for (const answers::CausePicture& cause : picture.causes) {
    out.Append({{"name", cause.name}, {"moment", cause.moment}, {"blocks", cause.blocks}, {"stacks", cause.stacks}});
  }
  return out;
}

Json NamedEventsJson(const Picture& picture) {
  Json out = Json::Array();
  for (const answers::NamedEvent& named : picture.named_events) {
    out.Append({{"event", named.event}, {"moment", named.moment}});
  }
  return out;
}

std::string HtmlEscaped(const std::string& text) {
  return absl::StrReplaceAll(Printable(text),
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

// JSON within an element of HTML: no "<" that could end it.
std::string ForScript(const std::string& json) { return absl::StrReplaceAll(json, {{"<", "\\u003c"}}); }

// Puts the printed JSON of another command at the end of an object.
absl::Status AddPrinted(absl::string_view key, const std::string& printed, std::string& object) {
  const absl::StatusOr<std::string> value = printed.empty() ? std::string("null") : CompactJson(printed);
  if (!value.ok()) return absl::InvalidArgumentError(absl::StrCat(key, ": ", value.status().message()));
  object.pop_back();
  absl::StrAppend(&object, ",\"", key, "\":", *value, "}");
  return absl::OkStatus();
}

}  // namespace

// The numbers of the runs.
Json PageWriter::AddRuns(const answers::Explanation& explanation) {
  Json out = Json::Array();
  if (explanation.picture == nullptr) return out;
  for (const answers::RunPicture& run : explanation.picture->runs) {
    out.Append(runs_.size());
    runs_.push_back(RunJson(run, inputs_.size(), blobs_));
  }
  return out;
}

void PageWriter::AddInput(const PageInput& input, const answers::Explanation& explanation) {
  const Picture none;
  const bool has_picture = explanation.picture != nullptr;
  const Picture& picture = has_picture ? *explanation.picture : none;
  Json runs = AddRuns(explanation);
  inputs_.push_back({{"name", input.name},
                     {"rank", OrNull(input.rank)},
                     {"device", has_picture ? Json(picture.device) : Json()},
                     {"explanation", ExplanationJson(explanation)},
                     {"explanation_text", PrintExplanations({explanation}, /*as_json=*/false)},
                     {"runs", std::move(runs)},
                     {"stacks", StackTableJson(picture)},
                     {"texts", picture.texts},
                     {"causes", CausePicturesJson(picture)},
                     {"evidence_moments", NamedEventsJson(picture)}});
}

absl::StatusOr<std::string> PageWriter::Finish(const PageFacts& facts) && {
  const std::pair<absl::string_view, absl::string_view> around_title =
      absl::StrContains(template_, kTitlePlace) && absl::StrContains(template_, kDocumentPlace)
          ? std::pair(template_.substr(0, template_.find(kTitlePlace)),
                      template_.substr(template_.find(kTitlePlace) + sizeof(kTitlePlace) - 1))
          : std::pair<absl::string_view, absl::string_view>();
  const std::size_t at = around_title.second.find(kDocumentPlace);
  if (at == absl::string_view::npos) return absl::InternalError("the page's template has no place for a document");
  Json index = {{"format", "ashlar-page"},
                {"version", 1},
                {"made_by", facts.made_by},
                {"title", facts.title},
                {"command", facts.command}};
  index["inputs"] = Json::Array();
  for (Json& input : inputs_) index["inputs"].Append(std::move(input));
  index["runs"] = Json::Array();
  for (Json& run : runs_) index["runs"].Append(std::move(run));
  std::string text = index.ToCompactText();
  absl::Status status = AddPrinted("diff", facts.diff, text);
  status.Update(AddPrinted("estimate", facts.estimate, text));
  status.Update(AddPrinted("dry_run", facts.dry_run, text));
  status.Update(AddPrinted("fleet", facts.fleet, text));
  if (!status.ok()) return status;
  std::string out =
      absl::StrCat(around_title.first, HtmlEscaped(facts.title), around_title.second.substr(0, at),
                   "<script type=\"application/json\" id=\"ashlar-document\">", ForScript(text), "</script>\n");
  for (std::size_t i = 0; i < blobs_.size(); ++i) {
    absl::StrAppend(&out, "<script type=\"application/octet-stream\" id=\"ashlar-blob-", i, "\">", blobs_[i],
                    "</script>\n");
    std::string().swap(blobs_[i]);
  }
  absl::StrAppend(&out, around_title.second.substr(at + sizeof(kDocumentPlace) - 1));
  return out;
}

}  // namespace ashlar::report
