#include "hollow/api/cuda/loaded_code.h"

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>

#include "hollow/api/cuda/device_code.h"
#include "hollow/api/cuda/memory.h"

namespace ashlar::hollow {
namespace {

constexpr std::uint16_t kCudaMachine = 190;  // EM_CUDA

// A binary of device code, whose end the ELF header tells where nobody else does.
class DeviceElf {
 public:
  DeviceElf(const char* bytes, std::uint64_t size) : bytes_(bytes), size_(size) {}

  bool IsRead() {
    if (size_ < sizeof(header_) || std::memcmp(bytes_, ELFMAG, SELFMAG) != 0) return false;
    std::memcpy(&header_, bytes_, sizeof(header_));
    return header_.e_machine == kCudaMachine && header_.e_shentsize == sizeof(Elf64_Shdr);
  }

  FirstValues Variables() const {
    FirstValues out;
    for (std::uint32_t i = 0; i < header_.e_shnum; ++i) {
      const std::optional<Elf64_Shdr> section = SectionAt(i);
      if (section.has_value() && section->sh_type == SHT_SYMTAB) AddSymbols(*section, out);
    }
    return out;
  }

 private:
  template <typename T>
  std::optional<T> At(std::uint64_t offset) const {
    if (offset > size_ || size_ - offset < sizeof(T)) return std::nullopt;
    T out;
    std::memcpy(&out, bytes_ + offset, sizeof(T));
    return out;
  }
  std::optional<Elf64_Shdr> SectionAt(std::uint32_t index) const {
    if (index >= header_.e_shnum) return std::nullopt;
    return At<Elf64_Shdr>(header_.e_shoff + std::uint64_t{index} * sizeof(Elf64_Shdr));
  }
  std::string TextAt(std::uint64_t offset) const {
    if (offset >= size_) return "";
    return {bytes_ + offset, strnlen(bytes_ + offset, size_ - offset)};
  }

  void AddSymbols(const Elf64_Shdr& symbols, FirstValues& out) const {
    const std::optional<Elf64_Shdr> names = SectionAt(symbols.sh_link);
    for (std::uint64_t at = 0; names.has_value() && at + sizeof(Elf64_Sym) <= symbols.sh_size;
         at += sizeof(Elf64_Sym)) {
      const std::optional<Elf64_Sym> symbol = At<Elf64_Sym>(symbols.sh_offset + at);
      if (!symbol.has_value()) return;
      if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT || symbol->st_size == 0) continue;
      const std::optional<Elf64_Shdr> section = SectionAt(symbol->st_shndx);
      if (section.has_value()) out[TextAt(names->sh_offset + symbol->st_name)] = ValueOf(*symbol, *section);
    }
  }

  // Zeros where the section has no bytes, or not so many.
  std::vector<char> ValueOf(const Elf64_Sym& symbol, const Elf64_Shdr& section) const {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 32;
    if (symbol.st_size > kMost) return {};
    std::vector<char> out(symbol.st_size);
    const std::uint64_t offset = section.sh_offset + symbol.st_value;
    if (section.sh_type == SHT_NOBITS || offset > size_ || size_ - offset < out.size()) return out;
    std::memcpy(out.data(), bytes_ + offset, out.size());
    return out;
  }

  const char* bytes_;
  std::uint64_t size_;
  Elf64_Ehdr header_ = {};
};

// Of a binary that lies by itself in memory: to the end of its table of sections, which is the last part of it.
std::uint64_t SizeByHeader(const char* bytes) {
  Elf64_Ehdr header;
  std::memcpy(&header, bytes, sizeof(header));
  return header.e_shoff + std::uint64_t{header.e_shnum} * header.e_shentsize;
}

std::optional<FirstValues> ReadBinary(const char* bytes, std::uint64_t size) {
  DeviceElf elf(bytes, size);
  if (!elf.IsRead()) return std::nullopt;
  return elf.Variables();
}

}  // namespace

std::optional<FirstValues> VariablesIn(const void* code, int device) {
  const auto* bytes = static_cast<const char*>(code);
  if (std::memcmp(bytes, ELFMAG, SELFMAG) == 0) {
    return bytes[EI_CLASS] == ELFCLASS64 ? ReadBinary(bytes, SizeByHeader(bytes)) : std::nullopt;
  }
  const std::vector<CompiledCode> all = CodeIn(code);
  const CompiledCode* chosen = ChooseCode(all, device);
  if (chosen == nullptr || chosen->is_ptx || chosen->is_compressed) return std::nullopt;
  return ReadBinary(chosen->bytes, chosen->size_bytes);
}

namespace {

int DeviceVersion() { return TheSettings().compute_major * 10 + TheSettings().compute_minor; }

struct LoadedCode {
  std::optional<FirstValues> first;
  std::map<std::string, std::unique_ptr<std::vector<char>>> variables;  // those that were asked for
};

// The memory of one that is asked for again and again; nullptr where there is none of that name.
std::vector<char>* VariableOf(LoadedCode& code, const std::string& name) {
  std::unique_ptr<std::vector<char>>& memory = code.variables[name];
  if (memory != nullptr) return memory.get();
  if (!code.first.has_value()) {
    memory = std::make_unique<std::vector<char>>(kUnreadBytes);
  } else if (const auto it = code.first->find(name); it != code.first->end()) {
    memory = std::make_unique<std::vector<char>>(it->second);
  }
  return memory.get();
}

}  // namespace

void* LoadCode(const void* code) { return new LoadedCode{VariablesIn(code, DeviceVersion()), {}}; }

void* LoadCodeOfFile(const char* path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  bytes.append(sizeof(Elf64_Ehdr), '\0');  // so that a shorter one is none of those that are known
  return LoadCode(bytes.data());
}

void TellVariable(Process& process, void* address, std::size_t bytes) {
  if (process.allocations.At(AddressOf(address)) != nullptr) return;
  process.allocations.Add({AddressOf(address), bytes, MemoryKind::kVariable, CurrentDevice()});
}

void UnloadCode(Process& process, void* loaded) {
  auto* code = static_cast<LoadedCode*>(loaded);
  for (const auto& [name, memory] : code->variables) {
    if (memory != nullptr) process.allocations.Remove(AddressOf(memory->data()));
  }
  delete code;
}

Error FindVariable(Process& process, void* loaded, const char* name, void** address, std::size_t* bytes) {
  if (loaded == nullptr) return Error::kInvalidHandle;
  if (name == nullptr || (address == nullptr && bytes == nullptr)) return Error::kInvalidValue;
  std::vector<char>* memory = VariableOf(*static_cast<LoadedCode*>(loaded), name);
  if (memory == nullptr) return Error::kNotFound;
  TellVariable(process, memory->data(), memory->size());
  if (address != nullptr) *address = memory->data();
  if (bytes != nullptr) *bytes = memory->size();
  return Error::kNone;
}

namespace {

struct Symbol {
  const void* handle = nullptr;
  std::string name;
  std::size_t bytes = 0;
  std::unique_ptr<std::vector<char>> memory = nullptr;  // made when first asked for: there are thousands
};

struct Symbols {
  std::mutex mutex;
  std::map<const void*, Symbol> all;
};

Symbols& AllSymbols() {
  static Symbols* symbols = new Symbols;  // programs unregister until their very end
  return *symbols;
}

std::vector<char> FirstValueOf(const Symbol& symbol) {
  const void* wrapper = RegisteredCode(symbol.handle);
  const std::optional<FirstValues> values = wrapper == nullptr ? std::nullopt : VariablesIn(wrapper, DeviceVersion());
  std::vector<char> out;
  if (values.has_value()) {
    if (const auto it = values->find(symbol.name); it != values->end()) out = it->second;
  }
  out.resize(symbol.bytes);
  return out;
}

}  // namespace

void RegisterSymbol(const void* handle, const void* symbol, const char* name, std::size_t bytes) {
  Symbols& symbols = AllSymbols();
  const std::lock_guard<std::mutex> lock(symbols.mutex);
  Symbol& known = symbols.all[symbol];  // of a library that was there before and lies where it lay: its memory is kept
  if (known.bytes != bytes) known.memory = nullptr;
  known.handle = handle;
  known.name = name == nullptr ? "" : name;
  known.bytes = bytes;
  if (known.memory != nullptr) *known.memory = FirstValueOf(known);
}

void RenewSymbols() {
  Symbols& symbols = AllSymbols();
  const std::lock_guard<std::mutex> lock(symbols.mutex);
  for (auto& [address, symbol] : symbols.all) {
    if (symbol.memory != nullptr) *symbol.memory = FirstValueOf(symbol);
  }
}

void* SymbolAddress(const void* symbol) {
  Symbols& symbols = AllSymbols();
  const std::lock_guard<std::mutex> lock(symbols.mutex);
  const auto it = symbols.all.find(symbol);
  if (it == symbols.all.end()) return nullptr;
  if (it->second.memory == nullptr) it->second.memory = std::make_unique<std::vector<char>>(FirstValueOf(it->second));
  return it->second.memory->data();
}

std::size_t SymbolBytes(const void* symbol) {
  Symbols& symbols = AllSymbols();
  const std::lock_guard<std::mutex> lock(symbols.mutex);
  const auto it = symbols.all.find(symbol);
  return it == symbols.all.end() ? 0 : it->second.bytes;
}

}  // namespace ashlar::hollow
