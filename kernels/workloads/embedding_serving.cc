// An embedding table under load: ragged batches of lookups on several streams, each answer held for a while.
#include <deque>

#include "kernels/autograd/index.h"
#include "kernels/nn/layers.h"
#include "kernels/workloads/batches.h"
#include "kernels/workloads/workload.h"

namespace ashlar::kernels {
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

}  // namespace ashlar::kernels
