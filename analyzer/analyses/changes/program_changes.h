// What a program can change so that it takes less memory: one row a change, for whoever proposes it. A cause names the
// change that is against it (causes/cause_table.h), and `ashlar estimate` tries those that a dry run can
// (plan/levers.h).
//
//   changes::kCheckpointing.python        // what the user writes
//   changes::kCheckpointing.price         // what it costs a training, against other changes
//
// The lines of Python are those of each call's own documentation.
#ifndef ASHLAR_ANALYZER_ANALYSES_CHANGES_PROGRAM_CHANGES_H_
#define ASHLAR_ANALYZER_ANALYSES_CHANGES_PROGRAM_CHANGES_H_

#include "absl/strings/string_view.h"

namespace ashlar::analyses {

struct ProgramChange {
  absl::string_view name = "";      // "checkpointing"; empty: it is proposed by its sentence alone
  absl::string_view costs = "";     // in words, one line
  int price = 0;                    // 0: not known, or another training, which is never taken for the user
  double saves_at_most = 1;         // of the bytes of the cause that it is against
  absl::string_view sentence = "";  // what to do; empty: no cause names it
  absl::string_view python = "";    // what to write, a line a line
  // The changes of `ashlar fit` that make it from outside, with commas; empty: it is made in the program alone.
  absl::string_view from_outside = "";
};

}  // namespace ashlar::analyses

namespace ashlar::analyses::changes {

// --- what the training computes anew, in parts or in fewer bits ---

// A checkpointed pass still keeps the inputs of its parts.
inline constexpr ProgramChange kCheckpointing{
    .name = "checkpointing",
    .costs = "one more forward pass: about a third more compute",
    .price = 5,
    .saves_at_most = 2.0 / 3,
    .sentence = "make the activations of each layer anew in the backward pass, or take smaller batches",
    .python =
        "from torch.utils.checkpoint import checkpoint\n"
        "x = checkpoint(layer, x, use_reentrant=False)  # not: x = layer(x)",
    .from_outside = "checkpointing,checkpointing-half,half-batch"};
// Logits in parts are still a tenth. trl pull request 6858: 47.55 to 3.09 GB.
inline constexpr ProgramChange kLossInParts{
    .saves_at_most = 0.9,
    .sentence = "compute the loss over parts of the sequence, so that not all logits exist at once",
    .python =
        "part = lambda h, y: F.cross_entropy(lm_head(h), y, reduction=\"sum\")\n"
        "parts = zip(hidden.split(1024), labels.split(1024))\n"
        "loss = sum(checkpoint(part, h, y, use_reentrant=False) for h, y in parts) / labels.numel()",
    .from_outside = "chunked-loss"};
// transformers: the argument of a causal model's forward().
inline constexpr ProgramChange kLogitsOfTheLast{
    .saves_at_most = 1,
    .sentence = "ask for the logits of the positions that are read alone, or take fewer sequences at once",
    .python = "logits = model(input_ids=ids, logits_to_keep=1).logits  # of the last position of each sequence"};
inline constexpr ProgramChange kFusedAttention{
    .name = "fused attention",
    .costs = "nothing, where attention weights are not wanted themselves",
    .price = 1,
    .sentence = "let PyTorch compute attention without keeping its scores",
    .python =
        "x = F.scaled_dot_product_attention(query, key, value, is_causal=True)  # is_causal, mask and scale as yours\n"
        "# with transformers, instead: from_pretrained(..., attn_implementation=\"sdpa\")",
    .from_outside = "sdpa"};
// PyTorch's sdp_utils.cpp: what its fused kernels check of a call.
inline constexpr ProgramChange kWhatFusedKernelsTake{
    .sentence =
        "give scaled_dot_product_attention what a fused kernel takes: none takes this call, so it keeps its scores",
    .python =
        "# below compute capability 8.0 (V100, T4): fp16 or fp32, not bf16; heads of a multiple of 8 numbers\n"
        "# from 8.0 on: fp16, bf16 or fp32; fp32 and calls with a mask need heads of a multiple of 8 numbers\n"
        "with torch.nn.attention.sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]):\n"
        "    loss = model(batch)  # raises where neither takes the call, and PyTorch warns why"};
inline constexpr ProgramChange kBFloat16{
    .name = "autocast to bf16", .costs = "matrix products with 8 bits of mantissa; faster on tensor cores", .price = 3};
inline constexpr ProgramChange kFloat16{
    .name = "autocast to fp16", .costs = "loss scaling, skipped steps; faster on tensor cores", .price = 4};

// --- the optimizer ---

inline constexpr ProgramChange kFusedAdamW{
    .name = "fused AdamW",
    .costs = "nothing: the same arithmetic in one kernel",
    .price = 1,
    .sentence = "update in one kernel, which makes no temporaries, or one parameter after the other",
    .python = "optimizer = torch.optim.AdamW(model.parameters(), fused=True)  # or foreach=False",
    .from_outside = "fused-optimizer,no-foreach"};
inline constexpr ProgramChange kLoopedAdamW{.name = "AdamW one parameter at a time",
                                            .costs = "one launch a parameter and operation: foreach=False",
                                            .price = 2};
// States of 8 bits still take a quarter.
inline constexpr ProgramChange kEightBitAdamW{
    .name = "8-bit AdamW",
    .costs = "states rounded block by block; needs bitsandbytes",
    .price = 6,
    .saves_at_most = 3.0 / 4,
    .sentence = "take an optimizer with less state, or train fewer of the weights",
    .python = "optimizer = bitsandbytes.optim.AdamW8bit(model.parameters())  # a quarter of the state",
    .from_outside = "adam-8bit,adafactor,sgd,states-to-host"};
inline constexpr ProgramChange kAdafactor{
    .name = "Adafactor", .costs = "factored second moments, no first one: another learning rate", .price = 7};
inline constexpr ProgramChange kSgdWithMomentum{
    .name = "SGD with momentum", .costs = "no second moments: often worse for transformers", .price = 9};
inline constexpr ProgramChange kSgd{
    .name = "SGD", .costs = "no moments: often much worse for transformers", .price = 10};

// --- batches ---

inline constexpr ProgramChange kPadToOwnLongest{
    .name = "batches padded to their own longest", .costs = "nothing: less padding", .price = 1};
inline constexpr ProgramChange kGroupByLength{
    .name = "batches of about one length", .costs = "batches are less random: group_by_length", .price = 2};
inline constexpr ProgramChange kLargestFirst{
    .sentence = "let the largest batch come first: what it leaves in the cache serves all that follow",
    .python = "data = sorted(data, key=len, reverse=True)  # or one step on the longest batch before all others",
    .from_outside = "one-length"};
inline constexpr ProgramChange kAccumulateTwice{
    .name = "half the batch, twice accumulated", .costs = "smaller kernels: less of the GPU is used", .price = 2};
inline constexpr ProgramChange kAccumulateSingles{
    .name = "batches of 1, accumulated", .costs = "the smallest kernels: slow on a large GPU", .price = 4};
inline constexpr ProgramChange kHalfBatch{.name = "half the batch",
                                          .costs = "half the samples a step: another training"};
inline constexpr ProgramChange kHalfSequence{
    .name = "half as long sequences", .costs = "what is longer is cut", .price = 12};

// --- the model ---

inline constexpr ProgramChange kHostEmbeddings{
    .name = "embeddings on the host", .costs = "lookups and their update on the CPU, a copy each step", .price = 6};
inline constexpr ProgramChange kFrozenEmbeddings{
    .name = "frozen embeddings", .costs = "embeddings do not learn", .price = 8};
// A table of the model's own is used in each step, and trained: it cannot stay on the host.
inline constexpr ProgramChange kSmallerTable{
    .sentence = "make the table smaller: fewer rows, or narrower ones with a layer behind; or train less of it",
    .python =
        "table = nn.Sequential(nn.Embedding(rows, width // 4), nn.Linear(width // 4, width))\n"
        "table.requires_grad_(False)  # no gradient and no state of its size"};
inline constexpr ProgramChange kTiedEmbeddings{.name = "tied embeddings",
                                               .costs = "another model: input and output share a table"};
inline constexpr ProgramChange kSharedEmbeddings{.name = "embeddings shared by encoder and decoder",
                                                 .costs = "another model"};
inline constexpr ProgramChange kHalfVocabulary{.name = "half the vocabulary",
                                               .costs = "another tokenizer, or rare tokens given up"};
inline constexpr ProgramChange kHalfLayers{.name = "half the layers", .costs = "another model: often worse"};

// --- what is kept, and where ---

inline constexpr ProgramChange kDropOutputs{.name = "outputs deleted after each step",
                                            .costs = "nothing: del outputs, loss at the end of the step",
                                            .price = 1};
inline constexpr ProgramChange kNumbersNotTensors{
    .sentence = "keep numbers, not tensors that still know their graph; cut what goes on to the next step",
    .python =
        "total_loss += loss.item()  # not: total_loss += loss\n"
        "(loss / parts).backward()  # of each part of a batch; not: total += loss / parts\n"
        "loss.backward()  # not: retain_graph=True\n"
        "state = state.detach()"};
inline constexpr ProgramChange kMoveOffDevice{.sentence = "move what is kept off the device, or let it go",
                                              .python = "kept.append(output.detach().cpu())"};
inline constexpr ProgramChange kRoomForAll{
    .sentence =
        "keep the parts on the host, or give the tensor its room from the start: torch.cat has the old one and the new "
        "one at once",
    .python =
        "parts.append(new.cpu())  # not: rows = torch.cat([rows, new])\n"
        "rows[count:count + len(new)] = new  # of a tensor with room for all"};
inline constexpr ProgramChange kRemoveHook{
    .sentence = "remove the hook when it has seen enough, or keep its copies in host memory",
    .python =
        "handle = module.register_forward_hook(hook)\n"
        "handle.remove()\n"
        "seen.append(output.detach().cpu())  # in the hook"};
inline constexpr ProgramChange kBoundedCache{
    .sentence = "bound the cache: it keeps one result for each new argument",
    .python = "@functools.lru_cache(maxsize=8)  # not: maxsize=None, functools.cache"};
inline constexpr ProgramChange kBreakCycle{
    .sentence =
        "break the cycle, or collect it: its memory waits for Python's collector, which counts objects, no bytes",
    .python =
        "ctx.save_for_backward(output)  # not: ctx.output = output; weakref.ref(parent) of a child\n"
        "gc.collect()  # every few steps, where the cycle cannot go",
    .from_outside = "gc-collect"};
inline constexpr ProgramChange kCopyOfPart{
    .sentence = "keep a copy of the part: a view keeps the whole tensor that it was cut from",
    .python = "kept.append(hidden[:, 0].clone())  # or .cpu(); not: kept.append(hidden[:, 0])"};
inline constexpr ProgramChange kCutHistory{
    .sentence = "let the optimizer keep the last few steps alone",
    .python = "del history[:-10]  # after each append; torch.optim.LBFGS(..., history_size=10)"};
inline constexpr ProgramChange kDropOptimizer{
    .sentence = "let the optimizer go with its model: it keeps parameters, gradients and state",
    .python = "del model, optimizer"};
inline constexpr ProgramChange kNewestOptimizer{
    .sentence = "keep the newest optimizer alone: each keeps a state of its own for all its parameters",
    .python = "optimizers.clear()  # before the next one is made, with what holds one"};
inline constexpr ProgramChange kCacheWithRoom{
    .sentence = "give the cache its room from the start, and drop it when its sequence ends",
    .python =
        "key = torch.empty(batch, heads, max_length, width, device=\"cuda\", dtype=dtype)\n"
        "key[:, :, at:at + 1] = new_key  # not: key = torch.cat([key, new_key], 2)\n"
        "model.generate(ids, cache_implementation=\"static\")  # transformers",
    .from_outside = "static-cache"};
inline constexpr ProgramChange kRetryAfterExcept{
    .sentence = "retry after the except block, when the exception and its frames are gone",
    .python =
        "failed = False\n"
        "try:\n"
        "    step(batch)\n"
        "except torch.cuda.OutOfMemoryError:\n"
        "    failed = True  # keep str(error), not the error\n"
        "if failed:\n"
        "    step(smaller(batch))"};
inline constexpr ProgramChange kInferenceMode{.sentence = "evaluate without keeping what only a backward pass needs",
                                              .python =
                                                  "with torch.inference_mode():\n"
                                                  "    evaluate(model)",
                                              .from_outside = "no-grad-eval"};
inline constexpr ProgramChange kPredictionsOffDevice{.sentence = "move each batch of predictions off the device",
                                                     .python = "predictions.append(logits.detach().cpu())",
                                                     .from_outside = "outputs-to-host"};
inline constexpr ProgramChange kLoadOnHost{.sentence = "load the checkpoint into host memory, and let it go",
                                           .python =
                                               "state = torch.load(path, map_location=\"cpu\")\n"
                                               "model.load_state_dict(state)\n"
                                               "del state"};
inline constexpr ProgramChange kClearGradients{
    .sentence = "clear the gradients of all parameters, and make none for those that are not trained",
    .python =
        "model.zero_grad(set_to_none=True)  # not only those of the optimizer\n"
        "for p in frozen.parameters(): p.requires_grad_(False)",
    .from_outside = "set-to-none,early-zero-grad"};
inline constexpr ProgramChange kCopiesOnHost{
    .sentence = "keep the copies of the weights in host memory, or fewer of them",
    .python = "copy = {name: value.detach().cpu() for name, value in model.state_dict().items()}"};
inline constexpr ProgramChange kNoAutocastCache{
    .sentence = "load the weights in half precision for an inference, or let autocast keep no casts of them",
    .python =
        "model.half()  # in place of autocast\n"
        "with torch.autocast(\"cuda\", cache_enabled=False):  # or a block for each batch"};
inline constexpr ProgramChange kTensorOnHost{
    .sentence = "keep the tensor in host memory, and move to the device what a step uses",
    .python =
        "data = data.cpu().pin_memory()\n"
        "batch = data[part].to(\"cuda\", non_blocking=True)"};

// --- how the program calls the allocator, and its settings ---

inline constexpr ProgramChange kLeaveTheCache{.sentence = "leave the cache to the allocator",
                                              .python = "# remove: torch.cuda.empty_cache()"};
inline constexpr ProgramChange kEmptyBetweenPhases{
    .sentence = "return the cache where one phase ends and the next begins",
    .python = "torch.cuda.empty_cache()  # between the phases"};
// docs/library/sleep.md
inline constexpr ProgramChange kStateAsleep{
    .sentence = "let the optimizer's state sleep while an evaluation or a generation runs",
    .python =
        "import ashlar_gpu.torch  # ashlar_gpu.torch.install() before the first tensor on the device\n"
        "with ashlar_gpu.torch.tag(\"optimizer\"): optimizer.step()\n"
        "ashlar_gpu.torch.sleep(\"optimizer\")  # where the evaluation begins\n"
        "ashlar_gpu.torch.wake(\"optimizer\")  # where the training goes on"};
inline constexpr ProgramChange kAllocateOnOneStream{
    .sentence = "allocate on one stream, and let other streams wait for it",
    .python = "side_stream.wait_stream(torch.cuda.current_stream())"};
inline constexpr ProgramChange kWaitForStream{
    .sentence = "keep the tensor until its stream has been waited for, instead of record_stream",
    .python =
        "torch.cuda.current_stream().wait_stream(side_stream)\n"
        "del tensor  # not: tensor.record_stream(side_stream)"};
inline constexpr ProgramChange kWholeFraction{.sentence = "let the process have more of the device",
                                              .python = "torch.cuda.set_per_process_memory_fraction(1.0)"};
inline constexpr ProgramChange kExpandableSegments{
    .name = "expandable segments", .costs = "the driver's virtual memory management; PyTorch 2 or later", .price = 1};
inline constexpr ProgramChange kSplitLimit{.name = "a split limit of 128 MiB", .costs = "more calls to the driver"};
inline constexpr ProgramChange kRoundup{.name = "rounding to eighths of a power of two",
                                        .costs = "up to an eighth of each tensor"};

}  // namespace ashlar::analyses::changes

#endif  // ASHLAR_ANALYZER_ANALYSES_CHANGES_PROGRAM_CHANGES_H_
