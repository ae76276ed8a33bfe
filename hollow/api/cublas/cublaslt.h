// The layout of what cuBLASLt's heuristics answer: cublasLtMatmulHeuristicResult_t of cublasLt.h, the same in
// CUDA 11.8, 12.4 and 13.0.
#ifndef ASHLAR_HOLLOW_API_CUBLAS_CUBLASLT_H_
#define ASHLAR_HOLLOW_API_CUBLAS_CUBLASLT_H_

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

// The descriptors of cuBLASLt: opaque words, made by the library or by the caller (…Init), that hold attributes.
//
// A descriptor starts with a mark of its kind, so that one that was destroyed, or never made, is told. Its attributes
// lie packed behind the mark, in the order of its table. Those that the library made are kept for the next one and
// never given back to the system, so that looking at a stale one is safe. Thread rule: any thread; one descriptor is
// used by one thread at a time.
struct LtAttribute {
  int number;
  std::uint8_t bytes;
  std::uint64_t value;  // at first
};

struct LtTable {
  std::uint32_t kind;         // the mark
  std::uint32_t words_bytes;  // of one that the library makes
  const LtAttribute* attributes;
  int count;
};

extern const LtTable kLtLayout;      // cublasLtMatrixLayout_t
extern const LtTable kLtMatmul;      // cublasLtMatmulDesc_t
extern const LtTable kLtTransform;   // cublasLtMatrixTransformDesc_t
extern const LtTable kLtPreference;  // cublasLtMatmulPreference_t
extern const LtTable kLtEmulation;   // cublasLtEmulationDesc_t
extern const LtTable kLtAlgo;        // cublasLtMatmulAlgo_t: its configuration

// Each answers a cublasStatus_t. `bytes` of InitLt is the room that the caller has.
int InitLt(const LtTable& table, void* words, std::size_t bytes);
int MakeLt(const LtTable& table, void** words);
int DestroyLt(const LtTable& table, void* words);
bool IsLt(const LtTable& table, const void* words);
int SetLt(const LtTable& table, void* words, int attribute, const void* value, std::size_t bytes);
int GetLt(const LtTable& table, const void* words, int attribute, void* value, std::size_t bytes, std::size_t* written);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_CUBLAS_CUBLASLT_H_
