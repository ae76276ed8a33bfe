// Shared by the surfaces of cuBLAS and cuBLASLt: the handle, and the statuses of cublas_api.h.
//
// Thread rule: any thread; one handle is used by one thread at a time, as cuBLAS asks.
#ifndef ASHLAR_HOLLOW_API_CUBLAS_CUBLAS_H_
#define ASHLAR_HOLLOW_API_CUBLAS_CUBLAS_H_

#include <cstdint>

#include "hollow/process/process.h"

namespace ashlar::hollow {

// cublasStatus_t.
inline constexpr int kCublasSuccess = 0;
inline constexpr int kCublasNotInitialized = 1;
inline constexpr int kCublasAllocFailed = 3;
inline constexpr int kCublasInvalidValue = 7;
inline constexpr int kCublasMappingError = 11;
inline constexpr int kCublasNotSupported = 15;

struct CublasHandle {
  void* stream = nullptr;
  void* workspace = nullptr;  // the caller's; null: the library's own pool
  std::uint64_t workspace_bytes = 0;
  int math_mode = 0;     // CUBLAS_DEFAULT_MATH
  int pointer_mode = 0;  // CUBLAS_POINTER_MODE_HOST
  int atomics_mode = 0;  // CUBLAS_ATOMICS_NOT_ALLOWED
  int sm_count_target = 0;
  int emulation_strategy = 0;
  CublasHold hold;
};

// Null where the handle is not one.
CublasHandle* FindCublas(const void* handle);

// Workspaces that callers gave to cuBLAS or cuBLASLt, on any handle. Thread rule: any thread.
void NoteWorkspace(const void* workspace, std::uint64_t bytes);
bool IsWorkspace(std::uint64_t address, std::uint64_t bytes);

// A release that the surface answers for where the program brought none: cuBLAS 12.4.5.
inline constexpr int kCublasVersion = 120'405;

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_CUBLAS_CUBLAS_H_
