// Two streams: one makes batches and hands them to the other, which is still reading them when they are freed. Each is
// marked by record_stream, so its memory waits for the reader's work.
#include "kernels/autograd/reduce.h"
#include "kernels/autograd/views.h"
#include "kernels/nn/fill.h"
#include "kernels/workloads/batches.h"
#include "kernels/workloads/workload.h"

namespace ashlar::kernels {
namespace {

constexpr FlagSpec kStreamFanoutFlags[] = {
    {"steps", "500", "batches"},
    {"width", "1024", "of a row"},
    {"lengths", "skewed:64-4096", "rows of a batch: 512, uniform:16-512 or skewed:16-512"},
};

absl::Status RunStreamFanout(Runtime& runtime, Flags& flags, const OnProgress& on_progress) {
  Context& context = runtime.context();
  Memory& memory = context.memory();
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
