// Causal masks as models hold or make them.
#ifndef ASHLAR_KERNELS_NN_CAUSAL_MASK_H_
#define ASHLAR_KERNELS_NN_CAUSAL_MASK_H_

#include <cstdint>
#include <optional>

#include "kernels/tensor/context.h"
#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

// A module's buffer (1, 1, length, length) bool: true where a key may be seen, `window` tokens back where it is
// limited.
Tensor CausalBuffer(Context& context, std::int64_t length, std::optional<std::int64_t> window = {});

// What transformers' _update_causal_mask makes for scores where no mask is given, with its temporaries: (1, 1, length,
// length + 1), 0 where a key may be seen, else the dtype's lowest.
Tensor CausalBias(Context& context, std::int64_t length, DType dtype, std::optional<std::int64_t> window = {});

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_NN_CAUSAL_MASK_H_
