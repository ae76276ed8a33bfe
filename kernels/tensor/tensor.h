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
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "allocator/core/caching_allocator.h"
#include "kernels/ops/view.h"
#include "kernels/tensor/memory.h"
#include "kernels/tensor/shape.h"

namespace ashlar::kernels {

// An intrusive reference count: who holds a tensor, a storage or a node of the graph decides when memory is freed, so
// the count is part of the result and can be asked for.
//
//   class Storage : public Counted {...};
//   Ref<Storage> a = MakeRef<Storage>(...);
//
// A type may end its own life in a static `Dispose(T*)`; otherwise it is deleted. One thread at a time.
class Counted {
 public:
  Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  std::uint32_t use_count() const { return count_; }

 private:
  template <typename T>
  friend class Ref;
  std::uint32_t count_ = 0;
};

template <typename T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) { Hold(); }
  Ref(const Ref& other) : object_(other.object_) { Hold(); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Drop(); }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  void reset() {
    Drop();
    object_ = nullptr;
  }

 private:
  void Hold() {
    if (object_ != nullptr) ++static_cast<Counted*>(object_)->count_;
  }
  void Drop() {
    if (object_ == nullptr || --static_cast<Counted*>(object_)->count_ != 0) return;
    if constexpr (requires { T::Dispose(object_); }) {
      T::Dispose(object_);
    } else {
      delete object_;
    }
  }

  T* object_ = nullptr;
};

template <typename T, typename... Args>
Ref<T> MakeRef(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

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

// A node of the graph that forward builds and backward runs: what an operation saved, and where its gradients go. It
// lies beside the tensor, which holds the node that made it, as the node holds tensors. kernels/autograd/node.h records
// them.
struct Edge {
  Ref<Node> node;  // null: nobody wants this gradient
  std::uint32_t input = 0;
};

class Node : public Counted {
 public:
  // The gradient that arrives for an output of the operation.
  struct Expected {
    Dims sizes;
    DType dtype;
  };

  Node(const char* node_name, std::uint64_t node_sequence) : name(node_name), sequence(node_sequence) {}
  virtual ~Node() = default;
  // Long chains of nodes end without recursion.
  static void Dispose(Node* node);

  // `grads` may be moved from; they end when the engine ends them otherwise.
  virtual void Run(Context& context, absl::Span<Tensor> grads, absl::Span<Tensor> out) = 0;
  virtual void ReleaseSaved();

  const char* name;
  absl::string_view module = {};  // that recorded it
  std::uint64_t sequence;
  absl::InlinedVector<Edge, 2> next;          // by input
  absl::InlinedVector<Expected, 1> expected;  // by output
  absl::InlinedVector<Tensor, 3> saved;

  // The engine's, during a pass.
  std::uint64_t pass = 0;
  std::uint32_t dependencies = 0;
  absl::InlinedVector<Tensor, 1> arrived;  // by output
};

// Lists of tensors that end as Python's do.

// From the last tensor to the first: list_dealloc of CPython's Objects/listobject.c.
inline void EndList(std::vector<Tensor>& list) {
  while (!list.empty()) list.pop_back();
}

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_TENSOR_TENSOR_H_
