// What single switches between versions of PyTorch and transformers change, computed by hand from their sources: of
// each the same operation with the switch on and off. Those of whole layers and of optimizers are in
// closed_forms_test.cc and optimizer_memory_test.cc.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "estimator/models/decoder.h"
#include "estimator/models/decoder_head.h"
#include "estimator/models/gpt.h"
#include "kernels/autograd/engine.h"
#include "kernels/autograd/matmul.h"
#include "kernels/autograd/normalize.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/reduce.h"
#include "kernels/autograd/scaled_attention.h"
#include "kernels/autograd/views.h"
#include "kernels/optim/optimizer.h"
#include "kernels/workloads/runtime.h"
#include "tests/kernels/step_recorder.h"
#include "tests/kernels/switch_lab.h"

namespace ashlar::kernels {
namespace {

// Inputs that nobody else holds: of a product with 1, which is gone but for what the graph saved.
TEST(Switches, SoftmaxSavesItsInputToo) {
  constexpr std::uint64_t kBytes = 100 * 30 * 4;
  for (const bool is_log : {false, true}) {
    const auto kept = [&](bool saves) {
      Lab lab(&Framework::softmax_saves_input, saves);
      const Tensor x = lab.Leaf({100, 30});
      return lab.KeptBy([&] { return is_log ? LogSoftmax(MulScalar(x, 1)) : Softmax(MulScalar(x, 1)); });
    };
    EXPECT_EQ(kept(true), 2 * kBytes);
    EXPECT_EQ(kept(false), kBytes);
  }
}

// (100, 30) floats beside the means of the rows, or the one of all.
TEST(Switches, MeansSaveTheirInputFrom113To21) {
  constexpr std::uint64_t kBytes = 100 * 30 * 4;
  const auto kept = [](bool Framework::*field, bool saves) {
    Lab lab(field, saves);
    const Tensor x = lab.Leaf({100, 30});
    const bool is_of_dims = field == &Framework::mean_of_dims_saves_input;
    return lab.KeptBy([&] { return is_of_dims ? Mean(MulScalar(x, 1), -1, true) : MeanOfAll(MulScalar(x, 1)); });
  };
  EXPECT_EQ(kept(&Framework::mean_of_dims_saves_input, true), kBytes + 400);
  EXPECT_EQ(kept(&Framework::mean_of_dims_saves_input, false), 400u);
  EXPECT_EQ(kept(&Framework::mean_saves_input, true), kBytes + 4);
  EXPECT_EQ(kept(&Framework::mean_saves_input, false), 4u);
  for (const auto& [torch, of_dims, of_all] : {std::tuple("1.12", false, false), std::tuple("1.13", true, false),
                                               std::tuple("2.1", true, true), std::tuple("2.2", false, false)}) {
    EXPECT_EQ(FrameworkOf(torch)->mean_of_dims_saves_input, of_dims) << torch;
    EXPECT_EQ(FrameworkOf(torch)->mean_saves_input, of_all) << torch;
  }
}

// x[:, 0] of (10, 6, 5) floats: zeros of x for the select, and where the colon is a slice another one for it.
TEST(Switches, AColonIsASliceWithAGradientOfItsOwn) {
  const auto requests = [](bool is_operation) {
    Lab lab(&Framework::full_slices_are_operations, is_operation);
    const Tensor x = lab.Leaf({10, 6, 5});
    const Tensor out = Select(Whole(x, 0), 1, 0);
    Tensor grad = EmptyLike(out);
    return lab.RequestsOf([&] { Backward(out, std::move(grad)); });
  };
  EXPECT_EQ(requests(true), (VersionSwitchesRequests{1200, -200, 1200, -1200}));
  EXPECT_EQ(requests(false), (VersionSwitchesRequests{1200, -200}));
}

// The product of softmax's backward is freed either way: first or last of two tensors of one size.
TEST(Switches, SoftmaxBackwardMakesItsProductFirst) {
  const auto events = [](bool is_first) {
    Lab lab(&Framework::softmax_backward_product_first, is_first);
    const Tensor out = Softmax(lab.Leaf({100, 30}));
    Tensor grad = EmptyLike(out);
    StepEvents all;
    lab.runtime->allocator().SetSink(&all);
    Backward(out, std::move(grad));
    lab.runtime->allocator().SetSink(nullptr);
    return std::vector<StepEvent>(all.list().begin(), all.list().begin() + 3);
  };
  EXPECT_EQ(events(true), (std::vector<StepEvent>{{false, 12'000, 0}, {false, 12'000, 1}, {true, 12'000, 0}}));
  EXPECT_EQ(events(false), (std::vector<StepEvent>{{false, 12'000, 0}, {false, 12'000, 1}, {true, 12'000, 1}}));
}

// "adamw" and "sgd" leave the form to the version: lists of all parameters, or a parameter's turn after the other.
TEST(Switches, OptimizersTakeListsOfAllOrATurnEach) {
  constexpr std::uint64_t kLarge = 300 * 200 * 4, kSmall = 70 * 10 * 4;
  const auto peak = [](bool is_foreach, const char* optimizer, OptimizerOptions options) {
    Lab lab(&Framework::optimizers_are_foreach, is_foreach);
    Parameters parameters(lab.context());
    for (const Dims& sizes : {Dims{300, 200}, Dims{70, 10}}) {
      Tensor parameter = parameters.New("p", sizes, Init::Zero());
      parameter.set_grad(Empty(lab.context(), sizes, DType::kFloat32, Part::kGradients));
    }
    const std::unique_ptr<Optimizer> made = *MakeOptimizer(optimizer, parameters, options);
    made->Step();
    return lab.PeakOf([&] { made->Step(); });
  };
  EXPECT_EQ(peak(true, "adamw", {}), kLarge + kSmall);  // a list of roots
  EXPECT_EQ(peak(false, "adamw", {}), 2 * kLarge);      // root and quotient
  EXPECT_EQ(peak(true, "sgd", {.weight_decay = 0.1}), kLarge + kSmall);
  EXPECT_EQ(peak(false, "sgd", {.weight_decay = 0.1}), kLarge);
}

// Scaled query and key, value, weights, and the result in its own dtype. No kernel before Ampere takes
// bfloat16.
TEST(Switches, ComposedAttentionOfHalfIsDoneInFloat) {
  constexpr std::uint64_t kElements = 2 * 3 * 40 * 6, kScores = 2 * 3 * 40 * 40;
  const auto kept = [](bool in_float) {
    Lab lab(&Framework::math_attention_in_float, in_float, "V100");
    const Dims sizes = {2, 3, 40, 6};
    const Tensor q = lab.Leaf(sizes, DType::kBFloat16), k = lab.Leaf(sizes, DType::kBFloat16),
                 v = lab.Leaf(sizes, DType::kBFloat16);
    return lab.KeptBy([&] { return ScaledDotProductAttention(q, k, v, {}, {}); });
  };
  EXPECT_EQ(kept(true), 4 * (3 * kElements + kScores) + 2 * kElements);
  EXPECT_EQ(kept(false), 2 * (2 * kElements + kScores) + 2 * kElements);
}

// The scores, their softmax; a safe one looks for rows of -inf in the scores and keeps a second result, those zeroed.
TEST(Switches, TheSafeSoftmaxHasASecondResult) {
  constexpr std::uint64_t kElements = 2 * 3 * 40 * 6, kRows = 2 * 3 * 40, kScores = kRows * 40;
  const auto peak = [](bool is_safe) {
    Lab lab(&Framework::math_attention_softmax_is_safe, is_safe);
    const Dims sizes = {2, 3, 40, 6};
    const Tensor q = lab.Leaf(sizes), k = lab.Leaf(sizes), v = lab.Leaf(sizes);
    Tensor out;
    return lab.PeakOf([&] { out = ScaledDotProductAttention(q, k, v, {}, {}); });
  };
  EXPECT_EQ(peak(false), 2 * 4 * kElements + 2 * 4 * kScores);
  EXPECT_EQ(peak(true), 2 * 4 * kElements + 3 * 4 * kScores + kScores + kRows + 2 * 4);
}

TEST(Switches, ABoolMaskBecomesABiasByOneWhere) {
  constexpr std::int64_t kMask = 2 * 40 * 40;
  const auto requests = [](bool by_where) {
    Lab lab(&Framework::attention_masks_by_where, by_where);
    const Dims sizes = {2, 3, 40, 8};
    const Tensor q = lab.Leaf(sizes), k = lab.Leaf(sizes), v = lab.Leaf(sizes);
    const Tensor mask = Empty(lab.context(), {2, 1, 40, 40}, DType::kBool);
    VersionSwitchesRequests all = lab.RequestsOf([&] { (void)ScaledDotProductAttention(q, k, v, mask, {}); });
    all.resize(5);
    return all;
  };
  EXPECT_EQ(requests(true), (VersionSwitchesRequests{4, 4, 4 * kMask, -4, -4}));  // two scalars
  VersionSwitchesRequests before = requests(false);
  before.resize(3);
  EXPECT_EQ(before, (VersionSwitchesRequests{4 * kMask, kMask, -kMask}));  // the mask inverted
}

// A language model's head over half hidden states, and its peak at the loss.
constexpr std::int64_t kSequences = 3, kLength = 20, kVersionSwitchesWidth = 16, kVocabulary = 500;
constexpr std::uint64_t kAll = kSequences * kLength * kVocabulary, kShifted = kSequences * (kLength - 1) * kVocabulary;
constexpr std::uint64_t kLabels = kSequences * kLength * 8, kShiftedLabels = kSequences * (kLength - 1) * 8;
constexpr std::uint64_t kPaddedLabels = kSequences * (kLength + 1) * 8;

std::uint64_t PeakOfHead(const Transformers& versions, OwnLoss own, bool has_loss) {
  Lab lab(&Framework::has_cublas_workspace, false);
  Parameters parameters(lab.context(), {.dtype = DType::kFloat16});
  const DecoderTop top(
      parameters,
      {.vocabulary = kVocabulary, .width = kVersionSwitchesWidth, .own_loss = own, .transformers = versions}, {});
  const DecoderOutput output{lab.Leaf({kSequences, kLength, kVersionSwitchesWidth}, DType::kFloat16), {}};
  const Tensor labels = Empty(lab.context(), {kSequences, kLength}, DType::kInt64, Part::kBatch);
  Tensor loss;
  std::vector<Tensor> returned;
  return lab.PeakOf([&] {
    if (has_loss) {
      loss = top.Loss(output, labels, {});
    } else {
      top.Forward(output, {.outputs = &returned});
    }
  });
}

TEST(Switches, LogitsAreCastAlwaysForTheLossOrNever) {
  Transformers versions{.casts_logits_always = true, .loss_is_function = false};
  EXPECT_EQ(PeakOfHead(versions, OwnLoss::kFloat, false), 2 * kAll + 4 * kAll);
  versions.casts_logits_always = false;
  EXPECT_EQ(PeakOfHead(versions, OwnLoss::kFloat, false), 2 * kAll);
}

// Half logits, floats, a copy without the last token, the log-probabilities, and the copied labels.
TEST(Switches, TheLossCastsAndCopiesLogits) {
  Transformers versions{.loss_is_function = true, .loss_copies_logits = true};
  EXPECT_EQ(PeakOfHead(versions, OwnLoss::kAsTheyAre, true), 2 * kAll + 4 * kAll + 8 * kShifted + kShiftedLabels + 8);
  versions.loss_copies_logits = false;  // labels of all tokens instead
  EXPECT_EQ(PeakOfHead(versions, OwnLoss::kAsTheyAre, true), 2 * kAll + 8 * kAll + kPaddedLabels + kLabels + 8);
  versions = {.loss_is_function = false, .loss_copies_logits = true};
  EXPECT_EQ(PeakOfHead(versions, OwnLoss::kAsTheyAre, true), 2 * kAll + 4 * kShifted + kShiftedLabels + 8);
}

// What a layer of llama keeps, heads not shared, attention fused in half.
std::uint64_t KeptByADecoderLayer(const Transformers& versions, DecoderFamily family) {
  const auto kept = [&](std::int64_t layers) {
    Lab lab(&Framework::has_cublas_workspace, false);
    Parameters parameters(lab.context(), {.dtype = DType::kFloat16});
    DecoderConfig config;
    config.family = family;
    config.vocab_size = 50;
    config.hidden_size = 32;
    config.intermediate_size = 48;
    config.num_hidden_layers = layers;
    config.num_attention_heads = config.num_key_value_heads = 4;
    config.head_dim = 8;
    const DecoderModel model(parameters, config, {.attention = Attention::kSdpa, .transformers = versions});
    const Tensor ids = Empty(lab.context(), {kSequences, kLength}, DType::kInt64, Part::kBatch);
    return lab.KeptBy([&] { return model.Loss(ids, ids); });
  };
  return kept(3) - kept(2);
}

// Cosines and sines of a head's 8 elements for each position, in half: kept by the products with query and key.
TEST(Switches, LayersRotateForThemselves) {
  constexpr std::uint64_t kTables = 2 * kLength * 8 * 2;
  const Transformers once{.llama_rotates_once = true, .all_rotate_once = true};
  Transformers each = once;
  each.llama_rotates_once = false;
  EXPECT_EQ(KeptByADecoderLayer(each, DecoderFamily::kLlama),
            KeptByADecoderLayer(once, DecoderFamily::kLlama) + kTables);
  EXPECT_EQ(KeptByADecoderLayer(each, DecoderFamily::kQwen2), KeptByADecoderLayer(once, DecoderFamily::kQwen2));
  each = once;
  each.all_rotate_once = false;
  EXPECT_EQ(KeptByADecoderLayer(each, DecoderFamily::kQwen2),
            KeptByADecoderLayer(once, DecoderFamily::kQwen2) + kTables);
}

// Query, key and value are kept as they were projected and rotated, or as contiguous copies: three either way. But the
// kernel's output is laid out as the query is, so that by head its rows are copied once more for the projection.
TEST(Switches, AttentionAsAFunctionCopiesItsOperands) {
  constexpr std::uint64_t kHidden = kSequences * kLength * 32 * 2;
  const Transformers function{.attention_is_function = true},
      method{.attention_is_function = false, .sdpa_copies_inputs = false};
  EXPECT_EQ(KeptByADecoderLayer(function, DecoderFamily::kLlama),
            KeptByADecoderLayer(method, DecoderFamily::kLlama) + kHidden);
}

// The bias of one column more than there are tokens lives through the forward pass. A layer peaks at its weights'
// dropout either way: the added scores are gone by then.
TEST(Switches, GptNeoAddsACausalMask) {
  const auto peak = [](bool adds) {
    Lab lab(&Framework::has_cublas_workspace, false);
    Parameters parameters(lab.context());
    GptNeoConfig config;
    config.vocab_size = 10;
    config.max_position_embeddings = 64;
    config.hidden_size = 16;
    config.intermediate_size = 16;
    config.num_layers = 1;
    config.num_heads = 4;
    Transformers versions;
    versions.gpt_neo_adds_mask = adds;
    const GptNeo model(parameters, config, {.transformers = versions});
    const Tensor ids = Empty(lab.context(), {kSequences, 64}, DType::kInt64, Part::kBatch);
    Tensor loss;
    return lab.PeakOf([&] { loss = model.Loss(ids, ids); });
  };
  EXPECT_EQ(peak(true), peak(false) + 64 * 65 * 4);
}

}  // namespace
}  // namespace ashlar::kernels
