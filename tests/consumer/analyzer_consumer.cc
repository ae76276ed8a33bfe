// A program of somebody else that explains the file it is given: ashlar::analyzer alone.
#include <ashlar/explain.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const absl::StatusOr<std::string> text = ashlar::ExplainFile(argv[1]);
  if (!text.ok() || text->find("VERDICT") == std::string::npos) {
    std::fprintf(stderr, "consumer: %s\n", text.status().ToString().c_str());
    return 1;
  }
  std::printf("%s is explained\n", argv[1]);
  return 0;
}
