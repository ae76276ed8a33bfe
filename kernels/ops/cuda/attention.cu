// Tiled attention on CUDA, forward: a block has one tile of queries of one head, and walks the tiles of keys with the
// softmax kept up to date (Milakov, Gimelshein, arXiv 1805.02867; Dao et al., arXiv 2205.14135). Scores never leave
// shared memory.
#include "kernels/ops/cuda/tile.cuh"

namespace ashlar::ops::cuda {
namespace {

template <typename T>
struct ForwardTiles {
  Tile<T> query;
  Tile<T> pair;  // the tile of keys, and then of values
  Tile<T> weight;
  Tile<float> score;
  Tile<float> out;
  Tile<float> state;  // of each query: the largest score so far, the sum below it, and the factor of the old sums
  int bytes;

  __host__ __device__ ForwardTiles(char* data, int edge, int width)
      : query{}, pair{}, weight{}, score{}, out{}, state{}, bytes(0) {
    SharedPieces pieces(data);
    query = pieces.Take<T>(edge, width);
    pair = pieces.Take<T>(edge, width);
    weight = pieces.Take<T>(edge, edge);
    score = pieces.Take<float>(edge, edge);
    out = pieces.Take<float>(edge, width);
    state = pieces.Take<float>(3, edge);
    bytes = pieces.used();
  }
};

// One tile of scores: a group of kTileThreads / edge threads takes each query's row.
template <typename T>
__device__ void UpdateSoftmax(const AttentionArguments& a, const HeadShape& shape, const ForwardTiles<T>& tiles,
                              int edge, int batch, int head, int first_query, int first_key) {
  const int group = kTileThreads / edge;  // 2, 4 or 8: within a warp
  const int row = static_cast<int>(threadIdx.x) / group;
  const int part = static_cast<int>(threadIdx.x) % group;
  const int seen = shape.Seen(a, first_query + row) - first_key;
  const float old = tiles.state.At(0, row);
  float most = old;
  for (int j = part; j < edge && j < seen; j += group) most = fmaxf(most, tiles.score.At(row, j) * a.scale);
  for (int step = group / 2; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
  float sum = 0;
  for (int j = part; j < edge; j += group) {
    const float weight = j < seen ? expf(tiles.score.At(row, j) * a.scale - most) : 0;
    const float kept = weight == 0 ? 0 : weight * KeepFactor(a, batch, head, first_query + row, first_key + j);
    tiles.weight.At(row, j) = FromFloat<T>(kept);
    sum += weight;
  }
  for (int step = group / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (part == 0) {
    const float decay = old == kMinusInfinity ? 0 : expf(old - most);
    tiles.state.At(0, row) = most;
    tiles.state.At(1, row) = tiles.state.At(1, row) * decay + sum;
    tiles.state.At(2, row) = decay;
  }
}

template <typename T>
__global__ void __launch_bounds__(kTileThreads) Attend(const AttentionArguments a, int edge, int width) {
  extern __shared__ __align__(32) char shared[];
  const ForwardTiles<T> tiles(shared, edge, width);
  const int head = static_cast<int>(blockIdx.y) % a.heads;
  const int batch = static_cast<int>(blockIdx.y) / a.heads;
  const int key_head = head / (a.heads / a.key_heads);
  const int first_query = static_cast<int>(blockIdx.x) * edge;
  const HeadShape shape(a, batch);
  LoadTile(tiles.query, HeadAt<const T>(a.query, batch, head), a.query.row_stride, first_query, shape.queries, edge,
           a.size, width);
  Zero(tiles.out.data, edge * tiles.out.step);
  for (int i = static_cast<int>(threadIdx.x); i < edge; i += kTileThreads) {
    tiles.state.At(0, i) = kMinusInfinity;
    tiles.state.At(1, i) = 0;
  }
  // The last query of the tile sees most.
  const int last = min(first_query + edge, shape.queries) - 1;
  const int end = last < first_query ? 0 : shape.Seen(a, last);
  for (int first_key = 0; first_key < end; first_key += edge) {
    __syncthreads();
    LoadTile(tiles.pair, HeadAt<const T>(a.key, batch, key_head), a.key.row_stride, first_key, shape.keys, edge, a.size,
             width);
    __syncthreads();
    MultiplyTiles<T, false, true>(tiles.query, tiles.pair, tiles.score, edge, edge, width, false);
    __syncthreads();
    LoadTile(tiles.pair, HeadAt<const T>(a.value, batch, key_head), a.value.row_stride, first_key, shape.keys, edge,
             a.size, width);
    UpdateSoftmax(a, shape, tiles, edge, batch, head, first_query, first_key);
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < edge * width; i += kTileThreads) {
      tiles.out.At(i / width, i % width) *= tiles.state.At(2, i / width);
    }
    __syncthreads();
    MultiplyTiles<T, false, false>(tiles.weight, tiles.pair, tiles.out, edge, width, edge, true);
  }
  __syncthreads();
  T* out = HeadAt<T>(a.out, batch, head);
  for (int i = static_cast<int>(threadIdx.x); i < edge * a.size; i += kTileThreads) {
    const int row = i / a.size;
    const int query = first_query + row;
    const float sum = tiles.state.At(1, row);
    if (query < a.queries) {
      out[query * a.out.row_stride + i % a.size] = FromFloat<T>(sum == 0 ? 0 : tiles.out.At(row, i % a.size) / sum);
    }
  }
  if (a.log_sum_exp == nullptr) return;
  for (int i = static_cast<int>(threadIdx.x); i < edge && first_query + i < a.queries; i += kTileThreads) {
    const std::int64_t at = (std::int64_t{batch} * a.heads + head) * a.queries + first_query + i;
    const float sum = tiles.state.At(1, i);
    a.log_sum_exp[at] = sum == 0 ? kMinusInfinity : tiles.state.At(0, i) + logf(sum);
  }
}

}  // namespace

cudaError_t LaunchAttention(const AttentionArguments& a, cudaStream_t stream) {
  if (a.batch == 0 || a.heads == 0 || a.queries == 0 || a.size == 0) return cudaSuccess;
  const int width = Padded(a.size);
  const auto bytes = [&](int edge, int element) {
    return element == 4 ? ForwardTiles<float>(nullptr, edge, width).bytes
                        : ForwardTiles<__half>(nullptr, edge, width).bytes;
  };
  return ByTile(a.dtype, bytes, [&](auto type, int edge, int shared) {
    using T = decltype(type);
    const cudaError_t error = cudaFuncSetAttribute(Attend<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (error != cudaSuccess) return error;
    const dim3 grid(static_cast<unsigned>(Ceil(a.queries, edge)), static_cast<unsigned>(a.batch * a.heads));
    Attend<T><<<grid, kTileThreads, static_cast<std::size_t>(shared), stream>>>(a, edge, width);
    return cudaGetLastError();
  });
}

}  // namespace ashlar::ops::cuda
