// A GPU under the defaults of a version with one switch set, for the tests of what single switches change.
//
//   Lab lab(&Framework::softmax_saves_input, true);
//   lab.KeptBy([&] { return Softmax(lab.Leaf({100, 30})); });
//
// Thread rule: one thread.
#ifndef ASHLAR_TESTS_KERNELS_SWITCH_LAB_H_
#define ASHLAR_TESTS_KERNELS_SWITCH_LAB_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/workloads/runtime.h"
#include "tests/kernels/step_recorder.h"

namespace ashlar::kernels {

using VersionSwitchesRequests = std::vector<std::int64_t>;

// A GPU under the defaults with one switch set, and no library's workspace among the bytes.
struct Lab {
  template <typename Value>
  Lab(Value Framework::*field, Value value, const char* gpu = "A100") {
    Framework framework = *FrameworkOf("2.6");
    framework.has_cublas_workspace = false;
    framework.lt_workspace = LtWorkspace::kNone;
    framework.*field = value;
    runtime = *Runtime::Make({.framework = framework, .gpu = *GpuNamed(gpu)});
  }
  Context& context() { return runtime->context(); }
  TensorMemory& memory() { return runtime->context().memory(); }

  Tensor Leaf(const Dims& sizes, DType dtype = DType::kFloat32) {
    Tensor out = Empty(context(), sizes, dtype, Part::kBatch);
    out.set_requires_grad(true);
    return out;
  }
  // Bytes of each allocation of `work`, and minus the bytes of each free.
  template <typename Work>
  VersionSwitchesRequests RequestsOf(const Work& work) {
    StepEvents events;
    runtime->allocator().SetSink(&events);
    work();
    runtime->allocator().SetSink(nullptr);
    VersionSwitchesRequests out;
    for (const StepEvent& event : events.list()) {
      out.push_back(static_cast<std::int64_t>(event.size_bytes) * (event.is_free ? -1 : 1));
    }
    return out;
  }
  // The most that lives during `work` beside what lived before it.
  template <typename Work>
  std::uint64_t PeakOf(const Work& work) {
    memory().ResetPeak();
    const std::uint64_t before = memory().live_bytes();
    work();
    return memory().peak_bytes() - before;
  }
  // What lives after `make` beside what lived before it, its result held.
  template <typename Make>
  std::uint64_t KeptBy(const Make& make) {
    const std::uint64_t before = memory().live_bytes();
    const Tensor held = make();
    return memory().live_bytes() - before;
  }

  std::unique_ptr<Runtime> runtime;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_TESTS_KERNELS_SWITCH_LAB_H_
