// CudaOps: optimizer steps and other ops over lists of tensors.
#include <algorithm>

#include "kernels/ops/cuda/ops_to_launches.h"
#include "kernels/ops/optimizer_rules.h"
#include "kernels/ops/scratch.h"

namespace ashlar::ops::cuda {
namespace {

// Cuts a list into launches. fill(part, slot, tensor) enters a tensor into a part; launch(part) launches one.
template <typename Count, typename Fill, typename Launch>
cudaError_t ForParts(std::size_t tensors, const Count& count, const Fill& fill, const Launch& launch) {
  ListPart part;
  const auto flush = [&] {
    const cudaError_t error = part.pieces == 0 ? cudaSuccess : launch(part);
    part.tensors = 0;
    part.pieces = 0;
    return error;
  };
  for (std::size_t t = 0; t < tensors; ++t) {
    const std::int64_t pieces = (count(t) + kListPiece - 1) / kListPiece;
    int slot = -1;
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      if (part.pieces == ListPart::kMostPieces || (slot < 0 && part.tensors == ListPart::kMostTensors)) {
        if (const cudaError_t error = flush(); error != cudaSuccess) return error;
        slot = -1;
      }
      if (slot < 0) {
        slot = part.tensors++;
        part.count[slot] = count(t);
        fill(part, slot, t);
      }
      part.tensor_of[part.pieces] = static_cast<std::uint8_t>(slot);
      part.piece_of[part.pieces++] = static_cast<std::uint16_t>(piece);
    }
  }
  return flush();
}

// The pieces of one tensor are counted in 16 bits.
absl::Status CheckSize(const char* op, const View& view) {
  if (ElementCount(view.sizes) <= kListPiece * 65'536) return absl::OkStatus();
  return absl::InvalidArgumentError(std::string(op) + ": a tensor has at most 2^32 elements: " + ToString(view));
}

const float* OneOf(const std::optional<View>& view) { return view ? FloatsOf(*view) : nullptr; }

template <typename Launch>
cudaError_t ForGradients(absl::Span<const View> gradients, const Launch& launch) {
  const auto count = [&](std::size_t t) { return ElementCount(gradients[t].sizes); };
  const auto fill = [&](ListPart& part, int slot, std::size_t t) { part.gradient[slot] = ArrayOf(gradients[t]); };
  return ForParts(gradients.size(), count, fill, launch);
}

}  // namespace

absl::Status CudaOps::Do(const AdamWStep& op) {
  const AdamWValues values = {.rule = AdamWRule::Of(op, static_cast<double>(op.step)),
                              .beta1 = static_cast<float>(op.beta1),
                              .beta2 = static_cast<float>(op.beta2),
                              .learning_rate = static_cast<float>(op.learning_rate),
                              .inverse_scale = OneOf(op.on_device.inverse_scale),
                              .found_infinite = OneOf(op.on_device.found_infinite),
                              .step = OneOf(op.on_device.step)};
  for (const AdamWTensor& tensor : op.tensors) {
    if (absl::Status status = CheckSize(op.kName, tensor.parameter); !status.ok()) return status;
  }
  const auto count = [&](std::size_t t) { return ElementCount(op.tensors[t].parameter.sizes); };
  const auto fill = [&](ListPart& part, int slot, std::size_t t) {
    part.parameter[slot] = ArrayOf(op.tensors[t].parameter);
    part.gradient[slot] = ArrayOf(op.tensors[t].gradient);
    part.first[slot] = op.tensors[t].first.data;
    part.second[slot] = op.tensors[t].second.data;
  };
  const auto launch = [&](const ListPart& part) { return LaunchAdamW(part, kListPiece, values, stream_); };
  return LaunchStatus(op.kName, ForParts(op.tensors.size(), count, fill, launch));
}

absl::Status CudaOps::Do(const AdamW8BitStep& op) {
  for (const AdamW8BitTensor& tensor : op.tensors) {
    const AdamW8BitArguments arguments = {.count = ElementCount(tensor.parameter.sizes),
                                          .parameter = ArrayOf(tensor.parameter),
                                          .gradient = ArrayOf(tensor.gradient),
                                          .first = static_cast<std::uint8_t*>(tensor.first.data),
                                          .second = static_cast<std::uint8_t*>(tensor.second.data),
                                          .first_scale = FloatsOf(tensor.first_scale),
                                          .second_scale = FloatsOf(tensor.second_scale),
                                          .signed_map = SignedMap8Bit().data(),
                                          .unsigned_map = UnsignedMap8Bit().data(),
                                          .rule = AdamWRule::Of(op, static_cast<double>(op.step))};
    if (cudaError_t error = LaunchAdamW8Bit(arguments, stream_); error != cudaSuccess) {
      return LaunchStatus(op.kName, error);
    }
  }
  return absl::OkStatus();
}

absl::Status CudaOps::Do(const SgdStep& op) {
  for (const SgdTensor& tensor : op.tensors) {
    if (absl::Status status = CheckSize(op.kName, tensor.parameter); !status.ok()) return status;
  }
  const auto count = [&](std::size_t t) { return ElementCount(op.tensors[t].parameter.sizes); };
  const auto fill = [&](ListPart& part, int slot, std::size_t t) {
    part.parameter[slot] = ArrayOf(op.tensors[t].parameter);
    part.gradient[slot] = ArrayOf(op.tensors[t].gradient);
    part.first[slot] = op.tensors[t].momentum ? op.tensors[t].momentum->data : nullptr;
  };
  const SgdRule rule = SgdRule::Of(op);
  const auto launch = [&](const ListPart& part) { return LaunchSgd(part, kListPiece, rule, stream_); };
  return LaunchStatus(op.kName, ForParts(op.tensors.size(), count, fill, launch));
}

absl::Status CudaOps::Do(const AdafactorStep& op) {
  absl::StatusOr<Scratch> scratch = Scratch::Take(workspace(), ScratchBytes(op));
  if (!scratch.ok()) return scratch.status();
  const AdafactorParts plan = PartsOf(op);
  const std::int64_t count = ElementCount(op.parameter.sizes);
  AdafactorArguments arguments;
  arguments.rows = op.row ? op.parameter.sizes[0] : 1;
  arguments.columns = op.row ? op.parameter.sizes[1] : count;
  arguments.parameter = ArrayOf(op.parameter);
  arguments.gradient = ArrayOf(op.gradient);
  if (op.row) {
    arguments.row = FloatsOf(*op.row);
    arguments.column = FloatsOf(*op.column);
  } else {
    arguments.second = FloatsOf(*op.second);
  }
  arguments.parts = plan.parts;
  arguments.pieces = plan.pieces;
  arguments.row_mean = scratch->floats();
  arguments.update_squares = scratch->floats() + 64;
  arguments.parameter_squares = arguments.update_squares + plan.pieces;
  arguments.column_partial = arguments.parameter_squares + plan.pieces;
  arguments.learning_rate = static_cast<float>(op.learning_rate);
  arguments.beta2 = static_cast<float>(op.beta2);
  arguments.epsilon1 = static_cast<float>(op.epsilon1);
  arguments.epsilon2 = static_cast<float>(op.epsilon2);
  arguments.clip_threshold = static_cast<float>(op.clip_threshold);
  arguments.weight_decay = static_cast<float>(op.weight_decay);
  arguments.is_scaled = op.is_scaled;
  return LaunchStatus(op.kName, LaunchAdafactor(arguments, stream_));
}

absl::Status CudaOps::Do(const ClipNorm& op) {
  for (const View& gradient : op.gradients) {
    if (absl::Status status = CheckSize(op.kName, gradient); !status.ok()) return status;
  }
  absl::StatusOr<Scratch> scratch = Scratch::Take(workspace(), ScratchBytes(op));
  if (!scratch.ok()) return scratch.status();
  float* partial = scratch->floats();
  cudaError_t error = ForGradients(op.gradients, [&](const ListPart& part) {
    const cudaError_t launched = LaunchSquares(part, kListPiece, partial, stream_);
    partial += part.pieces;
    return launched;
  });
  if (error == cudaSuccess) {
    error = LaunchNormOf(scratch->floats(), partial - scratch->floats(), FloatsOf(op.norm), stream_);
  }
  if (error == cudaSuccess) {
    error = ForGradients(op.gradients, [&](const ListPart& part) {
      return LaunchClip(part, kListPiece, static_cast<float>(op.most), FloatsOf(op.norm), stream_);
    });
  }
  return LaunchStatus(op.kName, error);
}

absl::Status CudaOps::Do(const Unscale& op) {
  for (const View& gradient : op.gradients) {
    if (absl::Status status = CheckSize(op.kName, gradient); !status.ok()) return status;
  }
  const cudaError_t error = ForGradients(op.gradients, [&](const ListPart& part) {
    return LaunchUnscale(part, kListPiece, FloatsOf(op.inverse_scale), FloatsOf(op.found_infinite), stream_);
  });
  return LaunchStatus(op.kName, error);
}

}  // namespace ashlar::ops::cuda
