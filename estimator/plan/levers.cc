#include "estimator/plan/levers.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "analyzer/whatif/parallel.h"
#include "analyzer/whatif/settings_space.h"
#include "estimator/dry_run.h"
#include "estimator/program.h"
#include "kernels/tensor/framework.h"

namespace ashlar::estimate {
namespace {

// What one lever came to, until all are done.
struct Attempt {
  std::string flags;
  absl::StatusOr<Measured> measured = absl::FailedPreconditionError("nothing to change in this run");
};

Attempt Try(const Estimate& of, const Lever& lever) {
  Attempt out;
  Variant variant = VariantOf(of);
  out.flags = lever.pull(of, variant);
  if (!out.flags.empty()) out.measured = Measure(of, variant);
  return out;
}

}  // namespace

Variant VariantOf(const Estimate& of) { return {of.run, of.batching, of.lengths}; }

void Rebatch(const Estimate& of, Variant& variant) {
  if (!variant.lengths.has_value()) return;
  variant.run.batches = EpochOf(*variant.lengths, variant.batching, variant.run.batch, of.seed);
}

absl::StatusOr<Measured> Measure(const Estimate& of, const Variant& variant) {
  Measured out;
  const std::optional<std::uint64_t> capacity = of.run.capacity_bytes;
  if (capacity.has_value()) out.fits = true;
  for (const device::AddressOrder order : {device::AddressOrder::kAscending, device::AddressOrder::kDescending}) {
    DryRunOptions run = variant.run;
    run.capacity_bytes.reset();
    const absl::StatusOr<DryRun> ample = RunDry(of.model, run, order);
    if (!ample.ok()) return ample.status();
    out.device_bytes = std::max(out.device_bytes, of.DeviceBytes(*ample));
    // What never reached the limit goes the same way with it; what is needed at once beyond it cannot fit.
    if (!capacity.has_value() || ample->peak_reserved_bytes <= *capacity || out.fits == false) continue;
    if (ample->peak_requested_bytes > *capacity) {
      out.fits = false;
      continue;
    }
    run.capacity_bytes = capacity;
    const absl::StatusOr<DryRun> limited = RunDry(of.model, run, order);
    if (!limited.ok()) return limited.status();
    out.fits = limited->fits;
  }
  return out;
}

absl::StatusOr<LeverResult> RunLevers(const Estimate& of, std::size_t threads) {
  if (!of.no_dry_run.empty()) return absl::FailedPreconditionError(of.no_dry_run);
  const absl::Span<const Lever> levers = Levers();
  std::vector<Attempt> attempts(levers.size());
  absl::StatusOr<Measured> asked;
  whatif::RunInParallel(levers.size() + 1, whatif::ThreadCount(threads), [&](std::size_t i) {
    if (i == levers.size()) {
      asked = Measure(of, VariantOf(of));
    } else {
      attempts[i] = Try(of, levers[i]);
    }
  });
  if (!asked.ok()) return asked.status();
  LeverResult out;
  out.asked = *asked;
  for (std::size_t i = 0; i < levers.size(); ++i) {
    Attempt& attempt = attempts[i];
    if (!attempt.measured.ok()) {
      out.skipped.push_back({&levers[i], std::string(attempt.measured.status().message())});
      continue;
    }
    const auto saved =
        static_cast<std::int64_t>(asked->device_bytes) - static_cast<std::int64_t>(attempt.measured->device_bytes);
    out.rows.push_back({&levers[i], std::move(attempt.flags), *attempt.measured, saved});
  }
  std::stable_sort(out.rows.begin(), out.rows.end(),
                   [](const LeverRow& a, const LeverRow& b) { return a.saved_bytes > b.saved_bytes; });
  return out;
}

namespace {

std::string SetConf(const char* conf, Variant& variant) {
  const std::string key(conf, absl::string_view(conf).find(':'));
  if (absl::StrContains(variant.run.conf, key)) return "";
  variant.run.conf = whatif::JoinConfs(conf, variant.run.conf);
  return absl::StrCat("--conf ", variant.run.conf);
}
std::string Expandable(const Estimate&, Variant& variant) { return SetConf("expandable_segments:True", variant); }
std::string SplitLimit(const Estimate&, Variant& variant) { return SetConf("max_split_size_mb:128", variant); }
std::string Roundup(const Estimate&, Variant& variant) { return SetConf("roundup_power2_divisions:8", variant); }

bool IsAdamW(const std::string& optimizer) { return absl::StartsWith(optimizer, "adamw") && optimizer != "adamw-8bit"; }
bool IsForeach(const DryRunOptions& run) {
  const absl::StatusOr<kernels::Framework> framework = kernels::FrameworkOf(run.torch_version);
  return run.optimizer == "adamw-foreach" ||
         (run.optimizer == "adamw" && framework.ok() && framework->optimizers_are_foreach);
}
std::string SetOptimizer(const char* optimizer, Variant& variant) {
  if (!variant.run.is_training || variant.run.optimizer == optimizer) return "";
  variant.run.optimizer = optimizer;
  return absl::StrCat("--optimizer ", optimizer);
}
std::string Fused(const Estimate&, Variant& variant) {
  return IsAdamW(variant.run.optimizer) ? SetOptimizer("adamw-fused", variant) : "";
}
std::string Loop(const Estimate&, Variant& variant) {
  return IsForeach(variant.run) ? SetOptimizer("adamw-loop", variant) : "";
}
std::string EightBit(const Estimate&, Variant& variant) { return SetOptimizer("adamw-8bit", variant); }
std::string Adafactor(const Estimate&, Variant& variant) { return SetOptimizer("adafactor", variant); }
std::string Momentum(const Estimate&, Variant& variant) {
  return variant.run.optimizer == "sgd" ? "" : SetOptimizer("sgd-momentum", variant);
}
std::string Sgd(const Estimate&, Variant& variant) { return SetOptimizer("sgd", variant); }

std::string SetBatching(Batching batching, const Estimate& of, Variant& variant) {
  if (!variant.lengths.has_value() || variant.batching >= batching) return "";
  variant.batching = batching;
  Rebatch(of, variant);
  return absl::StrCat("--batching ", BatchingName(batching));
}
std::string Dynamic(const Estimate& of, Variant& variant) { return SetBatching(Batching::kDynamic, of, variant); }
std::string Uniform(const Estimate& of, Variant& variant) { return SetBatching(Batching::kUniform, of, variant); }

// The same samples a step in batches a `times`-th as large.
std::string Accumulate(std::int64_t times, const Estimate& of, Variant& variant) {
  DryRunOptions& run = variant.run;
  if (!run.is_training || times < 2 || run.batch % times != 0) return "";
  run.batch /= times;
  run.accumulation *= times;
  Rebatch(of, variant);
  return absl::StrCat("--batch ", run.batch, " --accumulation ", run.accumulation);
}
std::string AccumulateTwo(const Estimate& of, Variant& variant) { return Accumulate(2, of, variant); }
std::string AccumulateAll(const Estimate& of, Variant& variant) {
  return variant.run.batch > 2 ? Accumulate(variant.run.batch, of, variant) : "";
}
std::string HalfBatch(const Estimate& of, Variant& variant) {
  if (variant.run.batch < 2) return "";
  variant.run.batch /= 2;
  Rebatch(of, variant);
  return absl::StrCat("--batch ", variant.run.batch);
}

std::string SetPrecision(Precision precision, Variant& variant) {
  if (variant.run.precision != Precision::kFloat32) return "";
  variant.run.precision = precision;
  return absl::StrCat("--precision ", PrecisionName(precision));
}
std::string BFloat16(const Estimate&, Variant& variant) {
  const bool has_bfloat16 = variant.run.gpu != "V100" && variant.run.gpu != "T4";
  return has_bfloat16 ? SetPrecision(Precision::kBFloat16Mixed, variant) : "";
}
std::string Float16(const Estimate&, Variant& variant) { return SetPrecision(Precision::kFloat16Mixed, variant); }

std::string Checkpoint(const Estimate&, Variant& variant) {
  if (!variant.run.is_training || variant.run.is_checkpointed) return "";
  variant.run.is_checkpointed = true;
  return "--checkpointing";
}

// For a run that was asked to be eager where transformers of that time would not have been.
std::string FusedAttention(const Estimate& of, Variant& variant) {
  if (variant.run.attention != kernels::Attention::kEager) return "";
  if (DefaultAttention(of.model, variant.run) != kernels::Attention::kSdpa) return "";
  variant.run.attention = kernels::Attention::kSdpa;
  return "--attention sdpa";
}

std::string DropOutputs(const Estimate&, Variant& variant) {
  if (!variant.run.keeps_outputs) return "";
  variant.run.keeps_outputs = false;
  return "--keep-outputs=false";
}

std::string HostEmbeddings(const Estimate&, Variant& variant) {
  if (variant.run.switches.has_host_embeddings) return "";
  variant.run.switches.has_host_embeddings = true;
  return "--embeddings-cpu";
}
std::string FreezeEmbeddings(const Estimate& of, Variant& variant) {
  if (!variant.run.is_training) return "";
  std::vector<std::string> modules;
  for (const ModelParameter& parameter : of.model.parameters) {
    if (!IsEmbedding(parameter) || parameter.is_frozen) continue;
    modules.emplace_back(absl::StripSuffix(parameter.name, ".weight"));
  }
  if (modules.empty()) return "";
  std::vector<std::string>& frozen = variant.run.switches.frozen;
  frozen.insert(frozen.end(), modules.begin(), modules.end());
  return absl::StrCat("--freeze ", absl::StrJoin(frozen, ","));
}
std::string Tie(const Estimate& of, Variant& variant) {
  const auto is_head = [](const ModelParameter& parameter) { return parameter.name == "lm_head.weight"; };
  if (std::none_of(of.model.parameters.begin(), of.model.parameters.end(), is_head)) return "";
  variant.run.switches.ties_embeddings = true;
  return "--tie";
}
std::string Share(const Estimate& of, Variant& variant) {
  if (variant.run.switches.shares_embeddings != false) return "";  // encoder-decoders share unless told otherwise
  variant.run.switches.shares_embeddings = true;
  return of.model.family == "t5" ? "--shared-embeddings" : "";
}

std::string HalfSequence(const Estimate& of, Variant& variant) {
  if (of.model.tokens_a_sample.has_value() || variant.run.tokens < 2) return "";
  variant.run.tokens /= 2;
  if (variant.lengths.has_value()) variant.lengths->CutTo(variant.run.tokens);
  Rebatch(of, variant);
  return absl::StrCat("--seq ", variant.run.tokens);
}

// The number after the last layer's: "encoder.layer.11" makes 12.
std::int64_t LayersOf(const Estimate& of) {
  std::int64_t out = 0;
  for (const LayerSum& layer : of.layers) {
    std::int64_t number = 0;
    if (absl::SimpleAtoi(layer.name.substr(layer.name.rfind('.') + 1), &number)) out = std::max(out, number + 1);
  }
  return out;
}
std::string HalfLayers(const Estimate& of, Variant& variant) {
  const std::int64_t layers = LayersOf(of);
  if (layers < 2) return "";
  variant.run.switches.layers = layers / 2;
  return absl::StrCat("--layers ", layers / 2);
}
std::string HalfVocabulary(const Estimate& of, Variant& variant) {
  std::int64_t rows = 0;
  for (const ModelParameter& parameter : of.model.parameters) {
    if (IsEmbedding(parameter)) rows = std::max(rows, parameter.sizes[0]);
  }
  if (rows < 2) return "";
  variant.run.switches.vocabulary = rows / 2;
  return absl::StrCat("--vocab ", rows / 2);
}

using enum LeverGroup;
constexpr Lever kLevers[] = {
    {kSettings, 1, "expandable segments", "the driver's virtual memory management; PyTorch 2 or later", Expandable},
    {kSettings, 0, "a split limit of 128 MiB", "more calls to the driver", SplitLimit},
    {kSettings, 0, "rounding to eighths of a power of two", "up to an eighth of each tensor", Roundup},
    {kOptimizer, 1, "fused AdamW", "nothing: the same arithmetic in one kernel", Fused},
    {kOptimizer, 2, "AdamW one parameter at a time", "one launch a parameter and operation: foreach=False", Loop},
    {kPadding, 1, "batches padded to their own longest", "nothing: less padding", Dynamic},
    {kPadding, 2, "batches of about one length", "batches are less random: group_by_length", Uniform},
    {kAccumulation, 2, "half the batch, twice accumulated", "smaller kernels: less of the GPU is used", AccumulateTwo},
    {kAccumulation, 4, "batches of 1, accumulated", "the smallest kernels: slow on a large GPU", AccumulateAll},
    {kPrecision, 3, "autocast to bf16", "matrix products with 8 bits of mantissa; faster on tensor cores", BFloat16},
    {kPrecision, 4, "autocast to fp16", "loss scaling, skipped steps; faster on tensor cores", Float16},
    {kCheckpointing, 5, "checkpointing", "one more forward pass: about a third more compute", Checkpoint},
    {kOptimizer, 6, "8-bit AdamW", "states rounded block by block; needs bitsandbytes", EightBit},
    {kEmbeddings, 6, "embeddings on the host", "lookups and their update on the CPU, a copy each step", HostEmbeddings},
    {kOptimizer, 7, "Adafactor", "factored second moments, no first one: another learning rate", Adafactor},
    {kEmbeddings, 8, "frozen embeddings", "embeddings do not learn", FreezeEmbeddings},
    {kOptimizer, 9, "SGD with momentum", "no second moments: often worse for transformers", Momentum},
    {kOptimizer, 10, "SGD", "no moments: often much worse for transformers", Sgd},
    {kAttention, 1, "fused attention", "nothing, where attention weights are not wanted themselves", FusedAttention},
    {kOutputs, 1, "outputs deleted after each step", "nothing: del outputs, loss at the end of the step", DropOutputs},
    {kSequence, 12, "half as long sequences", "what is longer is cut", HalfSequence},
    {kModel, 0, "tied embeddings", "another model: input and output share a table", Tie},
    {kModel, 0, "embeddings shared by encoder and decoder", "another model", Share},
    {kModel, 0, "half the vocabulary", "another tokenizer, or rare tokens given up", HalfVocabulary},
    {kModel, 0, "half the layers", "another model: often worse", HalfLayers},
    {kAccumulation, 0, "half the batch", "half the samples a step: another training", HalfBatch},
};

}  // namespace

absl::Span<const Lever> Levers() { return kLevers; }

}  // namespace ashlar::estimate
