// A tensor as PyTorch has it: a handle to (storage, sizes, strides, dtype, offset). Views share the storage; it goes
// back to the allocator when its last holder goes: a local, an argument, a saved slot of the graph, a gradient.
//
//   Tensor x = Empty(context, {4, 128, 1024}, DType::kFloat32);
//   Release(scores, mask);          // ends these two, in this order, as Python ends locals
//
// C++ ends locals last to first and temporaries at the end of the full expression; Python ends locals first to last and
// temporaries as soon as they are used. Code that must allocate and free as Python does names its temporaries and
// releases them by hand.
// One thread.
#ifndef ASHLAR_KERNELS_TENSOR_TENSOR_H_
#define ASHLAR_KERNELS_TENSOR_TENSOR_H_

#include <cstdint>
#include <utility>

#include "allocator/core/caching_allocator.h"
#include "kernels/ops/view.h"
#include "kernels/tensor/memory.h"
#include "kernels/tensor/ref.h"
#include "kernels/tensor/shape.h"

namespace ashlar::kernels {

class Context;
class Node;

class Storage final : public Counted {
 public:
  Storage(Context& context, std::uint64_t bytes, Part part);
  ~Storage();

  Context& context() const { return *context_; }
  // nullptr for 0 bytes, or when memory had run out.
  core::Block* block() const { return block_; }
  void* data() const;
  std::uint64_t bytes() const { return bytes_; }
  void set_part(Part part);

 private:
  Context* context_;
  core::Block* block_;
  std::uint64_t bytes_;
  Part part_;
};

struct TensorBody;

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Ref<TensorBody> body) : body_(std::move(body)) {}
  Tensor(const Tensor&);
  Tensor(Tensor&&) noexcept;
  Tensor& operator=(const Tensor&);
  Tensor& operator=(Tensor&&) noexcept;
  ~Tensor();

  bool defined() const { return static_cast<bool>(body_); }
  void reset();

  Context& context() const;
  const Layout& layout() const;
  const Dims& sizes() const { return layout().sizes; }
  const Dims& strides() const { return layout().strides; }
  std::int64_t size(std::int64_t dim) const { return sizes()[DimIndex(dim, sizes().size())]; }
  std::int64_t rank() const { return static_cast<std::int64_t>(sizes().size()); }
  std::int64_t elements() const { return ops::ElementCount(sizes()); }
  DType dtype() const;
  ops::View view() const;  // for an op

  bool requires_grad() const;
  // A parameter or another leaf whose gradient is wanted.
  void set_requires_grad(bool requires_grad);
  // Of a leaf, once backward has put one there.
  Tensor grad() const;
  void set_grad(Tensor grad);

  // How many hold this tensor; views of it do not count.
  std::uint32_t use_count() const;
  TensorBody& body() const { return *body_; }
  const Storage& storage() const;
  // Its bytes are for something else from now on.
  void set_part(Part part) const;

  bool IsSame(const Tensor& other) const { return body_.get() == other.body_.get(); }

 private:
  Ref<TensorBody> body_;
};

struct TensorBody final : public Counted {
  TensorBody(Ref<Storage> storage, Layout layout, DType dtype, std::int64_t offset);
  ~TensorBody();

  Ref<Storage> storage;
  Layout layout;
  DType dtype;
  std::int64_t offset;  // elements before the first
  // Made as a view of another tensor, which PyTorch remembers: its storage counts as shared from then on.
  bool is_view = false;
  bool requires_grad = false;
  std::uint32_t output = 0;  // which output of `made_by` this is
  Ref<Node> made_by;         // null for leaves
  Tensor grad;
  Node* accumulator = nullptr;  // of a leaf in a graph; not held: it holds the leaf
};

Tensor Empty(Context& context, Dims sizes, DType dtype, Part part = Part::kActivations);
Tensor EmptyStrided(Context& context, Layout layout, DType dtype);
// In the same order of dims.
Tensor EmptyLike(const Tensor& like);
Tensor EmptyLike(const Tensor& like, DType dtype);
// Contiguous, whatever the order of `like`.
Tensor EmptyOf(const Tensor& like, Dims sizes);
Tensor Zeros(Context& context, Dims sizes, DType dtype, Part part = Part::kActivations);
Tensor ZerosLike(const Tensor& like);

// The same storage seen otherwise, outside any graph.
Tensor Alias(const Tensor& base, Layout layout, std::int64_t offset);
// The same tensor outside any graph; nobody's view.
Tensor Detach(const Tensor& tensor);

template <typename... Tensors>
void Release(Tensors&... tensors) {
  (tensors.reset(), ...);
}

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_TENSOR_TENSOR_H_
