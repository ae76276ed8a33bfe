#include "kernels/autograd/matmul.h"

#include <algorithm>
#include <string>
#include <vector>

#include "allocator/base/check.h"
#include "kernels/autograd/node.h"
#include "kernels/autograd/pointwise.h"
#include "kernels/autograd/reduce.h"
#include "kernels/autograd/views.h"

namespace ashlar::kernels {
namespace {

// What the library takes: one of the last two strides 1, the other at least a row; a copy else.
bool IsProductOperand(const Tensor& t) {
  const std::size_t rows = t.sizes().size() - 2, columns = rows + 1;
  const auto leads = [&](std::size_t fast, std::size_t slow) {
    return t.strides()[fast] == 1 && t.strides()[slow] >= std::max<std::int64_t>(1, t.sizes()[fast]);
  };
  // A dim of one element has any stride.
  const auto is_one = [&](std::size_t dim) { return t.sizes()[dim] == 1; };
  return leads(columns, rows) || leads(rows, columns) || (is_one(rows) && t.strides()[columns] == 1) ||
         (is_one(columns) && t.strides()[rows] == 1);
}

Tensor AsOperand(const Tensor& t) {
  if (IsProductOperand(t)) return Detach(t);
  const NoGrad no_grad(t.context());
  return Contiguous(t);
}

// An outer product of batches is a kernel of its own; with a bias cublasLt has what it needs where cuBLAS keeps
// nothing.
bool NeedsWorkspace(const Tensor& a, const Tensor& bias, const Framework& framework) {
  const bool is_triton = framework.outer_products_are_triton && a.rank() == 3 && a.size(-1) == 1;
  return !is_triton && !(framework.cublas_workspace_is_of_call && bias.defined());
}

void Multiply(const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& out) {
  Context& context = out.context();
  if (NeedsWorkspace(a, bias, context.framework())) context.NeedProductWorkspace();
  if (!context.computes()) return;
  ops::MatMul op{a.view(), b.view(), {}, 1, 0, out.view()};
  if (bias.defined()) op.bias = bias.view();
  context.Do(op);
}

// The output first, then copies of operands that the library does not take.
Tensor Product(const Tensor& a, const Tensor& b) {
  Dims sizes = a.sizes();
  sizes.back() = b.sizes().back();
  Tensor out = EmptyOf(a, std::move(sizes));
  const Tensor left = AsOperand(a), right = AsOperand(b);
  Multiply(left, right, {}, out);
  return out;
}

Tensor Transposed(const Tensor& t) { return Transpose(t, -2, -1); }

// Gradients of a matrix that was transposed are computed transposed, so that their layout agrees.
bool IsTransposed(const Layout& t) { return t.sizes.size() == 2 && t.strides[0] == 1 && t.strides[1] == t.sizes[0]; }

Tensor RightGradient(const Tensor& a, const Tensor& grad, const Layout& b) {
  return IsTransposed(b) ? Transposed(Product(Transposed(grad), a)) : Product(Transposed(a), grad);
}

Tensor LeftGradient(const Tensor& grad, const Tensor& b, const Layout& a) {
  return IsTransposed(a) ? Transposed(Product(b, Transposed(grad))) : Product(grad, Transposed(b));
}

Tensor RecordedProduct(const char* name, const Tensor& a, const Tensor& b) {
  Tensor out = Product(a, b);
  if (Records(a, b)) {
    Record(name, out, {a, b}, {Keep(a.requires_grad(), b), Keep(b.requires_grad(), a)},
           [left = a.layout(), right = b.layout()](Gradients& g) {
             if (g.Needs(1)) g.out[1] = RightGradient(g.saved[1], g.grad, right);
             if (g.Needs(0)) g.out[0] = LeftGradient(g.grad, g.saved[0], left);
           });
  }
  return out;
}

Dims Flat(const Tensor& x) { return {-1, x.sizes().back()}; }

Dims WithLast(const Tensor& x, std::int64_t last) {
  Dims sizes = x.sizes();
  sizes.back() = last;
  return sizes;
}

std::int64_t SizeOfLetter(char letter, absl::string_view letters, const Tensor& t) {
  const std::size_t at = letters.find(letter);
  return at == absl::string_view::npos ? 1 : t.sizes()[at];
}

// The operand with these letters' dims in this order; a letter that it lacks is a dim of size 1.
Tensor InOrder(const Tensor& t, absl::string_view letters, absl::string_view order) {
  std::vector<std::int64_t> dims;
  Tensor out = t;
  for (const char letter : order) {
    std::size_t at = letters.find(letter);
    if (at == absl::string_view::npos) {
      at = out.sizes().size();
      out = Unsqueeze(out, static_cast<std::int64_t>(at));
    }
    dims.push_back(static_cast<std::int64_t>(at));
  }
  return Permute(out, dims);
}

}  // namespace

Tensor Mm(const Tensor& a, const Tensor& b) {
  const InOperation in(a.context(), "mm");
  const Tensor right = ForProduct(b), left = ForProduct(a);
  return RecordedProduct("MmBackward", left, right);
}

Tensor Bmm(const Tensor& a, const Tensor& b) {
  const InOperation in(a.context(), "bmm");
  const Tensor right = ForProduct(b), left = ForProduct(a);
  return RecordedProduct("BmmBackward", left, right);
}

// Gradients of x, of the weight, then of the bias, which the engine sums.
Tensor Addmm(const Tensor& bias_in, const Tensor& a, const Tensor& b) {
  const InOperation in(a.context(), "addmm");
  const Tensor weight_t = ForProduct(b), x = ForProduct(a), bias = ForProduct(bias_in);
  Context& context = x.context();
  Tensor out = Empty(context, {x.sizes()[0], weight_t.sizes()[1]}, x.dtype());
  context.NeedLtWorkspace();
  Multiply(x, weight_t, bias, out);
  if (Records(bias, x, weight_t)) {
    Record("AddmmBackward", out, {bias, x, weight_t},
           {Keep(weight_t.requires_grad(), x), Keep(x.requires_grad(), weight_t)},
           [left = x.layout(), right = weight_t.layout()](Gradients& g) {
             if (g.Needs(1)) g.out[1] = LeftGradient(g.grad, g.saved[1], left);
             if (g.Needs(2)) g.out[2] = RightGradient(g.saved[0], g.grad, right);
             if (g.Needs(0)) g.out[0] = g.grad;
           });
  }
  return out;
}

Tensor Linear(const Tensor& input, const Tensor& weight_in, const Tensor& bias_in) {
  Context& context = input.context();
  const Tensor bias = bias_in.defined() ? ForProduct(bias_in) : bias_in;
  const Tensor weight = ForProduct(weight_in), x = ForProduct(input);
  const Tensor weight_t = Transposed(weight);
  const bool is_flat = x.rank() == 2;
  if (bias.defined() && is_flat) return Addmm(bias, x, weight_t);
  if (bias.defined() && !context.framework().linear_adds_bias_after && IsContiguous(x.layout())) {
    return View(Addmm(bias, View(x, Flat(x)), weight_t), WithLast(x, weight.sizes()[0]));
  }
  const Tensor out = Matmul(x, weight_t);
  return bias.defined() ? AddTo(out, bias) : out;
}

Tensor Matmul(const Tensor& a_in, const Tensor& b_in) {
  const Tensor b = ForProduct(b_in), a = ForProduct(a_in);
  if (a.rank() == 2 && b.rank() == 2) return Mm(a, b);
  if (b.rank() == 2) {
    Tensor out = Mm(Reshape(a, Flat(a)), b);
    return View(out, WithLast(a, b.sizes()[1]));
  }
  // Both are expanded to the common batch and folded to three dims.
  ASHLAR_CHECK(a.rank() == b.rank());
  Dims batch(a.sizes().begin(), a.sizes().end() - 2);
  const std::int64_t count = ops::ElementCount(batch);
  const Tensor left = Reshape(Expand(a, a.sizes()), {count, a.size(-2), a.size(-1)});
  const Tensor right = Reshape(Expand(b, b.sizes()), {count, b.size(-2), b.size(-1)});
  batch.push_back(a.size(-2));
  batch.push_back(b.size(-1));
  return View(Bmm(left, right), batch);
}

Tensor Einsum(absl::string_view equation, const Tensor& a_in, const Tensor& b_in) {
  const InOperation in(a_in.context(), "einsum");
  const std::size_t comma = equation.find(','), arrow = equation.find("->");
  const absl::string_view of_a = equation.substr(0, comma), of_b = equation.substr(comma + 1, arrow - comma - 1);
  const absl::string_view of_out = equation.substr(arrow + 2);
  Tensor a = ForProduct(a_in);  // in order: a list is cast first to last
  Tensor b = ForProduct(b_in);

  // Letters of both operands, of one alone, and those that are summed.
  std::string batch, left, right, summed;
  for (const char letter : of_out) {
    const bool in_a = of_a.find(letter) != absl::string_view::npos, in_b = of_b.find(letter) != absl::string_view::npos;
    (in_a && in_b ? batch : in_a ? left : right).push_back(letter);
  }
  for (const char letter : of_a) {
    if (of_out.find(letter) == absl::string_view::npos) summed.push_back(letter);
  }
  const auto count = [&](absl::string_view letters, absl::string_view operand, const Tensor& t) {
    std::int64_t product = 1;
    for (const char letter : letters) product *= SizeOfLetter(letter, operand, t);
    return product;
  };
  const std::int64_t batches = count(batch, of_a, a), rows = count(left, of_a, a), columns = count(right, of_b, b);
  const std::int64_t sum = count(summed, of_a, a);
  Tensor folded_a = Reshape(InOrder(a, of_a, batch + left + summed + right), {batches, rows, sum});
  Tensor folded_b = Reshape(InOrder(b, of_b, batch + summed + right + left), {batches, sum, columns});
  Tensor product = RecordedProduct("BmmBackward", folded_a, folded_b);
  Release(folded_a, folded_b, a, b);

  const std::string order = batch + left + right;
  Dims sizes;
  for (const char letter : order) {
    const bool in_a = of_a.find(letter) != absl::string_view::npos;
    sizes.push_back(in_a ? SizeOfLetter(letter, of_a, a_in) : SizeOfLetter(letter, of_b, b_in));
  }
  std::vector<std::int64_t> dims;
  for (const char letter : of_out) dims.push_back(static_cast<std::int64_t>(order.find(letter)));
  return Permute(View(product, sizes), dims);
}

}  // namespace ashlar::kernels
