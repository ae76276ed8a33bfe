// Runs a fuzz target without libFuzzer, so that it is built and holds in every build: over each file of the corpus
// folders given, over every short prefix of it, and over copies with flipped bits. Deterministic.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "allocator/base/rng.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t kPrefixes = 200;
constexpr int kFlippedCopies = 200;

using Bytes = std::vector<std::uint8_t>;

void Run(const Bytes& bytes) { LLVMFuzzerTestOneInput(bytes.data(), bytes.size()); }

Bytes ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(in), {});
}

void RunPrefixes(const Bytes& bytes) {
  const std::size_t step = std::max<std::size_t>(1, bytes.size() / kPrefixes);
  for (std::size_t size = 0; size < bytes.size(); size += step) Run(Bytes(bytes.data(), bytes.data() + size));
}

void RunFlipped(const Bytes& bytes, ashlar::Rng& rng) {
  if (bytes.empty()) return;
  for (int copy = 0; copy < kFlippedCopies; ++copy) {
    Bytes flipped = bytes;
    for (std::uint64_t flips = rng.Between(1, 5); flips > 0; --flips) {
      flipped[rng.Below(flipped.size())] ^= static_cast<std::uint8_t>(1u << rng.Below(8));
    }
    Run(flipped);
  }
}

std::vector<std::filesystem::path> FilesOf(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  ashlar::Rng rng(1);
  std::size_t ran = 0;
  Run({});
  for (int i = 1; i < argc; ++i) {
    for (const std::filesystem::path& path : FilesOf(argv[i])) {
      const Bytes bytes = ReadFile(path);
      Run(bytes);
      RunPrefixes(bytes);
      RunFlipped(bytes, rng);
      ++ran;
    }
  }
  std::printf("ran over %zu corpus files\n", ran);
  return argc > 1 && ran == 0 ? 1 : 0;
}
