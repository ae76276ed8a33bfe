// The context that a run carries along: the memory, the version to behave as, how to compute, and the modes that Python
// keeps per thread (gradients, autocast).
//
//   Context context(&allocator, Stream{0}, *FrameworkOf("2.6"), *GpuNamed("A100"));
//   const NoGrad no_grad(context);
//
// One thread.
#ifndef ASHLAR_KERNELS_TENSOR_CONTEXT_H_
#define ASHLAR_KERNELS_TENSOR_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_set.h"
#include "absl/strings/string_view.h"
#include "kernels/ops/ops.h"
#include "kernels/tensor/framework.h"
#include "kernels/tensor/memory.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

class Context {
 public:
  Context(core::CachingAllocator* allocator, Stream stream, Framework framework, GpuKind gpu)
      : memory_(allocator, stream), framework_(framework), gpu_(gpu) {}

  TensorMemory& memory() { return memory_; }
  const Framework& framework() const { return framework_; }
  const GpuKind& gpu() const { return gpu_; }

  // Without one, nothing is computed: a dry run.
  void set_ops(ops::Ops* ops) { ops_ = ops; }
  bool computes() const { return ops_ != nullptr && memory_.ok(); }
  template <typename Op>
  void Do(const Op& op) {
    if (absl::Status status = ops_->Run(op); !status.ok()) memory_.Fail(std::move(status));
  }

  // Bytes between host and device memory, in the order of the stream; a plain copy where none is set.
  using CopyFunction = std::function<absl::Status(void* to, const void* from, std::size_t bytes)>;
  void set_copy(CopyFunction copy) { copy_ = std::move(copy); }
  void CopyBytes(void* to, const void* from, std::size_t bytes);

  // Creation numbers of the graph's nodes: backward runs the youngest first.
  std::uint64_t NextSequence() { return sequence_++; }
  // Passes of the backward engine, of which one may run inside another (a recomputed segment).
  std::uint64_t NextPass() { return ++pass_; }
  // Random numbers for `elements` elements: a key that no other draw shares.
  ops::RandomKey Draw(std::int64_t elements);
  void Seed(std::uint64_t seed) { random_ = {seed, 0}; }
  const ops::RandomKey& random() const { return random_; }
  void set_random(ops::RandomKey random) { random_ = random; }

  // The name for as long as the context lives.
  absl::string_view Named(absl::string_view name) { return *names_.emplace(name).first; }

  bool grad_enabled() const { return grad_enabled_; }
  bool in_inference_mode() const { return in_inference_mode_; }
  bool autocasts() const { return autocasts_; }
  DType autocast_dtype() const { return autocast_dtype_; }

  // The library workspace of the current thread and stream, made at its first product and kept for good.
  void NeedProductWorkspace();
  // That of a cublasLt call, before the product's own: made for the call, kept for good, or none beside the product's.
  void NeedLtWorkspace();

 private:
  friend class GradMode;
  friend class InferenceMode;
  friend class Autocast;
  friend class BackwardThread;
  friend class InOperation;
  friend class InNode;
  friend class InRecomputation;
  friend Tensor AutocastTo(const Tensor& tensor, DType dtype);
  struct Workspace {
    bool is_backward_thread;
    Stream stream;
    Tensor bytes;
  };
  void KeepWorkspace(std::vector<Workspace>& kept, std::uint64_t size_bytes);

  TensorMemory memory_;
  Framework framework_;
  GpuKind gpu_;
  ops::Ops* ops_ = nullptr;
  CopyFunction copy_;
  std::uint64_t sequence_ = 0;
  std::uint64_t pass_ = 0;
  ops::RandomKey random_;
  bool grad_enabled_ = true;
  bool in_inference_mode_ = false;
  bool is_backward_thread_ = false;
  bool autocasts_ = false;
  DType autocast_dtype_ = DType::kFloat32;
  absl::flat_hash_map<const TensorBody*, std::size_t> cast_index_;  // leaf -> its copy in the autocast dtype
  std::vector<Tensor> cast_copies_;                                 // in the order they were made, and end
  std::vector<Workspace> workspaces_, lt_workspaces_;
  absl::node_hash_set<std::string> names_;
  bool is_in_node_ = false;  // a node of the graph runs: operations are its own
};

// Sets whether operations are recorded, for a scope.
class GradMode {
 public:
  GradMode(Context& context, bool enabled) : context_(context), before_(context.grad_enabled_) {
    context.grad_enabled_ = enabled;
  }
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;
  ~GradMode() { context_.grad_enabled_ = before_; }

 private:
  Context& context_;
  bool before_;
};

class NoGrad : public GradMode {
 public:
  explicit NoGrad(Context& context) : GradMode(context, false) {}
};

// torch.inference_mode, for a scope: no graph, and no copies of weights that autocast would keep, from 2.7 or so on.
class InferenceMode {
 public:
  explicit InferenceMode(Context& context, bool enabled = true)
      : context_(context), no_grad_(context, context.grad_enabled_ && !enabled), before_(context.in_inference_mode_) {
    context.in_inference_mode_ = before_ || enabled;
  }
  InferenceMode(const InferenceMode&) = delete;
  InferenceMode& operator=(const InferenceMode&) = delete;
  ~InferenceMode() { context_.in_inference_mode_ = before_; }

 private:
  Context& context_;
  GradMode no_grad_;
  bool before_;
};

// Products in `dtype` for a scope; the outermost one's end empties the cache of cast weights.
class Autocast {
 public:
  Autocast(Context& context, bool enabled, DType dtype);
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
  ~Autocast();

 private:
  Context& context_;
  bool before_;
  DType dtype_before_;
};

// PyTorch runs backward on a thread of its own, with library handles of its own.
class BackwardThread {
 public:
  explicit BackwardThread(Context& context) : context_(context), before_(context.is_backward_thread_) {
    context.is_backward_thread_ = true;
  }
  BackwardThread(const BackwardThread&) = delete;
  BackwardThread& operator=(const BackwardThread&) = delete;
  ~BackwardThread() { context_.is_backward_thread_ = before_; }

 private:
  Context& context_;
  bool before_;
};

// A module's forward pass, for a scope: the memory's place has its name, and so it has when backward runs what was
// recorded here. A name from Context::Named; an empty one leaves the outer module's.
class InModule {
 public:
  InModule(Context& context, absl::string_view name) : memory_(context.memory()), before_(memory_.module()) {
    if (!name.empty()) memory_.set_module(name);
  }
  InModule(const InModule&) = delete;
  InModule& operator=(const InModule&) = delete;
  ~InModule() { memory_.set_module(before_); }

 private:
  TensorMemory& memory_;
  absl::string_view before_;
};

// An operation of the forward pass, for a scope, by PyTorch's name for it; in backward the node's name stands.
class InOperation {
 public:
  InOperation(Context& context, absl::string_view name) : memory_(context.memory()), before_(memory_.operation()) {
    if (!context.is_in_node_) memory_.set_operation(name);
  }
  InOperation(const InOperation&) = delete;
  InOperation& operator=(const InOperation&) = delete;
  ~InOperation() { memory_.set_operation(before_); }

 private:
  TensorMemory& memory_;
  absl::string_view before_;
};

// A node of the graph at work, for a scope.
class InNode {
 public:
  InNode(Context& context, absl::string_view module, absl::string_view name)
      : context_(context),
        module_before_(context.memory().module()),
        operation_before_(context.memory().operation()),
        before_(context.is_in_node_) {
    context.memory().set_module(module);
    context.memory().set_operation(name);
    context.is_in_node_ = true;
  }
  InNode(const InNode&) = delete;
  InNode& operator=(const InNode&) = delete;
  ~InNode() {
    context_.memory().set_module(module_before_);
    context_.memory().set_operation(operation_before_);
    context_.is_in_node_ = before_;
  }

 private:
  Context& context_;
  absl::string_view module_before_, operation_before_;
  bool before_;
};

// Forward operations inside of a node, for a scope: a segment that is computed again.
class InRecomputation {
 public:
  explicit InRecomputation(Context& context) : context_(context), before_(context.is_in_node_) {
    context.is_in_node_ = false;
  }
  InRecomputation(const InRecomputation&) = delete;
  InRecomputation& operator=(const InRecomputation&) = delete;
  ~InRecomputation() { context_.is_in_node_ = before_; }

 private:
  Context& context_;
  bool before_;
};

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_TENSOR_CONTEXT_H_
