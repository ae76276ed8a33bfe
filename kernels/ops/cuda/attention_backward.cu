// Tiled attention on CUDA, backward (Dao et al., arXiv 2205.14135, section 3.1): the weights come again from the scores
// and the log-sum-exp. One kernel has a tile of keys a block and sums its gradients over the queries, one a tile of
// queries and sums over the keys: each element has one writer and a fixed order.
#include "kernels/ops/cuda/tile.cuh"

namespace ashlar::ops::cuda {
namespace {

template <typename T>
struct BackwardTiles {
  Tile<T> query;
  Tile<T> grad;  // of the output
  Tile<T> key;
  Tile<T> value;
  Tile<T> weight;  // with dropout
  Tile<T> slope;   // of the scores
  Tile<float> score;
  Tile<float> product;  // grad x value^T
  Tile<float> first;    // gradients: of the key or the query
  Tile<float> second;   // and of the value, for the keys' kernel
  int bytes;

  __host__ __device__ BackwardTiles(char* data, int edge, int width, bool is_by_keys)
      : query{}, grad{}, key{}, value{}, weight{}, slope{}, score{}, product{}, first{}, second{}, bytes(0) {
    SharedPieces pieces(data);
    query = pieces.Take<T>(edge, width);
    grad = pieces.Take<T>(edge, width);
    key = pieces.Take<T>(edge, width);
    value = pieces.Take<T>(edge, width);
    weight = pieces.Take<T>(edge, edge);
    slope = pieces.Take<T>(edge, edge);
    score = pieces.Take<float>(edge, edge);
    product = pieces.Take<float>(edge, edge);
    first = pieces.Take<float>(edge, width);
    if (is_by_keys) second = pieces.Take<float>(edge, width);
    bytes = pieces.used();
  }
};

// delta = sum of grad * out, a warp a query.
template <typename T>
__global__ void __launch_bounds__(kTileThreads) Deltas(const AttentionArguments a) {
  const std::int64_t rows = std::int64_t{a.batch} * a.heads * a.queries;
  const std::int64_t step = std::int64_t{gridDim.x} * (kTileThreads / 32);
  for (std::int64_t r = std::int64_t{blockIdx.x} * (kTileThreads / 32) + threadIdx.x / 32; r < rows; r += step) {
    const int query = static_cast<int>(r % a.queries);
    const int head = static_cast<int>(r / a.queries % a.heads);
    const int batch = static_cast<int>(r / a.queries / a.heads);
    const T* grad = HeadAt<const T>(a.grad, batch, head) + query * a.grad.row_stride;
    const T* out = HeadAt<const T>(a.out, batch, head) + query * a.out.row_stride;
    float sum = 0;
    for (int d = static_cast<int>(threadIdx.x) % 32; d < a.size; d += 32) sum += ToFloat(grad[d]) * ToFloat(out[d]);
    for (int k = 16; k > 0; k /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, k);
    if (threadIdx.x % 32 == 0) a.delta[r] = sum;
  }
}

// Scores and their slopes of one pair of tiles, from query, grad, key and value.
template <typename T>
__device__ void MakeSlopes(const AttentionArguments& a, const HeadShape& shape, const BackwardTiles<T>& tiles, int edge,
                           int width, int batch, int head, int first_query, int first_key) {
  MultiplyTiles<T, false, true>(tiles.query, tiles.key, tiles.score, edge, edge, width, false);
  MultiplyTiles<T, false, true>(tiles.grad, tiles.value, tiles.product, edge, edge, width, false);
  __syncthreads();
  const std::int64_t rows = (std::int64_t{batch} * a.heads + head) * a.queries;
  for (int i = static_cast<int>(threadIdx.x); i < edge * edge; i += kTileThreads) {
    const int row = i / edge;
    const int column = i % edge;
    float weight = 0;
    float slope = 0;
    if (first_key + column < shape.Seen(a, first_query + row)) {
      const std::int64_t at = rows + first_query + row;
      const float keep = KeepFactor(a, batch, head, first_query + row, first_key + column);
      weight = expf(tiles.score.At(row, column) * a.scale - a.log_sum_exp[at]);
      slope = a.scale * weight * (tiles.product.At(row, column) * keep - a.delta[at]);
      weight *= keep;
    }
    tiles.weight.At(row, column) = FromFloat<T>(weight);
    tiles.slope.At(row, column) = FromFloat<T>(slope);
  }
  __syncthreads();
}

// Rows of a tile of sums to a head; rows beyond the sequence are 0 as their sums are.
template <typename T>
__device__ void StoreTile(const Tile<float>& sums, T* head, std::int64_t row_stride, int begin, int rows, int edge,
                          int size) {
  for (int i = static_cast<int>(threadIdx.x); i < edge * size; i += kTileThreads) {
    const int row = i / size;
    if (begin + row < rows) head[(begin + row) * row_stride + i % size] = FromFloat<T>(sums.At(row, i % size));
  }
}

template <typename T>
__global__ void __launch_bounds__(kTileThreads) ByKeys(const AttentionArguments a, int edge, int width) {
  extern __shared__ __align__(32) char shared[];
  const BackwardTiles<T> tiles(shared, edge, width, true);
  const int key_head = static_cast<int>(blockIdx.y) % a.key_heads;
  const int batch = static_cast<int>(blockIdx.y) / a.key_heads;
  const int group = a.heads / a.key_heads;
  const int first_key = static_cast<int>(blockIdx.x) * edge;
  const HeadShape shape(a, batch);
  LoadTile(tiles.key, HeadAt<const T>(a.key, batch, key_head), a.key.row_stride, first_key, shape.keys, edge, a.size,
           width);
  LoadTile(tiles.value, HeadAt<const T>(a.value, batch, key_head), a.value.row_stride, first_key, shape.keys, edge,
           a.size, width);
  Zero(tiles.first.data, edge * tiles.first.step);
  Zero(tiles.second.data, edge * tiles.second.step);
  for (int head = key_head * group; first_key < shape.keys && head < (key_head + 1) * group; ++head) {
    for (int first_query = 0; first_query < shape.queries; first_query += edge) {
      if (shape.Seen(a, min(first_query + edge, shape.queries) - 1) <= first_key) continue;  // all come before the keys
      __syncthreads();
      LoadTile(tiles.query, HeadAt<const T>(a.query, batch, head), a.query.row_stride, first_query, shape.queries, edge,
               a.size, width);
      LoadTile(tiles.grad, HeadAt<const T>(a.grad, batch, head), a.grad.row_stride, first_query, shape.queries, edge,
               a.size, width);
      __syncthreads();
      MakeSlopes(a, shape, tiles, edge, width, batch, head, first_query, first_key);
      MultiplyTiles<T, true, false>(tiles.slope, tiles.query, tiles.first, edge, width, edge, true);
      MultiplyTiles<T, true, false>(tiles.weight, tiles.grad, tiles.second, edge, width, edge, true);
    }
  }
  __syncthreads();
  StoreTile(tiles.first, HeadAt<T>(a.grad_key, batch, key_head), a.grad_key.row_stride, first_key, a.keys, edge,
            a.size);
  StoreTile(tiles.second, HeadAt<T>(a.grad_value, batch, key_head), a.grad_value.row_stride, first_key, a.keys, edge,
            a.size);
}

template <typename T>
__global__ void __launch_bounds__(kTileThreads) ByQueries(const AttentionArguments a, int edge, int width) {
  extern __shared__ __align__(32) char shared[];
  const BackwardTiles<T> tiles(shared, edge, width, false);
  const int head = static_cast<int>(blockIdx.y) % a.heads;
  const int batch = static_cast<int>(blockIdx.y) / a.heads;
  const int key_head = head / (a.heads / a.key_heads);
  const int first_query = static_cast<int>(blockIdx.x) * edge;
  const HeadShape shape(a, batch);
  LoadTile(tiles.query, HeadAt<const T>(a.query, batch, head), a.query.row_stride, first_query, shape.queries, edge,
           a.size, width);
  LoadTile(tiles.grad, HeadAt<const T>(a.grad, batch, head), a.grad.row_stride, first_query, shape.queries, edge,
           a.size, width);
  Zero(tiles.first.data, edge * tiles.first.step);
  const int last = min(first_query + edge, shape.queries) - 1;
  const int end = last < first_query ? 0 : shape.Seen(a, last);
  for (int first_key = 0; first_key < end; first_key += edge) {
    __syncthreads();
    LoadTile(tiles.key, HeadAt<const T>(a.key, batch, key_head), a.key.row_stride, first_key, shape.keys, edge, a.size,
             width);
    LoadTile(tiles.value, HeadAt<const T>(a.value, batch, key_head), a.value.row_stride, first_key, shape.keys, edge,
             a.size, width);
    __syncthreads();
    MakeSlopes(a, shape, tiles, edge, width, batch, head, first_query, first_key);
    MultiplyTiles<T, false, false>(tiles.slope, tiles.key, tiles.first, edge, width, edge, true);
  }
  __syncthreads();
  StoreTile(tiles.first, HeadAt<T>(a.grad_query, batch, head), a.grad_query.row_stride, first_query, a.queries, edge,
            a.size);
}

}  // namespace

cudaError_t LaunchAttentionBackward(const AttentionArguments& a, cudaStream_t stream) {
  if (a.batch == 0 || a.heads == 0 || a.size == 0) return cudaSuccess;
  const int width = Padded(a.size);
  const auto bytes = [&](int edge, int element) {
    return element == 4 ? BackwardTiles<float>(nullptr, edge, width, true).bytes
                        : BackwardTiles<__half>(nullptr, edge, width, true).bytes;
  };
  return ByTile(a.dtype, bytes, [&](auto type, int edge, int shared) {
    using T = decltype(type);
    const cudaFuncAttribute most = cudaFuncAttributeMaxDynamicSharedMemorySize;
    cudaError_t error = cudaFuncSetAttribute(ByKeys<T>, most, shared);
    if (error == cudaSuccess) error = cudaFuncSetAttribute(ByQueries<T>, most, shared);
    if (error != cudaSuccess) return error;
    const std::size_t bytes_shared = static_cast<std::size_t>(shared);
    const std::int64_t rows = std::int64_t{a.batch} * a.heads * a.queries;
    const unsigned query_heads = static_cast<unsigned>(a.batch * a.heads);
    if (a.queries > 0) {
      Deltas<T><<<Grid(rows * 32, kTileThreads), kTileThreads, 0, stream>>>(a);
      const dim3 grid(static_cast<unsigned>(Ceil(a.queries, edge)), query_heads);
      ByQueries<T><<<grid, kTileThreads, bytes_shared, stream>>>(a, edge, width);
    }
    if (a.keys > 0) {
      const dim3 grid(static_cast<unsigned>(Ceil(a.keys, edge)), static_cast<unsigned>(a.batch * a.key_heads));
      ByKeys<T><<<grid, kTileThreads, bytes_shared, stream>>>(a, edge, width);
    }
    return cudaGetLastError();
  });
}

}  // namespace ashlar::ops::cuda
