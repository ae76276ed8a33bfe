#include "launcher/program.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace ashlar::cli {
namespace {

// The processors whose code the auditor reads (hollow/audit).
#if defined(__x86_64__)
constexpr std::uint16_t kOwnMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr std::uint16_t kOwnMachine = EM_AARCH64;
#else
constexpr std::uint16_t kOwnMachine = EM_NONE;
#endif

constexpr int kMostScripts = 5;  // an interpreter may be a script too; Linux follows as many
constexpr char kUsualPath[] = "/usr/local/bin:/usr/bin:/bin";

// The bytes of a file while it lives.
class ProgramBytes {
 public:
  explicit ProgramBytes(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat facts {};
    if (file >= 0 && fstat(file, &facts) == 0 && facts.st_size > 0) {
      size_ = static_cast<std::size_t>(facts.st_size);
      data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    }
    if (file >= 0) close(file);
  }
  ~ProgramBytes() {
    if (data_ != MAP_FAILED) munmap(data_, size_);
  }
  ProgramBytes(const ProgramBytes&) = delete;
  ProgramBytes& operator=(const ProgramBytes&) = delete;

  absl::string_view bytes() const {
    return data_ == MAP_FAILED ? absl::string_view() : absl::string_view(static_cast<const char*>(data_), size_);
  }

 private:
  void* data_ = MAP_FAILED;
  std::size_t size_ = 0;
};

bool IsFile(const std::string& path) {
  struct stat facts {};
  return stat(path.c_str(), &facts) == 0 && S_ISREG(facts.st_mode);
}

// The first file of that name in PATH that can be executed, else the first at all.
std::string InPath(const std::string& name) {
  const char* variable = std::getenv("PATH");
  std::string first;
  for (const absl::string_view folder : absl::StrSplit(variable != nullptr ? variable : kUsualPath, ':')) {
    const std::string path = absl::StrCat(folder.empty() ? "." : folder, "/", name);
    if (!IsFile(path)) continue;
    if (access(path.c_str(), X_OK) == 0) return path;
    if (first.empty()) first = path;
  }
  return first;
}

FoundProgram NotFound(const std::string& name, const std::string& why) {
  return {"", absl::StrCat(name, ": ", why), kNotFound};
}

FoundProgram Located(const std::string& name) {
  const bool has_folder = absl::StrContains(name, '/');
  const std::string path = has_folder ? name : InPath(name);
  if (path.empty()) return NotFound(name, "not found in PATH");
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0) return NotFound(name, std::strerror(errno));
  if (S_ISDIR(facts.st_mode)) return {"", absl::StrCat(name, ": is a folder"), kNotExecutable};
  if (access(path.c_str(), X_OK) != 0) return {"", absl::StrCat(name, ": ", std::strerror(errno)), kNotExecutable};
  return {path};
}

// As the dynamic linker has it: with these it takes no library from the environment.
bool GetsPrivileges(const std::string& path) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) == 0 && (facts.st_mode & (S_ISUID | S_ISGID)) != 0) return true;
  return getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

// Started by its own name it loads the program that is its argument, and what is preloaded (ld.so(8)).
bool IsDynamicLinker(const std::string& path) { return absl::StartsWith(path.substr(path.rfind('/') + 1), "ld-linux"); }

// A runtime that is linked in is served by the names of its functions: those of the symbol table, else those in its
// text, where the functions that register kernels have none (hollow/audit).
std::string WhyRuntimeNotServed(const ElfFacts& elf) {
  if (!elf.has_device_code && !elf.has_own_runtime) return "";
  const bool is_found = elf.has_runtime_symbols || !elf.has_device_code;
  if (kOwnMachine == EM_NONE) {
    return "its CUDA runtime is linked in, which a hollow device does not serve on this processor: build it with nvcc "
           "-cudart shared";
  }
  if (is_found) return "";
  return "its CUDA runtime is linked in and stripped of names, which a hollow device does not serve: link it without "
         "-s, or with nvcc -cudart shared";
}

std::string WhyNotServed(const std::string& path, const ElfFacts& elf, Under under) {
  const bool is_hollow = under == Under::kHollow;
  if (!elf.is_64_bit) {
    return absl::StrCat("a 32-bit program, which ", is_hollow ? "a hollow device does not serve" : "is not served");
  }
  if (!elf.is_of_this_machine) return "a program for another processor";
  if (GetsPrivileges(path)) return "setuid, setgid or with capabilities: Linux preloads no library into it";
  if (!elf.has_interpreter && !IsDynamicLinker(path)) return "statically linked: no library can be preloaded into it";
  const bool has_runtime = std::any_of(elf.needed.begin(), elf.needed.end(),
                                       [](const std::string& name) { return absl::StartsWith(name, "libcudart.so"); });
  if (is_hollow && !has_runtime) return WhyRuntimeNotServed(elf);
  return "";
}

// What runs a script: its interpreter, and what `env` starts.
std::vector<std::string> InterpretersOf(absl::string_view script) {
  const absl::string_view line = absl::StripAsciiWhitespace(script.substr(2, script.find('\n') - 2));
  const std::vector<std::string> words = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  std::vector<std::string> out;
  if (words.empty()) return out;
  out.push_back(words.front());
  if (!absl::EndsWith(words.front(), "/env")) return out;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i].front() == '-' || absl::StrContains(words[i], '=')) continue;
    out.push_back(words[i]);
    break;
  }
  return out;
}

std::string WhyNot(const std::string& path, Under under, int scripts) {
  const ProgramBytes file(path);
  if (const std::optional<ElfFacts> elf = ReadElf(file.bytes()); elf.has_value())
    return WhyNotServed(path, *elf, under);
  if (!absl::StartsWith(file.bytes(), "#!") || scripts == kMostScripts) return "";
  for (const std::string& interpreter : InterpretersOf(file.bytes())) {
    const FoundProgram found = Located(interpreter);
    if (!found.why_not.empty()) continue;  // Linux, or env, says it better
    if (const std::string why = WhyNot(found.path, under, scripts + 1); !why.empty()) {
      return absl::StrCat(why, " (its interpreter ", interpreter, ")");
    }
  }
  return "";
}

}  // namespace

FoundProgram FindProgram(const std::string& name, Under under) {
  FoundProgram found = Located(name);
  if (!found.why_not.empty() || under == Under::kNothing) return found;
  const std::string why = WhyNot(found.path, under, 0);
  if (why.empty()) return found;
  return {found.path, absl::StrCat(name, ": ", why), kNotServed};
}

namespace {

class Elf64 {
 public:
  explicit Elf64(absl::string_view bytes) : bytes_(bytes), header_(At<Elf64_Ehdr>(0).value_or(Elf64_Ehdr{})) {}

  bool IsOfThisMachine() const { return header_.e_machine == kOwnMachine; }

  bool HasSegment(std::uint32_t type) const { return Segment(type).has_value(); }

  bool HasSection(absl::string_view name) const {
    const std::optional<Elf64_Shdr> names = Section(header_.e_shstrndx);
    if (!names.has_value()) return false;
    for (std::uint16_t i = 0; i < header_.e_shnum; ++i) {
      const std::optional<Elf64_Shdr> section = Section(i);
      if (section.has_value() && TextAt(names->sh_offset + section->sh_name) == name) return true;
    }
    return false;
  }

  // By the symbol table that debuggers read.
  bool DefinesFunction(absl::string_view name) const {
    for (std::uint16_t i = 0; i < header_.e_shnum; ++i) {
      const std::optional<Elf64_Shdr> section = Section(i);
      if (!section.has_value() || section->sh_type != SHT_SYMTAB) continue;
      const std::optional<Elf64_Shdr> names = Section(static_cast<std::uint16_t>(section->sh_link));
      for (std::uint64_t at = 0; names.has_value() && at + sizeof(Elf64_Sym) <= section->sh_size;
           at += sizeof(Elf64_Sym)) {
        const std::optional<Elf64_Sym> symbol = At<Elf64_Sym>(section->sh_offset + at);
        if (!symbol.has_value()) break;
        if (symbol->st_shndx != SHN_UNDEF && TextAt(names->sh_offset + symbol->st_name) == name) return true;
      }
    }
    return false;
  }

  std::vector<std::string> Needed() const {
    std::vector<std::string> out;
    const std::optional<Elf64_Phdr> dynamic = Segment(PT_DYNAMIC);
    if (!dynamic.has_value()) return out;
    std::vector<std::uint64_t> names;
    std::uint64_t strings = 0;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic->p_filesz; at += sizeof(Elf64_Dyn)) {
      const std::optional<Elf64_Dyn> entry = At<Elf64_Dyn>(dynamic->p_offset + at);
      if (!entry.has_value() || entry->d_tag == DT_NULL) break;
      if (entry->d_tag == DT_NEEDED) names.push_back(entry->d_un.d_val);
      if (entry->d_tag == DT_STRTAB) strings = OffsetOf(entry->d_un.d_ptr);
    }
    for (const std::uint64_t name : names) out.emplace_back(TextAt(strings + name));
    return out;
  }

 private:
  template <typename T>
  std::optional<T> At(std::uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return std::nullopt;
    T out;
    std::memcpy(&out, bytes_.data() + offset, sizeof(T));
    return out;
  }

  absl::string_view TextAt(std::uint64_t offset) const {
    if (offset >= bytes_.size()) return {};
    const absl::string_view rest = bytes_.substr(offset);
    return rest.substr(0, rest.find('\0'));
  }

  std::optional<Elf64_Shdr> Section(std::uint16_t index) const {
    if (index >= header_.e_shnum) return std::nullopt;
    return At<Elf64_Shdr>(header_.e_shoff + index * sizeof(Elf64_Shdr));
  }

  std::optional<Elf64_Phdr> SegmentAt(std::uint16_t index) const {
    return At<Elf64_Phdr>(header_.e_phoff + index * sizeof(Elf64_Phdr));
  }

  std::optional<Elf64_Phdr> Segment(std::uint32_t type) const {
    for (std::uint16_t i = 0; i < header_.e_phnum; ++i) {
      const std::optional<Elf64_Phdr> segment = SegmentAt(i);
      if (segment.has_value() && segment->p_type == type) return segment;
    }
    return std::nullopt;
  }

  // Where in the file a loaded address lies; the end of the file where it lies in none.
  std::uint64_t OffsetOf(std::uint64_t address) const {
    for (std::uint16_t i = 0; i < header_.e_phnum; ++i) {
      const std::optional<Elf64_Phdr> segment = SegmentAt(i);
      if (!segment.has_value() || segment->p_type != PT_LOAD || address < segment->p_vaddr) continue;
      if (address - segment->p_vaddr < segment->p_filesz) return segment->p_offset + (address - segment->p_vaddr);
    }
    return bytes_.size();
  }

  absl::string_view bytes_;
  Elf64_Ehdr header_;
};

}  // namespace

std::optional<ElfFacts> ReadElf(absl::string_view bytes) {
  if (!absl::StartsWith(bytes, ELFMAG) || bytes.size() <= EI_CLASS) return std::nullopt;
  ElfFacts out;
  out.is_64_bit = bytes[EI_CLASS] == ELFCLASS64;
  if (!out.is_64_bit) return out;
  const Elf64 file(bytes);
  out.is_of_this_machine = file.IsOfThisMachine();
  out.has_interpreter = file.HasSegment(PT_INTERP);
  out.has_device_code = file.HasSection(".nv_fatbin") || file.HasSection(".nvFatBinSegment");
  // A name of shared memory that every libcudart has in its text, seen in those of CUDA 12 and 13.
  // (Put together here, so that this program does not have it.)
  out.has_own_runtime = absl::StrContains(bytes, absl::StrCat("/cudart", ".shm.%"));
  out.has_runtime_symbols = file.DefinesFunction("__cudaRegisterFatBinary");
  out.needed = file.Needed();
  return out;
}

}  // namespace ashlar::cli
