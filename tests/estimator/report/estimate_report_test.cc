// The estimate as it is printed: the JSON keeps to its schema, its parts sum, the text shows the same numbers.
#include "estimator/report/estimate_report.h"

#include <string>

#include "analyzer/formats/oom/oom_message.h"
#include "estimator/report/explain_model.h"
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/commands/printed.h"
#include "tests/estimator/model_file.h"

namespace ashlar::tests {
namespace {

using estimate::EstimateOptions;
using estimate::Model;
using estimate::ModelOf;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

struct Printed {
  json document;
  std::string text;
};

Printed MustPrint(Model model, const EstimateOptions& options, SchemaCheck& schema) {
  absl::StatusOr<estimate::Estimate> estimate = EstimateMemory(std::move(model), options);
  EXPECT_TRUE(estimate.ok()) << estimate.status();
  const estimate::EstimateReport report{"x", *std::move(estimate)};
  Printed out{json::parse(ToJson(report)), ToText(report)};
  schema.Check(out.document);
  EXPECT_THAT(schema.errors(), IsEmpty());
  ExpectFitsOneScreen(out.text);
  for (const char* order : {"ascending", "descending"}) {
    const json& run = out.document[order];
    if (run.is_null()) continue;
    std::uint64_t sum = 0;
    for (const json& part : run["parts"]) sum += part.get<std::uint64_t>();
    EXPECT_EQ(sum, run["device_bytes"].get<std::uint64_t>());
    EXPECT_THAT(out.text, HasSubstr(FormatBytes(sum)));
    for (const json& phase : run["phases"]) {
      std::uint64_t reserved = 0;
      for (const auto& [name, part] : phase.items()) {
        if (name != "step" && name != "phase" && name != "reserved_bytes") reserved += part.get<std::uint64_t>();
      }
      EXPECT_EQ(reserved, phase["reserved_bytes"].get<std::uint64_t>());
    }
  }
  if (const json& interval = out.document["interval"]; !interval.is_null()) {
    EXPECT_THAT(out.text, HasSubstr("interval: " + FormatBytes(interval["least_bytes"].get<std::uint64_t>())));
  }
  const json& shown = out.document["ascending"];
  const json parts = shown.is_null() ? json::object() : shown["parts"];
  for (const auto& [name, part] : parts.items()) {
    if (name == "batch_bytes" || name == "libraries_bytes" || part == 0) continue;
    EXPECT_THAT(out.text, HasSubstr(FormatBytes(part.get<std::uint64_t>()))) << name;
  }
  for (const json& states : out.document["states"]) {
    EXPECT_THAT(out.text, HasSubstr(FormatBytes(states["total_bytes"].get<std::uint64_t>())));
  }
  return out;
}

void ExpectSimulationsArePrinted(SchemaCheck& schema) {
  EstimateOptions options;
  options.run.batch = 4;
  options.lengths = *estimate::NormalLengths("mean:40,sd:30,max:600", {.samples = 20});
  options.device = "T4";
  options.capacity_bytes = 2 * kGiB;
  options.runs_an_epoch = true;
  absl::StatusOr<estimate::Estimate> estimate =
      EstimateMemory(ModelOf("bert-base-uncased", "BertForSequenceClassification"), options);
  ASSERT_TRUE(estimate.ok()) << estimate.status();
  estimate::EstimateReport report{"x", *std::move(estimate)};
  EXPECT_THAT(ToText(report), AllOf(HasSubstr("in dynamic batches"), HasSubstr("the first 5 of an epoch's 5 steps")));
  report.shuffles = *estimate::RunShuffles(report.estimate, {.shuffles = 3, .threads = 1});
  const std::string text = ToText(report);
  ExpectFitsOneScreen(text);
  report.levers = *estimate::RunLevers(report.estimate, 1);
  report.fit = *estimate::FindFit(report.estimate, {.threads = 1});
  const json document = json::parse(ToJson(report));
  schema.Check(document);
  EXPECT_THAT(schema.errors(), IsEmpty());
  report.shuffles.reset();
  const std::string levers = ToText(report);
  ExpectFitsOneScreen(levers);
  for (const json& row : document["levers"]["rows"]) {
    EXPECT_THAT(levers, HasSubstr(FormatBytes(row["device_bytes"].get<std::uint64_t>())));
  }
  EXPECT_THAT(levers, HasSubstr("FIT   (into 2.00 GiB"));
  for (const json& row : document["shuffles"]["rows"]) {
    if (row["peak_reserved_bytes"].is_null()) continue;
    EXPECT_THAT(text, HasSubstr(FormatBytes(row["peak_reserved_bytes"]["p95"].get<std::uint64_t>())));
  }
}

TEST(EstimateReportTest, TextJsonAndSchemaAgree) {
  SchemaCheck schema(json::parse(FileBytes(ASHLAR_SOURCE_DIR "/docs/schemas/estimate.schema.json")));
  EXPECT_THAT(schema.SchemaFaults(), IsEmpty());
  EstimateOptions options;
  options.run.optimizer = "adamw-hf";
  options.run.torch_version = "1.10";
  options.device = "T4";
  const Printed tabular = MustPrint(ModelOf("tabformer-large"), options, schema);
  EXPECT_THAT(tabular.text, AllOf(HasSubstr("82.6 % of all parameters are one embedding of 867,813 rows"),
                                  HasSubstr("does not fit"), HasSubstr("sqrt(exp_avg_sq)")));
  const Printed bert = MustPrint(ModelOf("bert-base-uncased", "BertForSequenceClassification"), options, schema);
  EXPECT_THAT(bert.text, AllOf(HasSubstr("12 x 7,087,872"), HasSubstr("to spare")));
  EXPECT_THAT(MustPrint(ModelOf("gemma-2b"), {}, schema).text, HasSubstr("fp32, sdpa attention, adamw, torch 2.6"));
  EXPECT_THAT(MustPrint(*estimate::ModelOfCount(1'000'000'000), {}, schema).text,
              AllOf(HasSubstr("1,000,000,000"), HasSubstr("no dry run for a list of parameters yet")));
  MustPrint(ModelOf("bert-base-uncased", "BertForMaskedLM"), {}, schema);
  const absl::StatusOr<Model> sparse = estimate::ReadModel(R"({"model_type": "gpt2"})", {});
  EXPECT_THAT(MustPrint(*sparse, {}, schema).text, HasSubstr("vocab_size 50257"));
  ExpectSimulationsArePrinted(schema);
  EXPECT_THAT(schema.UnseenObjects(), IsEmpty());
}

// "Tried to allocate 2.69 GiB" of the tabular BERT is one float32 tensor of its word embeddings.
TEST(ExplainModelTest, NamesTheTensorOfTheFailedSize) {
  const std::string text =
      "RuntimeError: CUDA out of memory. Tried to allocate 2.69 GiB (GPU 0; 14.76 GiB total capacity; 12.32 GiB "
      "already "
      "allocated; 835.88 MiB free; 13.06 GiB reserved in total by PyTorch)";
  const std::vector<formats::OomMessage> messages = formats::FindOomMessages(text);
  ASSERT_EQ(messages.size(), 1u);
  answers::Explanation explanation = answers::ExplainMessage(messages[0], {});
  estimate::AddModel(ModelOf("tabformer-large"), explanation);
  EXPECT_THAT(explanation.evidence.back(),
              AllOf(HasSubstr("tb_model.bert.embeddings.word_embeddings.weight"), HasSubstr("867,813 x 832"),
                    HasSubstr("82.6 % of all parameters"), HasSubstr("visitor_id")));
  answers::Explanation other = answers::ExplainMessage(messages[0], {});
  estimate::AddModel(ModelOf("bert-base-uncased"), other);
  EXPECT_THAT(other.evidence.back(), HasSubstr("no parameter of BertModel has the size"));
}

}  // namespace
}  // namespace ashlar::tests
