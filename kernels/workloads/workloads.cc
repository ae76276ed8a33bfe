// Decoding with a growing key-value cache: requests of ragged lengths come and go, and each token's keys and values are
// joined to the cache by a copy, as `torch.cat` does: a new tensor a little larger than the one that is then freed.

#include <cmath>
#include <deque>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/autograd/index.h"
#include "kernels/autograd/reduce.h"
#include "kernels/autograd/views.h"
#include "kernels/nn/layers.h"
#include "kernels/nn/parameters.h"
#include "kernels/workloads/batches.h"
#include "kernels/workloads/workload.h"

namespace ashlar::kernels {
namespace {

constexpr FlagSpec kAttentionInferenceFlags[] = {
    {"layers", "8", "each with a cache of its own"},
    {"heads", "8", "of attention"},
    {"depth", "64", "of a head, at most 256"},
    {"requests", "32", "to serve"},
    {"slots", "4", "requests served at a time"},
    {"prompts", "skewed:32-512", "tokens of a prompt: 512, uniform:16-512 or skewed:16-512"},
    {"answers", "skewed:16-256", "tokens generated, likewise"},
};

struct AttentionShape {
  std::int64_t layers, heads, depth;
};

struct ServedSequence {
  std::vector<Tensor> keys, values;  // a layer: (1, H, S, D)
  std::int64_t left = 0;             // tokens to generate
};

class AttentionDecoder {
 public:
  AttentionDecoder(Context& context, const AttentionShape& shape) : context_(context), shape_(shape) {}

  ServedSequence Begin(std::int64_t prompt, std::int64_t answer) {
    ServedSequence sequence;
    sequence.left = answer;
    for (std::int64_t layer = 0; layer < shape_.layers; ++layer) {
      sequence.keys.push_back(Projected(prompt));
      sequence.values.push_back(Projected(prompt));
      const Tensor query = Projected(prompt);
      const Tensor out = Attend(query, sequence.keys.back(), sequence.values.back());
    }
    return sequence;
  }

  void Token(ServedSequence& sequence) {
    for (std::size_t layer = 0; layer < sequence.keys.size(); ++layer) {
      const Tensor query = Projected(1);
      sequence.keys[layer] = Joined(sequence.keys[layer], Projected(1));
      sequence.values[layer] = Joined(sequence.values[layer], Projected(1));
      const Tensor out = Attend(query, sequence.keys[layer], sequence.values[layer]);
    }
    --sequence.left;
  }

 private:
  // What a projection of the hidden state gives, made up.
  Tensor Projected(std::int64_t length) {
    Tensor out = Empty(context_, {1, shape_.heads, length, shape_.depth}, DType::kFloat32);
    FillNormal(out, 0, 1);
    return out;
  }

  static Tensor Joined(const Tensor& cache, const Tensor& token) {
    const Tensor parts[] = {cache, token};
    return Cat(parts, 2);
  }

  // Tiled: the scores are never stored.
  Tensor Attend(const Tensor& query, const Tensor& key, const Tensor& value) {
    Tensor out = EmptyLike(query);
    const Tensor log_sum_exp = Empty(context_, {1, shape_.heads, query.size(2)}, DType::kFloat32);
    if (context_.computes()) {
      ops::AttentionInputs inputs{query.view(), key.view(), value.view()};
      inputs.scale = 1 / std::sqrt(static_cast<double>(shape_.depth));
      inputs.is_causal = true;
      context_.Do(ops::TiledAttention{inputs, out.view(), log_sum_exp.view()});
    }
    return out;
  }

  Context& context_;
  AttentionShape shape_;
};

absl::Status RunAttentionInference(Runtime& runtime, Flags& flags, const OnProgress& on_progress) {
  Context& context = runtime.context();
  const AttentionShape shape{flags.Int("layers", 1, 1000), flags.Int("heads", 1, 1024), flags.Int("depth", 1, 256)};
  const std::int64_t requests = flags.Int("requests", 0, 1'000'000'000);
  const auto slots = static_cast<std::size_t>(flags.Int("slots", 1, 1 << 20));
  const std::uint64_t seed = context.random().seed;
  absl::StatusOr<LengthSource> prompts = LengthSource::Parse(flags.Text("prompts"), seed);
  absl::StatusOr<LengthSource> answers = LengthSource::Parse(flags.Text("answers"), seed + 1);
  if (!prompts.ok()) return prompts.status();
  if (!answers.ok()) return answers.status();
  if (!flags.status().ok()) return flags.status();

  const NoGrad no_grad(context);
  context.memory().set_phase("decoding");
  AttentionDecoder decoder(context, shape);
  std::vector<ServedSequence> served;
  std::int64_t begun = 0, done = 0;
  while (done < requests && context.memory().ok()) {
    while (served.size() < slots && begun < requests) {
      const std::int64_t prompt = prompts->Next();
      served.push_back(decoder.Begin(prompt, answers->Next()));
      ++begun;
    }
    for (std::size_t i = 0; i < served.size() && context.memory().ok();) {
      decoder.Token(served[i]);
      if (served[i].left > 0) {
        ++i;
        continue;
      }
      served.erase(served.begin() + static_cast<std::ptrdiff_t>(i));
      on_progress({++done, requests});
    }
  }
  return context.memory().status();
}

}  // namespace

const Workload kAttentionInference = {"attention_inference",
                                      "decodes ragged requests, each with a growing key-value cache",
                                      kAttentionInferenceFlags, RunAttentionInference};

// An embedding table under load: ragged batches of lookups on several streams, each answer held for a while.

namespace {

constexpr FlagSpec kEmbeddingServingFlags[] = {
    {"rows", "100000", "of the table"},
    {"width", "128", "of a row"},
    {"requests", "2000", "lookups"},
    {"lengths", "skewed:64-16384", "rows of a lookup: 512, uniform:16-512 or skewed:16-512"},
    {"streams", "4", "streams that serve in turn"},
    {"in-flight", "16", "answers held at a time"},
};

absl::Status RunEmbeddingServing(Runtime& runtime, Flags& flags, const OnProgress& on_progress) {
  Context& context = runtime.context();
  const std::int64_t rows = flags.Int("rows", 1, 1 << 30), width = flags.Int("width", 1, 1 << 20);
  const std::int64_t requests = flags.Int("requests", 0, 1'000'000'000), streams = flags.Int("streams", 1, 1024);
  const auto in_flight = static_cast<std::size_t>(flags.Int("in-flight", 1, 1 << 20));
  absl::StatusOr<LengthSource> lengths = LengthSource::Parse(flags.Text("lengths"), context.random().seed);
  if (!lengths.ok()) return lengths.status();
  if (!flags.status().ok()) return flags.status();

  const NoGrad no_grad(context);
  context.memory().set_phase("table");
  Parameters parameters(context);
  const EmbeddingLayer table(parameters, "table", rows, width, 1);
  Rng rng(context.random().seed);
  std::deque<Tensor> answers;
  for (std::int64_t stream = 1; stream < streams; ++stream) {
    runtime.MakeStreamWait(runtime.StreamOf(static_cast<std::uint64_t>(stream)), runtime.StreamOf(0));
  }
  context.memory().set_phase("lookups");
  for (std::int64_t request = 0; request < requests && context.memory().ok(); ++request) {
    context.memory().set_stream(runtime.StreamOf(static_cast<std::uint64_t>(request % streams)));
    if (answers.size() == in_flight) answers.pop_front();
    const Tensor ids = TokenIds(context, {lengths->Next()}, rows, rng);
    answers.push_back(table(ids));
    on_progress({request + 1, requests});
  }
  while (!answers.empty()) answers.pop_front();
  context.memory().set_stream(runtime.StreamOf(0));
  return context.memory().status();
}

}  // namespace

const Workload kEmbeddingServing = {"embedding_serving", "looks ragged batches up in a table, on several streams",
                                    kEmbeddingServingFlags, RunEmbeddingServing};

// Two streams: one makes batches and hands them to the other, which is still reading them when they are freed. Each is
// marked by record_stream, so its memory waits for the reader's work.

namespace {

constexpr FlagSpec kStreamFanoutFlags[] = {
    {"steps", "500", "batches"},
    {"width", "1024", "of a row"},
    {"lengths", "skewed:64-4096", "rows of a batch: 512, uniform:16-512 or skewed:16-512"},
};

absl::Status RunStreamFanout(Runtime& runtime, Flags& flags, const OnProgress& on_progress) {
  Context& context = runtime.context();
  TensorMemory& memory = context.memory();
  const std::int64_t steps = flags.Int("steps", 0, 1'000'000'000), width = flags.Int("width", 1, 1 << 20);
  absl::StatusOr<LengthSource> lengths = LengthSource::Parse(flags.Text("lengths"), context.random().seed);
  if (!lengths.ok()) return lengths.status();
  if (!flags.status().ok()) return flags.status();

  const NoGrad no_grad(context);
  const Stream maker = runtime.StreamOf(0), reader = runtime.StreamOf(1);
  memory.set_phase("fan-out");
  for (std::int64_t step = 0; step < steps && memory.ok(); ++step) {
    memory.set_stream(maker);
    const Tensor batch = Empty(context, {lengths->Next(), width}, DType::kFloat32);
    FillNormal(batch, 1, 0);
    memory.set_stream(reader);
    runtime.MakeStreamWait(reader, maker);
    const Tensor sum = Sum(batch, 0, /*keeps_dim=*/false);
    if (batch.storage().block() != nullptr) runtime.allocator().RecordStream(batch.storage().block(), reader);
    on_progress({step + 1, steps});
  }
  memory.set_stream(maker);
  return memory.status();
}

}  // namespace

const Workload kStreamFanout = {"stream_fanout", "two streams share batches, with record_stream", kStreamFanoutFlags,
                                RunStreamFanout};

}  // namespace ashlar::kernels
