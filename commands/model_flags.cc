#include "commands/model_flags.h"

#include <vector>

#include "absl/strings/str_split.h"

namespace ashlar::cli {
namespace {

std::optional<bool> EitherOf(bool yes, bool no) {
  if (!yes && !no) return std::nullopt;
  return yes;
}

}  // namespace

void AddModelFlags(Command& app, ModelFlags& flags) {
  app.Add("--vocab", flags.vocabulary, "rows of the token embeddings, in place of the file's");
  app.Add("--layers", flags.layers, "layers of each stack, in place of the file's");
  app.Add("--hidden", flags.width, "the model's width, in place of the file's");
  app.Add("--freeze", flags.frozen, "modules without gradients, by name, with commas: bert.embeddings");
  app.Add("--embeddings-cpu", flags.has_host_embeddings, "the input embeddings stay on the host");
  const Flag tie = app.Add("--tie", flags.ties, "input and output embeddings are one tensor");
  app.Add("--untie", flags.unties, "they are two").Excludes(tie);
  const Flag share = app.Add("--shared-embeddings", flags.shares, "encoder and decoder share one table");
  app.Add("--separate-embeddings", flags.separates, "each has its own").Excludes(share);
}

estimate::ModelSwitches SwitchesOf(const ModelFlags& flags) {
  estimate::ModelSwitches out;
  out.vocabulary = flags.vocabulary;
  out.layers = flags.layers;
  out.width = flags.width;
  out.ties_embeddings = EitherOf(flags.ties, flags.unties);
  out.shares_embeddings = EitherOf(flags.shares, flags.separates);
  const std::vector<std::string> patterns = absl::StrSplit(flags.frozen, ',', absl::SkipWhitespace());
  out.frozen = patterns;
  out.has_host_embeddings = flags.has_host_embeddings;
  return out;
}

}  // namespace ashlar::cli
