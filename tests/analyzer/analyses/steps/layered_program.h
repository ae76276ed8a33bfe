// A training or inference program with layers, whose steps are known because the test wrote them: where each begins,
// what it leaves behind. What the search for steps is tested against.
#ifndef ASHLAR_TESTS_ANALYZER_ANALYSES_STEPS_LAYERED_PROGRAM_H_
#define ASHLAR_TESTS_ANALYZER_ANALYSES_STEPS_LAYERED_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "allocator/base/rng.h"
#include "tests/analyzer/analyses/steps/plain_program.h"

namespace ashlar::tests {

struct LayeredOptions {
  int steps = 8;
  int layers = 6;
  bool has_stacks = true;
  bool is_training = true;
  int micro_steps = 1;     // gradients are kept over that many passes
  int evaluate_every = 0;  // 0: never; passes of an evaluation after every so many steps
  int evaluation_passes = 2;
  double noise = 0;                 // chance that a request has one of another size behind it, or is left out
  bool has_growing_length = false;  // activations grow from step to step
  int warm_up_requests = 0;         // before the first step, none like another
  std::uint64_t leaked_bytes = 0;   // kept by each step for good
  bool has_optimizer_state = true;  // made in the first step
  bool has_marks = false;
};

class LayeredProgram {
 public:
  LayeredProgram(const LayeredOptions& options, std::uint64_t seed) : options_(options), random_(seed) {
    for (int i = 0; i < options_.warm_up_requests; ++i) {
      Line("load.py", 10, "read_weights");
      program_.Allocate(kUnit * (1000 + random_.Below(100'000)));
    }
    for (int step = 0; step < options_.steps; ++step) {
      begins_.push_back(program_.Now());
      Step(step);
      if (options_.evaluate_every > 0 && (step + 1) % options_.evaluate_every == 0) {
        for (int pass = 0; pass < options_.evaluation_passes; ++pass) Evaluate(step);
      }
    }
  }

  const PlainProgram& program() const { return program_; }
  const std::vector<timeline::EventIndex>& begins() const { return begins_; }  // of each step

 private:
  static constexpr std::uint64_t kUnit = 512;
  using Blocks = std::vector<int>;

  void Line(const char* file, int line, const char* function) {
    if (!options_.has_stacks) return;
    program_.At({{file, line, function}, {"/home/ada/train.py", 40, "main"}});
  }
  void Request(std::uint64_t units, Blocks& into) {
    if (options_.noise > 0 && random_.Unit() < options_.noise) {
      if (random_.Below(2) == 0) return;
      program_.Free(program_.Allocate(kUnit * (1 + random_.Below(1'000'000))));
    }
    into.push_back(program_.Allocate(kUnit * units));
  }
  void Temporary(std::uint64_t units) {
    Blocks one;
    Request(units, one);
    program_.Free(one);
  }
  std::uint64_t Length(int step) const {
    return options_.has_growing_length ? 100 + 3 * static_cast<std::uint64_t>(step) : 100;
  }

  void Forward(std::uint64_t length, bool keeps, Blocks& saved) {
    Line("model.py", 20, "forward");
    Request(length * 7, saved);
    Blocks hidden;
    for (int layer = 0; layer < options_.layers; ++layer) {
      Blocks own;
      Line("model.py", 31, "attention");
      for (const std::uint64_t width : {3, 1, 9, 1}) Request(length * width, own);
      Line("model.py", 38, "mlp");
      for (const std::uint64_t width : {4, 4, 1}) Request(length * width, own);
      Temporary(length * 2);
      if (keeps) {
        saved.insert(saved.end(), own.begin(), own.end());
      } else {
        program_.Free(hidden);
        hidden.push_back(own.back());
        own.pop_back();
        program_.Free(own);
      }
    }
    program_.Free(hidden);
    Line("model.py", 44, "head");
    Request(length * 50, saved);
  }

  void Backward(std::uint64_t length, Blocks& saved, Blocks& gradients) {
    Line("train.py", 52, "loss");
    Request(1, saved);
    Line("torch/_tensor.py", 525, "backward");
    for (int layer = 0; layer < options_.layers; ++layer) {
      Temporary(length * 4);
      for (int i = 0; i < 7 && saved.size() > 2; ++i) {
        program_.Free(saved.back());
        saved.pop_back();
      }
      Blocks made;
      for (const std::uint64_t units : {768, 256, 1024, 1025}) Request(units, made);
      if (gradients.size() < 4 * static_cast<std::size_t>(options_.layers)) {
        gradients.insert(gradients.end(), made.begin(), made.end());
      } else {
        program_.Free(made);
      }
    }
    program_.Free(saved);
  }

  void Optimize(int step) {
    Line("torch/optim/adamw.py", 220, "step");
    if (step == 0 && options_.has_optimizer_state) {
      for (int i = 0; i < 8 * options_.layers; ++i) Request(768 + static_cast<std::uint64_t>(i % 4), state_);
    }
    for (int layer = 0; layer < options_.layers; ++layer) {
      for (const std::uint64_t units : {768, 256, 1024, 1025}) Temporary(units);
    }
  }

  void Step(int step) {
    Blocks gradients;
    if (options_.has_marks) program_.Mark("START", "ProfilerStep#" + std::to_string(step));
    for (int micro = 0; micro < options_.micro_steps; ++micro) {
      Blocks saved;
      Forward(Length(step), options_.is_training, saved);
      if (options_.is_training) Backward(Length(step), saved, gradients);
      program_.Free(saved);
    }
    if (options_.leaked_bytes > 0) {
      Line("train.py", 77, "log_loss");
      program_.Allocate(options_.leaked_bytes);
    }
    if (options_.is_training) Optimize(step);
    program_.Free(gradients);
    if (options_.has_marks) program_.Mark("END", "ProfilerStep#" + std::to_string(step));
  }

  void Evaluate(int step) {
    Blocks saved;
    Forward(Length(step) * 2, false, saved);
    Line("evaluate.py", 9, "evaluate");
    for (const std::uint64_t units : {33, 35, 37}) Request(units, saved);
    program_.Free(saved);
  }

  LayeredOptions options_;
  Rng random_;
  PlainProgram program_;
  Blocks state_;
  std::vector<timeline::EventIndex> begins_;
};

}  // namespace ashlar::tests

#endif  // ASHLAR_TESTS_ANALYZER_ANALYSES_STEPS_LAYERED_PROGRAM_H_
