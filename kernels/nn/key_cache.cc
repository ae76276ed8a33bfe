#include "kernels/nn/key_cache.h"

#include <utility>

#include "kernels/autograd/cast.h"
#include "kernels/autograd/node.h"
#include "kernels/autograd/views.h"

namespace ashlar::kernels {

namespace {

// torch.cat([empty, x], dim=-2) of an empty one of that dtype: a contiguous copy in the wider of both.
Tensor JoinedToEmpty(const Tensor& x, DType dtype) {
  const InOperation in(x.context(), "cat");
  Tensor out = Empty(x.context(), x.sizes(), dtype);
  if (x.context().computes()) x.context().Do(ops::Copy{x.view(), out.view()});
  if (Records(x)) {
    Record("CatBackward", out, {x}, {}, [](Gradients& g) { g.out[0] = Slice(g.grad, -2, 0, g.grad.size(-2)); });
  }
  return out;
}

}  // namespace

void UpdateCache(std::vector<Tensor>* cache, bool joins, Tensor& key, Tensor& value) {
  if (cache == nullptr) return;
  if (joins) {  // both empty ones have the key's dtype: autocast turns positions' keys to float, and so the values
    Tensor joined_key = JoinedToEmpty(key, key.dtype());
    Tensor joined_value = JoinedToEmpty(value, Promoted(value, key));
    key = std::move(joined_key);
    value = std::move(joined_value);
  }
  cache->push_back(Detach(key));
  cache->push_back(Detach(value));
}

}  // namespace ashlar::kernels
