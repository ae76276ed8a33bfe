// The layout of what cuBLASLt's heuristics answer: cublasLtMatmulHeuristicResult_t of cublasLt.h, the same in
// CUDA 11.8, 12.4 and 13.0.
#ifndef ASHLAR_HOLLOW_SURFACES_CUBLASLT_H_
#define ASHLAR_HOLLOW_SURFACES_CUBLASLT_H_

#include <cstddef>
#include <cstdint>

namespace ashlar::hollow {

struct LtAlgo {
  std::uint64_t words[8];  // see kLtAlgo
};

struct LtHeuristicResult {
  LtAlgo algo;
  std::size_t workspace_bytes;
  int state;          // cublasStatus_t
  float waves_count;  // 1: one wave of blocks fills the device
  int reserved[4];
};
static_assert(sizeof(LtHeuristicResult) == 96);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_SURFACES_CUBLASLT_H_
