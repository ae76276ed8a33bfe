// The keys and values that a decoder keeps until its outputs end (cache_utils.py).
//
//   UpdateCache(pass.cache, versions.cache_joins, key, value);
#ifndef ASHLAR_KERNELS_NN_KEY_CACHE_H_
#define ASHLAR_KERNELS_NN_KEY_CACHE_H_

#include <vector>

#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

// DynamicCache.update for a layer's first tokens, (B, H, S, D) each. `cache` null: none is kept. Where it joins, both
// become contiguous copies in the key's dtype or a wider one, which attention uses from here on.
void UpdateCache(std::vector<Tensor>* cache, bool joins, Tensor& key, Tensor& value);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_NN_KEY_CACHE_H_
