#include "kernels/autograd/pointwise.h"

#include "kernels/autograd/node.h"

namespace ashlar::kernels {

Tensor AutocastTo(const Tensor& tensor, DType dtype) {
  Context& context = tensor.context();
  const bool is_cached = tensor.dtype() == DType::kFloat32 && tensor.requires_grad() && !tensor.body().made_by &&
                         (!context.in_inference_mode() || context.framework().caches_casts_in_inference_mode);
  if (!is_cached) return Cast(tensor, dtype);
  const auto [it, is_new] = context.cast_index_.try_emplace(&tensor.body(), context.cast_copies_.size());
  if (is_new) context.cast_copies_.push_back(Cast(tensor, dtype));
  return context.cast_copies_[it->second];
}

Tensor Cast(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  const InOperation in(tensor.context(), "to");
  Context& context = tensor.context();
  Tensor out = EmptyLike(tensor, dtype);
  if (context.computes()) context.Do(ops::Copy{tensor.view(), out.view()});
  if (Records(tensor)) {
    Record("ToCopyBackward", out, {tensor}, {},
           [from = tensor.dtype()](Gradients& g) { g.out[0] = Cast(g.grad, from); });
  }
  return out;
}

DType Promoted(const Tensor& a, const Tensor& b) {
  if (a.dtype() == b.dtype()) return a.dtype();
  if (ops::IsFloat(a.dtype()) != ops::IsFloat(b.dtype())) return ops::IsFloat(a.dtype()) ? a.dtype() : b.dtype();
  if ((a.rank() == 0) != (b.rank() == 0)) return a.rank() == 0 ? b.dtype() : a.dtype();
  return ops::IsFloat(a.dtype()) ? DType::kFloat32 : DType::kInt64;
}

Tensor ForProduct(const Tensor& tensor) {
  Context& context = tensor.context();
  if (!context.autocasts() || !ops::IsFloat(tensor.dtype()) || tensor.dtype() == context.autocast_dtype()) {
    return tensor;
  }
  return AutocastTo(tensor, context.autocast_dtype());
}

Tensor ForFloat(const Tensor& tensor) {
  if (!tensor.context().autocasts() || !ops::IsFloat(tensor.dtype())) return tensor;
  return Cast(tensor, DType::kFloat32);
}

namespace {

using ops::BinaryKind;
using ops::UnaryKind;

Tensor ResultOf(const Tensor& a, const Tensor& b, DType dtype) {
  const Layout* const operands[] = {&a.layout(), &b.layout()};
  return EmptyStrided(a.context(), ElementwiseLayout(operands), dtype);
}

Tensor Binary(BinaryKind kind, const Tensor& a, const Tensor& b) {
  Tensor out = ResultOf(a, b, Promoted(a, b));
  if (a.context().computes()) a.context().Do(ops::Binary{kind, a.view(), b.view(), 1, out.view()});
  return out;
}

Tensor Affine(const Tensor& x, double scale, double shift) {
  Tensor out = EmptyLike(x);
  if (x.context().computes()) x.context().Do(ops::Affine{x.view(), scale, shift, out.view()});
  return out;
}

Tensor UnaryBackward(UnaryKind kind, const Tensor& grad, const Tensor& saved) {
  Tensor out = ResultOf(grad, saved, grad.dtype());
  if (grad.context().computes()) {
    grad.context().Do(ops::UnaryBackward{kind, grad.view(), saved.view(), out.view()});
  }
  return out;
}

// The formulas of PyTorch make temporaries where one op of ours computes the gradient at once; they are allocated all
// the same.
Tensor GradientOf(UnaryKind kind, const Tensor& grad, const Tensor& saved) {
  if (kind == UnaryKind::kRsqrt) {  // -0.5 * grad * result.pow(3), right operand first
    Tensor cube = EmptyLike(saved);
    Tensor half = EmptyLike(grad);
    Tensor out = UnaryBackward(kind, grad, saved);
    Release(half, cube);
    return out;
  }
  if (kind == UnaryKind::kSqrt) {  // grad / (2 * result)
    const Tensor doubled = EmptyLike(saved);
    return UnaryBackward(kind, grad, saved);
  }
  return UnaryBackward(kind, grad, saved);
}

// grad * (exponent * x.pow(exponent - 1)), for exponents 2 and 3.
void RecordPower(const Tensor& x, Tensor& out, int exponent) {
  if (!Records(x)) return;
  Record("PowBackward", out, {x}, {Detach(x)}, [exponent](Gradients& g) {
    const Tensor& base = g.saved[0];
    Tensor power = EmptyLike(base);
    if (g.context.computes()) {
      if (exponent == 2) {
        g.context.Do(ops::Copy{base.view(), power.view()});
      } else {
        g.context.Do(ops::Unary{UnaryKind::kSquare, base.view(), power.view()});
      }
    }
    Tensor scaled = MulScalar(power, exponent);
    g.out[0] = Mul(g.grad, scaled);
    Release(scaled, power);
  });
}

absl::string_view UnaryName(UnaryKind kind) {
  constexpr absl::string_view kNames[] = {"neg", "abs",     "pow",  "sqrt", "rsqrt", "reciprocal", "exp",
                                          "log", "sigmoid", "tanh", "relu", "silu",  "gelu",       "gelu"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool IsFloatListed(UnaryKind kind, const Framework& framework) {
  switch (kind) {
    case UnaryKind::kExp:
    case UnaryKind::kLog:
    case UnaryKind::kRsqrt:
    case UnaryKind::kReciprocal:
      return true;
    case UnaryKind::kGelu:
    case UnaryKind::kGeluTanh:
      return framework.gelu_autocasts_to_float;
    default:
      return false;
  }
}

}  // namespace

Tensor Add(const Tensor& a, const Tensor& b) {
  const InOperation in(a.context(), "add");
  Tensor out = Binary(BinaryKind::kAdd, a, b);
  if (Records(a, b)) {
    Record("AddBackward", out, {a, b}, {}, [](Gradients& g) {
      if (g.Needs(0)) g.out[0] = g.grad;
      if (g.Needs(1)) g.out[1] = g.grad;
    });
  }
  return out;
}

Tensor Sub(const Tensor& a, const Tensor& b) {
  const InOperation in(a.context(), "sub");
  Tensor out = Binary(BinaryKind::kSubtract, a, b);
  if (Records(a, b)) {
    Record("SubBackward", out, {a, b}, {}, [](Gradients& g) {
      if (g.Needs(1)) g.out[1] = Neg(g.grad);
      if (g.Needs(0)) g.out[0] = g.grad;
    });
  }
  return out;
}

Tensor Mul(const Tensor& a, const Tensor& b) {
  const InOperation in(a.context(), "mul");
  Tensor out = Binary(BinaryKind::kMultiply, a, b);
  if (Records(a, b)) {
    Record("MulBackward", out, {a, b}, {Keep(a.requires_grad(), b), Keep(b.requires_grad(), a)}, [](Gradients& g) {
      if (g.Needs(1)) g.out[1] = Mul(g.grad, g.saved[1]);
      if (g.Needs(0)) g.out[0] = Mul(g.grad, g.saved[0]);
    });
  }
  return out;
}

Tensor Div(const Tensor& a, const Tensor& b) {
  const InOperation in(a.context(), "div");
  Tensor out = Binary(BinaryKind::kDivide, a, b);
  if (Records(a, b)) {
    Record("DivBackward", out, {a, b}, {Detach(b), Keep(b.requires_grad(), a)}, [](Gradients& g) {
      const Tensor& divisor = g.saved[0];
      if (g.Needs(1)) {  // -grad * ((a / b) / b)
        Tensor quotient = Div(g.saved[1], divisor);
        Tensor again = Div(quotient, divisor);
        Tensor negated = Neg(g.grad);
        g.out[1] = Mul(negated, again);
        Release(negated, again, quotient);
      }
      if (g.Needs(0)) g.out[0] = Div(g.grad, divisor);
    });
  }
  return out;
}

Tensor AddScalar(const Tensor& x, double shift) {
  const InOperation in(x.context(), "add");
  Tensor out = Affine(x, 1, shift);
  if (Records(x)) Record("AddBackward", out, {x}, {}, [](Gradients& g) { g.out[0] = g.grad; });
  return out;
}

Tensor MulScalar(const Tensor& x, double scale) {
  const InOperation in(x.context(), "mul");
  Tensor out = Affine(x, scale, 0);
  if (Records(x)) {
    Record("MulBackward", out, {x}, {}, [scale](Gradients& g) { g.out[0] = MulScalar(g.grad, scale); });
  }
  return out;
}

Tensor DivScalar(const Tensor& x, double divisor) {
  const InOperation in(x.context(), "div");
  Tensor out = Affine(x, 1 / divisor, 0);
  if (Records(x)) {
    Record("DivBackward", out, {x}, {}, [divisor](Gradients& g) { g.out[0] = DivScalar(g.grad, divisor); });
  }
  return out;
}

Tensor Neg(const Tensor& x) {
  const InOperation in(x.context(), "neg");
  Tensor out = Affine(x, -1, 0);
  if (Records(x)) Record("NegBackward", out, {x}, {}, [](Gradients& g) { g.out[0] = Neg(g.grad); });
  return out;
}

Tensor Square(const Tensor& input) {
  const InOperation in(input.context(), "pow");
  const Tensor x = ForFloat(input);
  Tensor out = EmptyLike(x);
  if (x.context().computes()) x.context().Do(ops::Unary{UnaryKind::kSquare, x.view(), out.view()});
  RecordPower(x, out, 2);
  return out;
}

Tensor Cube(const Tensor& input) {
  const InOperation in(input.context(), "pow");
  const Tensor x = ForFloat(input);
  Tensor out = EmptyLike(x);
  if (x.context().computes()) {
    x.context().Do(ops::Unary{UnaryKind::kSquare, x.view(), out.view()});
    x.context().Do(ops::Binary{BinaryKind::kMultiply, out.view(), x.view(), 1, out.view()});
  }
  RecordPower(x, out, 3);
  return out;
}

Tensor Unary(UnaryKind kind, const Tensor& input) {
  const InOperation in(input.context(), UnaryName(kind));
  Context& context = input.context();
  Tensor x = IsFloatListed(kind, context.framework()) ? ForFloat(input) : input;
  Tensor out = EmptyLike(x);
  if (context.computes()) context.Do(ops::Unary{kind, x.view(), out.view()});
  if (Records(x)) {
    Record(ops::NameOf(kind), out, {x}, {Detach(ops::SavesResult(kind) ? out : x)},
           [kind](Gradients& g) { g.out[0] = GradientOf(kind, g.grad, g.saved[0]); });
  }
  return out;
}

Tensor ScalarOf(const Tensor& like, double value) {
  Tensor out = Empty(like.context(), {}, like.dtype());
  if (like.context().computes()) like.context().Do(ops::Fill{out.view(), value});
  return out;
}

Tensor WhereOrValue(const Tensor& mask, const Tensor& x, double value) {
  const InOperation in(x.context(), "where");
  const Tensor scalar = ScalarOf(x, value);
  return WhereOr(mask, x, scalar);
}

Tensor WhereOr(const Tensor& mask, const Tensor& x, const Tensor& scalar) {
  const InOperation in(x.context(), "where");
  Context& context = x.context();
  const Layout* const operands[] = {&mask.layout(), &x.layout()};
  Tensor out = EmptyStrided(context, ElementwiseLayout(operands), x.dtype());
  if (context.computes()) context.Do(ops::Where{mask.view(), x.view(), scalar.view(), out.view()});
  if (Records(x)) {
    Record("WhereBackward", out, {x}, {Detach(mask)},
           [](Gradients& g) { g.out[0] = WhereOrValue(g.saved[0], g.grad, 0); });
  }
  return out;
}

Tensor MaskedFill(const Tensor& x, const Tensor& mask, double value) {
  const InOperation in(x.context(), "masked_fill");
  Context& context = x.context();
  const Layout* const operands[] = {&mask.layout(), &x.layout()};
  Tensor out = EmptyStrided(context, ElementwiseLayout(operands), x.dtype());
  if (context.computes()) context.Do(ops::MaskedFill{x.view(), mask.view(), value, out.view()});
  if (Records(x)) {
    Record("MaskedFillBackward", out, {x}, {Detach(mask)},
           [](Gradients& g) { g.out[0] = MaskedFill(g.grad, g.saved[0], 0); });
  }
  return out;
}

Tensor Compare(ops::CompareKind kind, const Tensor& a, const Tensor& b) {
  const InOperation in(a.context(), "compare");
  Tensor out = ResultOf(a, b, DType::kBool);
  if (a.context().computes()) a.context().Do(ops::Compare{kind, a.view(), b.view(), out.view()});
  return out;
}

Tensor AddTo(const Tensor& x, const Tensor& y) {
  const InOperation in(x.context(), "add_");
  AddInPlace(x, y);
  if (!Records(x, y)) return x;
  Tensor sum = Detach(x);
  Record("AddBackward", sum, {x, y}, {}, [](Gradients& g) {
    if (g.Needs(0)) g.out[0] = g.grad;
    if (g.Needs(1)) g.out[1] = g.grad;
  });
  return sum;
}

void AddInPlace(const Tensor& x, const Tensor& y, double scale) {
  if (x.context().computes()) {
    x.context().Do(ops::Binary{BinaryKind::kAdd, x.view(), y.view(), scale, x.view()});
  }
}

void MulInPlace(const Tensor& x, double scale) {
  if (x.context().computes()) x.context().Do(ops::Affine{x.view(), scale, 0, x.view()});
}

}  // namespace ashlar::kernels
