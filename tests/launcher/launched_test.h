// A fixture for the commands that start a program: /bin/sh stands for the program, and leaves in the run folder what
// the preloaded library and the Python part would. The library itself is any that can be preloaded.
#ifndef ASHLAR_TESTS_LAUNCHER_LAUNCHED_TEST_H_
#define ASHLAR_TESTS_LAUNCHER_LAUNCHED_TEST_H_

#include <dlfcn.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "nlohmann/json.hpp"
#include "tests/console/program_run.h"

namespace ashlar {

class LaunchedTest : public CliTest {
 protected:
  LaunchedTest() {
    namespace fs = std::filesystem;
    for (const char* part : {"shims", "python", "runs"}) fs::create_directories(folder_ + part);
    Dl_info library{};
    dladdr(reinterpret_cast<const void*>(&zlibVersion), &library);
    fs::remove(folder_ + "libashlar_hollow.so");
    fs::create_symlink(fs::canonical(library.dli_fname), folder_ + "libashlar_hollow.so");
    Write("shims/libcuda.so.1", "");
    Write("shims/libnvidia-ml.so.1", "");
    Write("python/sitecustomize.py", "");
    setenv("ASHLAR_HOLLOW_LIB", (folder_ + "libashlar_hollow.so").c_str(), 1);
  }
  ~LaunchedTest() override { unsetenv("ASHLAR_HOLLOW_LIB"); }

  // A program of shell lines.
  std::string Script(const std::string& name, const std::string& lines) const {
    const std::string path = Write(name, "#!/bin/sh\n" + lines);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

  // The line that puts a file into the run folder; $$ in the name is the process's number.
  std::string Leaving(const std::string& name, const std::string& file) const {
    return "cp '" + file + "' \"$ASHLAR_RECORD/" + name + "\"\n";
  }
  std::string LeavingText(const std::string& name, const nlohmann::json& content) const {
    const std::string file = Write("left_" + std::to_string(++left_), content.dump());
    return Leaving(name, file);
  }

  // As the library reports a process that held `peak_bytes` of device 0.
  static nlohmann::json Books(std::uint64_t peak_bytes, std::uint64_t out_of_memory = 0) {
    return {{"pid", 1},
            {"program", "python"},
            {"args", {"train.py"}},
            {"devices",
             {{{"ordinal", 0},
               {"total_bytes", std::uint64_t{16} << 30},
               {"context_bytes", std::uint64_t{409} << 20},
               {"peak_bytes", peak_bytes},
               {"used_at_end_bytes", 0},
               {"out_of_memory", out_of_memory}}}},
            {"pinned_peak_bytes", 0},
            {"launches", 3},
            {"found_done", 0},
            {"refused", nlohmann::json::array()},
            {"made_up", nlohmann::json::array()},
            {"made_up_total", 0}};
  }

  static nlohmann::json Info(const nlohmann::json& rank, std::uint64_t peak_reserved_bytes, std::uint64_t ooms = 0) {
    return {{"pid", 1},
            {"argv", {"train.py"}},
            {"rank", rank},
            {"torch", "2.14.1"},
            {"devices",
             {{{"index", 0},
               {"peak_allocated", peak_reserved_bytes / 2},
               {"peak_reserved", peak_reserved_bytes},
               {"num_ooms", ooms},
               {"num_alloc_retries", ooms}}}},
            {"exception", ooms > 0 ? nlohmann::json("torch.OutOfMemoryError: CUDA out of memory") : nullptr}};
  }

  // The line that leaves the accounting that all processes share: the peak of device 0, and a process that died and
  // held bytes.
  std::string LeavingSharedAccounting(std::uint64_t peak_bytes, std::int32_t dead, std::uint64_t held_bytes) const {
    std::string bytes(64, '\0');
    bytes += std::string("ashlar-books 1\n\0", 16);
    const auto add = [&bytes](std::uint64_t value, std::size_t size) {
      bytes.append(reinterpret_cast<const char*>(&value), size);
    };
    bytes.append(64 * 8, '\0');  // in use now
    add(peak_bytes, 8);
    bytes.append(63 * 8, '\0');
    for (const std::uint64_t value : {static_cast<std::uint64_t>(dead), std::uint64_t{1}, held_bytes}) add(value, 8);
    bytes.append(63 * 8 + 1023 * (16 + 64 * 8), '\0');
    return Leaving("books", Write("shared_accounting", bytes));
  }

  static std::string OutOfMemorySnapshot() { return ASHLAR_SOURCE_DIR "/docs/examples/training_oom.pickle"; }

  mutable int left_ = 0;
};

}  // namespace ashlar

#endif  // ASHLAR_TESTS_LAUNCHER_LAUNCHED_TEST_H_
