// Descriptions of models against what is published of them: the numbers of parameters that model cards and
// sum(p.numel() for p in model.parameters()) show; errors of one line.
#include <algorithm>
#include <cstdint>
#include <ostream>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "estimator/model_states.h"
#include "gmock/gmock.h"
#include "tests/estimator/model_file.h"

namespace ashlar::estimate {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct Published {
  const char* file;
  const char* architecture;  // "": the file's
  std::int64_t parameters;
};

std::ostream& operator<<(std::ostream& out, const Published& model) {
  return out << model.file << " " << model.architecture;
}

class PublishedModel : public testing::TestWithParam<Published> {};

TEST_P(PublishedModel, HasAsManyParameters) {
  const Model model = ModelOf(GetParam().file, GetParam().architecture);
  EXPECT_EQ(model.count(), GetParam().parameters);
  std::set<std::string> names;
  for (const ModelParameter& parameter : model.parameters) {
    EXPECT_TRUE(names.insert(parameter.name).second) << parameter.name << " is listed twice";
  }
  for (const TiedName& tied : model.tied) {
    EXPECT_TRUE(names.count(tied.of)) << tied.name << " is tied to " << tied.of << ", which is none";
    EXPECT_FALSE(names.count(tied.name)) << tied.name << " is tied and counted";
  }
}

INSTANTIATE_TEST_SUITE_P(
    , PublishedModel,
    testing::Values(Published{"bert-base-uncased", "", 109'482'240},
                    Published{"bert-base-uncased", "BertForSequenceClassification", 109'483'778},
                    Published{"bert-base-uncased", "BertForMaskedLM", 109'514'298},
                    Published{"bert-base-uncased", "BertForPreTraining", 110'106'428},
                    Published{"bert-large-uncased", "", 335'141'888},
                    Published{"bert-large-uncased", "BertForSequenceClassification", 335'143'938},
                    Published{"roberta-base", "", 124'645'632},
                    Published{"roberta-base", "RobertaForSequenceClassification", 124'647'170},
                    Published{"roberta-base", "RobertaForMaskedLM", 124'697'433},
                    Published{"xlm-roberta-base", "", 278'043'648},
                    Published{"distilbert-base-uncased", "", 66'362'880},
                    Published{"distilbert-base-uncased", "DistilBertForSequenceClassification", 66'955'010},
                    Published{"distilbert-base-uncased", "DistilBertForMaskedLM", 66'985'530},
                    Published{"gpt2", "", 124'439'808}, Published{"gpt2-xl", "", 1'557'611'200},
                    Published{"gpt2", "GPT2ForSequenceClassification", 124'441'344},
                    Published{"gpt-neo-125m", "", 125'198'592}, Published{"llama-2-7b", "", 6'738'415'616},
                    Published{"llama-3-8b", "", 8'030'261'248},
                    Published{"llama-3-8b", "LlamaForSequenceClassification", 7'504'932'864},
                    Published{"qwen2-0.5b", "", 494'032'768}, Published{"mistral-7b", "", 7'241'732'096},
                    Published{"gemma-2b", "", 2'506'172'416}, Published{"t5-small", "", 60'506'624},
                    Published{"flan-t5-base", "", 247'577'856}, Published{"tabformer-small", "", 98'510'560},
                    Published{"tabformer-large", "", 874'326'757}),
    [](const testing::TestParamInfo<Published>& row) {
      return absl::StrReplaceAll(std::string(row.param.file) + "_" + row.param.architecture, {{"-", "_"}, {".", "_"}});
    });

TEST(ModelFile, NamesShapesAndOrderArePyTorchs) {
  const Model model = ModelOf("bert-base-uncased", "BertForMaskedLM");
  EXPECT_EQ(model.parameters.front().name, "bert.embeddings.word_embeddings.weight");
  EXPECT_THAT(model.parameters.front().sizes, ElementsAre(30'522, 768));
  EXPECT_EQ(model.parameters[5].name, "bert.encoder.layer.0.attention.self.query.weight");
  EXPECT_EQ(model.parameters.back().name, "cls.predictions.transform.LayerNorm.bias");
  EXPECT_EQ(model.tied.front().name, "cls.predictions.decoder.weight");
  const Model gpt2 = ModelOf("gpt2");
  EXPECT_EQ(gpt2.parameters[4].name, "transformer.h.0.attn.c_attn.weight");
  EXPECT_THAT(gpt2.parameters[4].sizes, ElementsAre(768, 2304));  // Conv1D: the other way round
}

TEST(ModelFile, Layers) {
  EXPECT_EQ(LayerOf("bert.encoder.layer.10.output.dense.weight"), "bert.encoder.layer.10");
  EXPECT_EQ(LayerOf("bert.embeddings.LayerNorm.bias"), "bert.embeddings");
  EXPECT_EQ(LayerOf("classifier.weight"), "classifier");
  EXPECT_EQ(LayerOf("alone"), "alone");
}

TEST(ModelFile, MissingKeysHaveTheFamilysDefaultsAndAreNoted) {
  const absl::StatusOr<Model> model = ReadModel(R"({"model_type": "bert", "hidden_size": 768})", {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->count(), 109'482'240);
  ASSERT_EQ(model->notes.size(), 3u);
  EXPECT_THAT(model->notes[0].message, HasSubstr("taken as BertModel"));
  EXPECT_THAT(model->notes[1].message, HasSubstr("has no loss"));
  EXPECT_THAT(model->notes[2].message, AllOf(HasSubstr("vocab_size 30522"), Not(HasSubstr("hidden_size"))));
  EXPECT_EQ(ReadModel(R"({"model_type": "mistral", "architectures": ["MistralForCausalLM"]})", {})->count(),
            7'241'732'096);
}

TEST(ModelFile, OwnListOfParameters) {
  const absl::StatusOr<Model> model = ReadModel(
      R"({"model_type": "parameters", "parameters": [{"name": "a.weight", "shape": [3, 4]}, {"name": "b", "shape": []}]})",
      {});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->count(), 13);
}

TEST(ModelFile, ErrorsSayWhereAndWhat) {
  const auto error = [](const std::string& text, const std::string& architecture = "") {
    const absl::Status status = ReadModel(text, {architecture}).status();
    EXPECT_FALSE(status.ok()) << text;
    EXPECT_EQ(std::count(status.message().begin(), status.message().end(), '\n'), 0);
    return std::string(status.message());
  };
  EXPECT_THAT(error("{\"model_type\": \"bert\",\n  \"vocab_size\" 3}"), HasSubstr("2:16"));
  EXPECT_THAT(error(""), HasSubstr("1:1"));
  EXPECT_THAT(error("[]"), HasSubstr("not an object"));
  EXPECT_THAT(error("{}"), AllOf(HasSubstr("model_type"), HasSubstr("gpt_neo"), HasSubstr("tabformer")));
  EXPECT_THAT(error(R"({"model_type": "mamba"})"), AllOf(HasSubstr("'mamba'"), HasSubstr("llama")));
  EXPECT_THAT(error(R"({"model_type": "bert", "vocab_size": -3})"), AllOf(HasSubstr("vocab_size"), HasSubstr("-3")));
  EXPECT_THAT(error(R"({"model_type": "bert", "vocab_size": "many"})"), HasSubstr("vocab_size"));
  EXPECT_THAT(error(R"({"model_type": "bert", "hidden_size": 100})"), HasSubstr("not a multiple"));
  EXPECT_THAT(error(R"({"model_type": "gpt2", "n_layer": 2000000})"), HasSubstr("n_layer"));
  EXPECT_THAT(error(R"({"model_type": "bert", "vocab_size": 2147483647, "hidden_size": 12000000})"),
              HasSubstr("10^15"));
  EXPECT_THAT(error(R"({"model_type": "bert"})", "BertForPoetry"),
              AllOf(HasSubstr("'BertForPoetry'"), HasSubstr("BertForMaskedLM")));
  EXPECT_THAT(error(R"({"model_type": "tabformer"})"), HasSubstr("columns"));
  EXPECT_THAT(error(R"({"model_type": "tabformer", "columns": [{"name": "a"}]})"), HasSubstr("columns[0].categories"));
  EXPECT_THAT(error(R"({"model_type": "parameters", "parameters": [{"name": "a", "shape": [1, -2]}]})"),
              HasSubstr("parameters[0].shape"));
  EXPECT_FALSE(ModelOfCount(0).ok());
  EXPECT_EQ(ModelOfCount(7)->count(), 7);
}

TEST(ModelFile, NumbersBeyondADoubleAreOneLine) {
  for (const std::string& number : {std::string("1e999"), std::string("-1e400"), std::string(311, '7')}) {
    for (const std::string& text :
         {absl::StrCat("[", number, "]"), absl::StrCat(R"({"model_type": "gpt2", "n_embd": )", number, "}")}) {
      const absl::Status status = ReadModel(text, {}).status();
      EXPECT_EQ(status.message(), "a number in this JSON is beyond those of double precision") << text;
    }
  }
  for (const char* number : {"1e300", "-1e300", "18446744073709551615", "9223372036854775808", "1e-300"}) {
    const absl::Status status =
        ReadModel(std::string(R"({"model_type": "gpt2", "n_embd": )") + number + "}", {}).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("n_embd")) << number;
  }
}

TEST(ModelFile, DamagedFilesGiveAModelOrOneLine) {
  for (const char* name : {"bert-base-uncased", "gpt2", "gemma-2b", "t5-small", "tabformer-small"}) {
    const std::string good = ModelText(name);
    for (std::size_t i = 0; i < good.size(); ++i) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 7)));
      for (const std::string& text : {bad, good.substr(0, i)}) {
        const absl::StatusOr<Model> model = ReadModel(text, {});
        if (model.ok()) {
          EXPECT_GT(model->count(), 0);
        } else {
          EXPECT_EQ(std::count(model.status().message().begin(), model.status().message().end(), '\n'), 0);
        }
      }
    }
  }
  const std::string deep(100'000, '[');
  const std::string closed = deep + std::string(deep.size(), ']');
  EXPECT_THAT(
      std::string(ReadModel("{\"model_type\": \"bert\", \"vocab_size\": " + closed + "}", {}).status().message()),
      HasSubstr("over 64 levels"));
  EXPECT_THAT(std::string(ReadModel(R"({"model_type": "bert", "vocab_size": [[1]]})", {}).status().message()),
              HasSubstr("\"vocab_size\": an array"));
}

// Bytes a parameter of the cases that people measure: 4 + 8 + 4, with a half copy 6 + 8 + 4.
TEST(ModelStatesTest, BytesAParameter) {
  const Model model = *ModelOfCount(1'000'000);
  const auto bytes = [&](Precision precision, const char* optimizer) {
    return static_cast<double>(TrainingStates(model, precision, optimizer).total()) / 1e6;
  };
  EXPECT_DOUBLE_EQ(bytes(Precision::kFloat32, "adamw"), 16);
  EXPECT_DOUBLE_EQ(bytes(Precision::kFloat16Mixed, "adamw"), 18);
  EXPECT_DOUBLE_EQ(bytes(Precision::kFloat32, "sgd-momentum"), 12);
  EXPECT_DOUBLE_EQ(bytes(Precision::kFloat32, "sgd"), 8);
  EXPECT_NEAR(bytes(Precision::kFloat32, "adamw-8bit"), 10, 0.01);
  EXPECT_DOUBLE_EQ(static_cast<double>(InferenceStates(model, Precision::kFloat16Mixed).total()) / 1e6, 6);
  EXPECT_THAT(std::string(CheckOptimizer("adam").message()), HasSubstr("adamw-8bit"));
}

// Factored: 3.1 MiB for BERT-large, as a run of it holds.
TEST(ModelStatesTest, AdafactorKeepsRowsAndColumns) {
  const Model model = ModelOf("bert-large-uncased", "BertForSequenceClassification");
  const double mib =
      static_cast<double>(TrainingStates(model, Precision::kFloat32, "adafactor").optimizer_bytes) / kMiB;
  EXPECT_NEAR(mib, 3.1, 0.05);
}

TEST(ModelStatesTest, RuleOfThumb) {
  EXPECT_EQ(RuleOfThumb(*ModelOfCount(1000), 8, 512), 16'000 + 4 * 8 * 512 + 2 * kGiB);
}

}  // namespace
}  // namespace ashlar::estimate
