#include "kernels/tensor/tensor.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "allocator/base/check.h"
#include "kernels/tensor/context.h"

namespace ashlar::kernels {
namespace {

std::uint64_t BytesOf(std::int64_t elements, DType dtype) {
  return static_cast<std::uint64_t>(elements) * static_cast<std::uint64_t>(ops::SizeOf(dtype));
}

Tensor NewTensor(Context& context, Layout layout, DType dtype, Part part) {
  const std::uint64_t bytes = BytesOf(ops::ElementCount(layout.sizes), dtype);
  return Tensor(MakeRef<TensorBody>(MakeRef<Storage>(context, bytes, part), std::move(layout), dtype, 0));
}

void FillZero(Context& context, const Tensor& tensor) {
  if (context.computes()) context.Do(ops::Fill{tensor.view(), 0});
}

}  // namespace

Storage::Storage(Context& context, std::uint64_t bytes, Part part)
    : context_(&context), block_(context.memory().Allocate(bytes, part)), bytes_(bytes), part_(part) {}

Storage::~Storage() {
  if (block_ != nullptr) context_->memory().Free(block_, bytes_, part_);
}

void* Storage::data() const {
  return block_ == nullptr ? nullptr : reinterpret_cast<void*>(static_cast<std::uintptr_t>(block_->address));
}

void Storage::set_part(Part part) {
  if (block_ != nullptr && part != part_) context_->memory().Move(bytes_, part_, part);
  part_ = part;
}

TensorBody::TensorBody(Ref<Storage> storage_, Layout layout_, DType dtype_, std::int64_t offset_)
    : storage(std::move(storage_)), layout(std::move(layout_)), dtype(dtype_), offset(offset_) {}

// The storage first, as PyTorch's tensor does: the graph behind it may hold much more.
TensorBody::~TensorBody() { storage.reset(); }

Tensor::Tensor(const Tensor&) = default;
Tensor::Tensor(Tensor&&) noexcept = default;
Tensor& Tensor::operator=(const Tensor&) = default;
Tensor& Tensor::operator=(Tensor&&) noexcept = default;
Tensor::~Tensor() = default;

void Tensor::reset() { body_.reset(); }
Context& Tensor::context() const { return body_->storage->context(); }
const Layout& Tensor::layout() const { return body_->layout; }
DType Tensor::dtype() const { return body_->dtype; }
bool Tensor::requires_grad() const { return body_ && body_->requires_grad; }
Tensor Tensor::grad() const { return body_->grad; }
void Tensor::set_grad(Tensor grad) { body_->grad = std::move(grad); }
std::uint32_t Tensor::use_count() const { return body_ ? body_->use_count() : 0; }
const Storage& Tensor::storage() const { return *body_->storage; }
void Tensor::set_part(Part part) const { body_->storage->set_part(part); }

ops::View Tensor::view() const {
  auto* data = static_cast<std::byte*>(body_->storage->data());
  return {data + body_->offset * ops::SizeOf(body_->dtype), body_->dtype, sizes(), strides()};
}

void Tensor::set_requires_grad(bool requires_grad) {
  ASHLAR_CHECK(!body_->made_by);
  body_->requires_grad = requires_grad;
}

Tensor Empty(Context& context, Dims sizes, DType dtype, Part part) {
  Dims strides = ops::ContiguousStrides(sizes);
  return NewTensor(context, {std::move(sizes), std::move(strides)}, dtype, part);
}

Tensor EmptyStrided(Context& context, Layout layout, DType dtype) {
  return NewTensor(context, std::move(layout), dtype, Part::kActivations);
}

Tensor EmptyLike(const Tensor& like) { return EmptyLike(like, like.dtype()); }

Tensor EmptyLike(const Tensor& like, DType dtype) {
  return EmptyStrided(like.context(), {like.sizes(), PreservedStrides(like.layout())}, dtype);
}

Tensor EmptyOf(const Tensor& like, Dims sizes) { return Empty(like.context(), std::move(sizes), like.dtype()); }

Tensor Zeros(Context& context, Dims sizes, DType dtype, Part part) {
  Tensor out = Empty(context, std::move(sizes), dtype, part);
  FillZero(context, out);
  return out;
}

Tensor ZerosLike(const Tensor& like) {
  Tensor out = EmptyLike(like);
  FillZero(like.context(), out);
  return out;
}

Tensor Alias(const Tensor& base, Layout layout, std::int64_t offset) {
  Tensor out(MakeRef<TensorBody>(base.body().storage, std::move(layout), base.dtype(), offset));
  out.body().is_view = true;
  return out;
}

Tensor Detach(const Tensor& tensor) {
  const TensorBody& body = tensor.body();
  return Tensor(MakeRef<TensorBody>(body.storage, body.layout, body.dtype, body.offset));
}

namespace {

// Takes the next nodes that nobody else holds.
void Gather(Node& node, std::vector<Ref<Node>>& out) {
  node.ReleaseSaved();
  for (Edge& edge : node.next) {
    if (edge.node && edge.node->use_count() == 1) {
      out.push_back(std::move(edge.node));
    } else {
      edge.node.reset();
    }
  }
}

}  // namespace

void Node::Dispose(Node* node) {
  std::vector<Ref<Node>> waiting;
  Gather(*node, waiting);
  delete node;
  while (!waiting.empty()) {
    const Ref<Node> last = std::move(waiting.back());
    waiting.pop_back();
    Gather(*last, waiting);
  }
}

void Node::ReleaseSaved() {
  for (Tensor& tensor : saved) tensor.reset();
}

}  // namespace ashlar::kernels
