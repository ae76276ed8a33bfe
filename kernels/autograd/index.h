// Lookups by index: rows of a table, and one element a row. Their gradients are dense.
#ifndef ASHLAR_KERNELS_AUTOGRAD_INDEX_H_
#define ASHLAR_KERNELS_AUTOGRAD_INDEX_H_

#include <cstdint>

#include "kernels/tensor/tensor.h"

namespace ashlar::kernels {

// nn.Embedding: rows of weight (V, D) by indices (int64) of any sizes. Backward up to 3072 indices: the dense gradient
// alone; above, sort and segment scratch (Embedding.cu, EmbeddingBackwardKernel.cu).
Tensor Embedding(const Tensor& weight, const Tensor& indices);

// The rows that a table of that width on the host has for the indices, copied over; where it is trained their gradient
// is copied back, and takes nothing of the device. Rows are zero where there is arithmetic.
Tensor FromHost(const Tensor& indices, std::int64_t width, bool is_trained);

// weight[indices]: the same values by advanced indexing, whose backward sorts always (Indexing.cu, index_put).
Tensor IndexRows(const Tensor& weight, const Tensor& indices);

// x[:, ids] for the dim: advanced indexing by a list (int64, one dim); backward as above.
Tensor IndexDim(const Tensor& x, std::int64_t dim, const Tensor& ids);

// x.gather(dim, index) for the last dim; backward scatters into zeros and needs its whole input until then.
Tensor Gather(const Tensor& x, const Tensor& index);

// x (N, ..) at the rows (int64, (T)): (T, ..), as the package flash_attn takes padding out; backward scatters into
// zeros and sorts nothing. In dry runs alone.
Tensor TakeRows(const Tensor& x, const Tensor& rows);

// The reverse: zeros (count, ..) with the values (T, ..) in these rows.
Tensor PutRows(const Tensor& values, const Tensor& rows, std::int64_t count);

// Bytes that cub::DeviceRadixSort takes for n pairs: 1 where one block sorts all. Seen in recorded traces of
// PyTorch 2.11 (n = 512 to 4096).
std::uint64_t SortScratchBytes(std::int64_t n);

}  // namespace ashlar::kernels

#endif  // ASHLAR_KERNELS_AUTOGRAD_INDEX_H_
