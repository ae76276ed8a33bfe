// Lines of a remedy with the program's own variable in them.
#include "commands/explain/holder_fix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "analyzer/analyses/changes/program_changes.h"

namespace ashlar::answers {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

trace::Holder Held(const std::string& kind, const std::string& name, const std::string& container = "") {
  trace::Holder holder;
  holder.kind = kind;
  holder.name = name;
  holder.container = container;
  return holder;
}

TEST(HolderFixTest, AGraphIsCutWhereTheVariableKeepsIt) {
  const absl::string_view numbers = analyses::changes::kNumbersNotTensors.sentence;
  EXPECT_THAT(NamedLines(numbers, Held("graph", "losses[]", "list")),
              ElementsAre("losses.append(loss.item())  # or value.detach(); not: losses.append(loss)"));
  EXPECT_THAT(NamedLines(numbers, Held("graph", "self.seen[]", "defaultdict")),
              ElementsAre("self.seen[key] = loss.item()  # or value.detach(); not: self.seen[key] = loss"));
  EXPECT_THAT(NamedLines(numbers, Held("graph", "total")),
              ElementsAre("total += loss.item()  # not: total += loss",
                          "total = total.detach()  # where it goes on to the next step"));
}

TEST(HolderFixTest, WhatIsKeptGoesToTheHost) {
  for (const auto* change : {&analyses::changes::kMoveOffDevice, &analyses::changes::kPredictionsOffDevice}) {
    EXPECT_THAT(NamedLines(change->sentence, Held("local", "features[]", "deque")),
                ElementsAre("features.append(output.detach().cpu())"));
    EXPECT_THAT(NamedLines(change->sentence, Held("local", "features")), IsEmpty()) << "no element of anything";
  }
  EXPECT_THAT(NamedLines(analyses::changes::kTensorOnHost.sentence, Held("global", "data")),
              ElementsAre("data = data.cpu().pin_memory()", "batch = data[part].to(\"cuda\", non_blocking=True)"));
}

TEST(HolderFixTest, NoNameThatAProgramCannotWriteThere) {
  const absl::string_view numbers = analyses::changes::kNumbersNotTensors.sentence;
  for (const char* name : {"model.*.cache[]", "kept[][]", "lambda of train", "", "[]", "2nd", "a..b"}) {
    EXPECT_THAT(NamedLines(numbers, Held("graph", name, "list")), IsEmpty()) << name;
  }
  EXPECT_THAT(NamedLines(numbers, Held("graph", "seen[]", "Registry")), IsEmpty()) << "who knows how it takes a value";
  EXPECT_THAT(NamedLines(numbers, Held("graph", "seen.loss", "dict")), IsEmpty()) << "a key, no attribute";
  EXPECT_THAT(NamedLines(numbers, Held("parameter", "model.weight")), IsEmpty());
  EXPECT_THAT(NamedLines(analyses::changes::kCheckpointing.sentence, Held("graph", "losses[]", "list")), IsEmpty());
}

}  // namespace
}  // namespace ashlar::answers
