#include "kernels/tensor/context.h"

#include <cstring>
#include <utility>

#include "allocator/base/units.h"

namespace ashlar::kernels {

void Context::CopyBytes(void* to, const void* from, std::size_t bytes) {
  if (!copy_) {
    std::memcpy(to, from, bytes);
  } else if (absl::Status status = copy_(to, from, bytes); !status.ok()) {
    memory_.Fail(std::move(status));
  }
}

ops::RandomKey Context::Draw(std::int64_t elements) {
  const ops::RandomKey key = random_;
  random_.offset += static_cast<std::uint64_t>((elements + 3) / 4);  // four words a counter
  return key;
}

void Context::KeepWorkspace(std::vector<Workspace>& kept, std::uint64_t size_bytes) {
  for (const Workspace& workspace : kept) {
    if (workspace.is_backward_thread == is_backward_thread_ && workspace.stream == memory_.stream()) return;
  }
  Tensor bytes = Empty(*this, {static_cast<std::int64_t>(size_bytes)}, DType::kUint8, Part::kLibraries);
  kept.push_back({is_backward_thread_, memory_.stream(), std::move(bytes)});
}

void Context::NeedProductWorkspace() {
  if (!framework_.has_cublas_workspace) return;
  if (framework_.cublas_workspace_is_of_call) {
    (void)Empty(*this, {static_cast<std::int64_t>(gpu_.cublas_workspace_bytes)}, DType::kUint8);
  } else {
    KeepWorkspace(workspaces_, gpu_.cublas_workspace_bytes);
  }
}

void Context::NeedLtWorkspace() {
  if (framework_.lt_workspace == LtWorkspace::kKept) KeepWorkspace(lt_workspaces_, kMiB);
  if (framework_.lt_workspace != LtWorkspace::kOfCall) return;
  const Tensor of_call = Empty(*this, {static_cast<std::int64_t>(kMiB)}, DType::kUint8);
  if (!framework_.cublas_workspace_is_of_call) NeedProductWorkspace();
}

Autocast::Autocast(Context& context, bool enabled, DType dtype)
    : context_(context), before_(context.autocasts_), dtype_before_(context.autocast_dtype_) {
  context.autocasts_ = enabled;
  if (enabled) context.autocast_dtype_ = dtype;
}

Autocast::~Autocast() {
  context_.autocasts_ = before_;
  context_.autocast_dtype_ = dtype_before_;
  if (before_) return;
  for (Tensor& copy : context_.cast_copies_) copy.reset();
  context_.cast_copies_.clear();
  context_.cast_index_.clear();
}

}  // namespace ashlar::kernels
