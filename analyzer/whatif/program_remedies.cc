#include "analyzer/whatif/program_remedies.h"

#include <algorithm>
#include <utility>

#include "absl/strings/string_view.h"

namespace ashlar::whatif {
namespace {

using analyses::CauseKind;

struct ProgramChange {
  absl::string_view sentence;
  std::vector<std::string> python;
};

// PyTorch's own documentation of each call; the first also: trl pull request 6858 (47.55 to 3.09 GB).
std::optional<ProgramChange> ChangeFor(CauseKind cause) {
  switch (cause) {
    case CauseKind::kLogitsSpike:
      return ProgramChange{
          "compute the loss over parts of the sequence, so that not all logits exist at once",
          {"part = lambda h, y: F.cross_entropy(lm_head(h), y, reduction=\"sum\")",
           "parts = zip(hidden.split(1024), labels.split(1024))",
           "loss = sum(checkpoint(part, h, y, use_reentrant=False) for h, y in parts) / labels.numel()"}};
    case CauseKind::kGraphKeptAlive:
      return ProgramChange{"keep numbers, not tensors that still know their graph; cut what goes on to the next step",
                           {"total_loss += loss.item()  # not: total_loss += loss",
                            "(loss / parts).backward()  # of each part of a batch; not: total += loss / parts",
                            "loss.backward()  # not: retain_graph=True", "state = state.detach()"}};
    case CauseKind::kOutputsKept:
      return ProgramChange{"move what is kept off the device, or let it go", {"kept.append(output.detach().cpu())"}};
    case CauseKind::kHooksKeepActivations:
      return ProgramChange{"remove the hook when it has seen enough, or keep its copies in host memory",
                           {"handle = module.register_forward_hook(hook)", "handle.remove()",
                            "seen.append(output.detach().cpu())  # in the hook"}};
    case CauseKind::kKvCacheGrows:
      return ProgramChange{"give the cache its room from the start, and drop it when its sequence ends",
                           {"key = torch.empty(batch, heads, max_length, width, device=\"cuda\", dtype=dtype)",
                            "key[:, :, at:at + 1] = new_key  # not: key = torch.cat([key, new_key], 2)",
                            "model.generate(ids, cache_implementation=\"static\")  # transformers"}};
    case CauseKind::kExceptionHoldsFrames:
      return ProgramChange{
          "retry after the except block, when the exception and its frames are gone",
          {"failed = False", "try:", "    step(batch)", "except torch.cuda.OutOfMemoryError:",
           "    failed = True  # keep str(error), not the error", "if failed:", "    step(smaller(batch))"}};
    case CauseKind::kEmptyCacheEachStep:
      return ProgramChange{"leave the cache to the allocator", {"# remove: torch.cuda.empty_cache()"}};
    case CauseKind::kEvalWithoutNoGrad:
      return ProgramChange{"evaluate without keeping what only a backward pass needs",
                           {"with torch.inference_mode():", "    evaluate(model)"}};
    case CauseKind::kEvalAccumulates:
      return ProgramChange{"move each batch of predictions off the device",
                           {"predictions.append(logits.detach().cpu())"}};
    case CauseKind::kLoadedTwice:
      return ProgramChange{
          "load the checkpoint into host memory, and let it go",
          {"state = torch.load(path, map_location=\"cpu\")", "model.load_state_dict(state)", "del state"}};
    case CauseKind::kOptimizerTemporaries:
      return ProgramChange{"update in one kernel, which makes no temporaries, or one parameter after the other",
                           {"optimizer = torch.optim.AdamW(model.parameters(), fused=True)  # or foreach=False"}};
    case CauseKind::kCacheBetweenPhases:
      return ProgramChange{"return the cache where one phase ends and the next begins",
                           {"torch.cuda.empty_cache()  # between the phases"}};
    case CauseKind::kStreamsDoNotShare:
      return ProgramChange{"allocate on one stream, and let other streams wait for it",
                           {"side_stream.wait_stream(torch.cuda.current_stream())"}};
    case CauseKind::kRecordStream:
      return ProgramChange{"keep the tensor until its stream has been waited for, instead of record_stream",
                           {"torch.cuda.current_stream().wait_stream(side_stream)",
                            "del tensor  # not: tensor.record_stream(side_stream)"}};
    case CauseKind::kGradientsKept:
      return ProgramChange{"clear the gradients of all parameters, and make none for those that are not trained",
                           {"model.zero_grad(set_to_none=True)  # not only those of the optimizer",
                            "for p in frozen.parameters(): p.requires_grad_(False)"}};
    case CauseKind::kActivationsSaved:
      return ProgramChange{"make the activations of each layer anew in the backward pass, or take smaller batches",
                           {"from torch.utils.checkpoint import checkpoint",
                            "x = checkpoint(layer, x, use_reentrant=False)  # not: x = layer(x)"}};
    case CauseKind::kAttentionScores:
      return ProgramChange{"let PyTorch compute attention without keeping its scores",
                           {"x = F.scaled_dot_product_attention(query, key, value, is_causal=True)",
                            "# of transformers: from_pretrained(..., attn_implementation=\"sdpa\")"}};
    case CauseKind::kModelCopies:
      return ProgramChange{"keep the copies of the weights in host memory, or fewer of them",
                           {"copy = {name: value.detach().cpu() for name, value in model.state_dict().items()}"}};
    case CauseKind::kLongLivedTensor:
      return ProgramChange{"keep the tensor in host memory, and move to the device what a step uses",
                           {"data = data.cpu().pin_memory()", "batch = data[part].to(\"cuda\", non_blocking=True)"}};
    case CauseKind::kOptimizerState:
      return ProgramChange{"take an optimizer with less state, or train fewer of the weights",
                           {"optimizer = bitsandbytes.optim.AdamW8bit(model.parameters())  # a quarter of the state"}};
    case CauseKind::kMemoryFraction:
      return ProgramChange{"let the process have more of the device",
                           {"torch.cuda.set_per_process_memory_fraction(1.0)"}};
    default:
      return std::nullopt;
  }
}

// A table of the model's own is used in each step, and trained: it cannot stay on the host.
ProgramChange SmallerTable() {
  return {"make the table smaller: fewer rows, or narrower ones with a layer behind; or train less of it",
          {"table = nn.Sequential(nn.Embedding(rows, width // 4), nn.Linear(width // 4, width))",
           "table.requires_grad_(False)  # no gradient and no state of its size"}};
}

// PyTorch's sdp_utils.cpp: what its fused kernels check of a call.
ProgramChange WhatFusedKernelsTake() {
  return {"give scaled_dot_product_attention what a fused kernel takes: none takes this call, so it keeps its scores",
          {"# below compute capability 8.0 (V100, T4): fp16 or fp32, not bf16; heads of a multiple of 8 numbers",
           "# from 8.0 on: fp16, bf16 or fp32; fp32 and calls with a mask need heads of a multiple of 8 numbers",
           "with torch.nn.attention.sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]):",
           "    loss = model(batch)  # raises where neither takes the call, and PyTorch warns why"}};
}

}  // namespace

std::vector<ProgramRemedy> ProgramRemedies(absl::Span<const TestedCause> causes) {
  std::vector<ProgramRemedy> out;
  for (const TestedCause& cause : causes) {
    const bool is_sure = cause.finding.confidence != analyses::Confidence::kPossible;
    if (cause.finding.finding != analyses::Finding::kFound || !is_sure || cause.finding.is_footnote) continue;
    if (!cause.finding.is_sickness) continue;
    std::optional<ProgramChange> change = cause.finding.is_of_fused_call ? WhatFusedKernelsTake()
                                          : cause.finding.is_of_weights  ? SmallerTable()
                                                                         : ChangeFor(cause.finding.kind);
    if (!change.has_value()) continue;
    ProgramRemedy remedy;
    remedy.cause = cause.finding.kind;
    remedy.sentence = std::string(change->sentence);
    remedy.python = std::move(change->python);
    remedy.bytes = cause.finding.bytes;
    if (cause.fix.has_value() && !cause.fix->is_setting) {
      const std::uint64_t before = cause.fix->before.peak_reserved_bytes;
      remedy.replayed_bytes = before - std::min(before, cause.fix->after.peak_reserved_bytes);
      remedy.is_proven = cause.fix->removes_symptom;
    }
    out.push_back(std::move(remedy));
  }
  return out;
}

}  // namespace ashlar::whatif
