// Variables of device code, with the values that they begin with: of code that a program registers, and of code that it
// loads itself. The code is a binary as nvcc writes it, without kernels.
#include <elf.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/hollow/client/in_hollow.h"

extern "C" {
void** __cudaRegisterFatBinary(void* wrapper);  // NOLINT
void __cudaRegisterVar(void** handle, char* symbol, char* address, const char* name, int is_external, std::size_t bytes,
                       int is_constant, int is_global);  // NOLINT
void __cudaRegisterManagedVar(void** handle, void** symbol, char* address, const char* name, int is_external,
                              std::size_t bytes, int is_constant, int is_global);  // NOLINT
int cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes, std::size_t offset, int kind);
int cudaMemcpyFromSymbol(void* to, const void* symbol, std::size_t bytes, std::size_t offset, int kind);
int cudaGetSymbolAddress(void** address, const void* symbol);
int cudaLibraryLoadData(void** library, const void* code, int*, void**, unsigned, int*, void**, unsigned);
int cudaLibraryGetGlobal(void** address, std::size_t* bytes, void* library, const char* name);
int cudaLibraryUnload(void* library);
}

namespace ashlar::hollow::client {
namespace {

using DeviceVariablesTest = InHollowTest;

// Two variables: `seven`, an int of 7, and `zeros`, 4,096 bytes that the file does not have.
std::string Binary() {
  const std::string names = std::string("\0seven\0zeros\0", 13);
  const int seven = 7;
  std::string out(sizeof(Elf64_Ehdr), '\0');
  const auto append = [&out](const void* bytes, std::size_t size) {
    const std::size_t at = out.size();
    out.append(static_cast<const char*>(bytes), size);
    return at;
  };
  const std::size_t value_at = append(&seven, sizeof(seven)), names_at = append(names.data(), names.size());
  out.resize((out.size() + 7) / 8 * 8);
  const unsigned char kObject = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
  const Elf64_Sym symbols[] = {{}, {1, kObject, 0, 1, 0, sizeof(seven)}, {7, kObject, 0, 2, 0, 4096}};
  const std::size_t symbols_at = append(symbols, sizeof(symbols));
  Elf64_Shdr sections[5] = {};
  sections[1] = {0, SHT_PROGBITS, 0, 0, value_at, sizeof(seven), 0, 0, 4, 0};
  sections[2] = {0, SHT_NOBITS, 0, 0, value_at, 4096, 0, 0, 4, 0};
  sections[3] = {0, SHT_SYMTAB, 0, 0, symbols_at, sizeof(symbols), 4, 0, 8, sizeof(Elf64_Sym)};
  sections[4] = {0, SHT_STRTAB, 0, 0, names_at, names.size(), 0, 0, 1, 0};
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_machine = 190;  // EM_CUDA
  header.e_shoff = append(sections, sizeof(sections));
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 5;
  std::memcpy(out.data(), &header, sizeof(header));
  return out;
}

// What nvcc puts around it: one entry of `options` for sm_80.
struct Registered {
  explicit Registered(std::uint32_t options = 0) {
    const std::string binary = Binary();
    Put(std::uint32_t{0xBA55ED50}), Put(std::uint16_t{1}), Put(std::uint16_t{16}),
        Put(std::uint64_t{64 + binary.size()});
    Put(std::uint16_t{2}), Put(std::uint16_t{1}), Put(std::uint32_t{64}), Put(std::uint64_t{binary.size()});
    Put(std::uint32_t{0}), Put(options), Put(std::uint32_t{0}), Put(std::uint32_t{80});
    container.resize(16 + 64);
    container += binary;
    wrapper.data = container.data();
  }
  template <typename T>
  void Put(T value) {
    container.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }

  std::string container;
  struct {
    std::uint32_t magic = 0x466243B1, version = 1;
    const char* data = nullptr;
    void* unused = nullptr;
  } wrapper;
};

int ReadInt(const void* device) {
  int out = -1;
  constexpr int kDeviceToHost = 2;
  EXPECT_EQ(cudaMemcpy(&out, device, sizeof(out), kDeviceToHost), kSuccess);
  return out;
}

TEST_F(DeviceVariablesTest, OfCodeThatAProgramLoads) {
  Run({}, [] {
    EXPECT_EQ(cuInit(0), kSuccess);
    void *module = nullptr, *address = nullptr, *again = nullptr;
    {
      const std::string binary = Binary();  // is gone when the variables are asked for
      EXPECT_EQ(cuModuleLoadData(&module, binary.data()), kSuccess);
    }
    const std::uint64_t before = UsedBytes();
    std::size_t bytes = 0;
    EXPECT_EQ(cuModuleGetGlobal_v2(&address, &bytes, module, "seven"), kSuccess);
    EXPECT_EQ(bytes, sizeof(int));
    EXPECT_EQ(ReadInt(address), 7);
    const int eight = 8;
    constexpr int kHostToDevice = 1;
    EXPECT_EQ(cudaMemcpy(address, &eight, sizeof(eight), kHostToDevice), kSuccess);
    EXPECT_EQ(cuModuleGetGlobal_v2(&again, nullptr, module, "seven"), kSuccess);
    EXPECT_EQ(again, address);
    EXPECT_EQ(ReadInt(again), 8);
    EXPECT_EQ(cuModuleGetGlobal_v2(nullptr, &bytes, module, "zeros"), kSuccess);
    EXPECT_EQ(bytes, 4096U);
    EXPECT_EQ(cuModuleGetGlobal_v2(&address, &bytes, module, "nine"), kNotFound);
    EXPECT_EQ(cuModuleGetGlobal_v2(nullptr, nullptr, module, "seven"), kInvalidValue);
    EXPECT_EQ(UsedBytes(), before) << "no memory of the program's";
    EXPECT_EQ(cuModuleUnload(module), kSuccess);
  });
}

TEST_F(DeviceVariablesTest, OfAContainerThatTheRuntimeLoads) {
  Run({"compute_major=8", "compute_minor=0"}, [] {
    Registered code;
    void *library = nullptr, *address = nullptr;
    std::size_t bytes = 0;
    EXPECT_EQ(cudaLibraryLoadData(&library, &code.wrapper, nullptr, nullptr, 0, nullptr, nullptr, 0), kSuccess);
    EXPECT_EQ(cudaLibraryGetGlobal(&address, &bytes, library, "seven"), kSuccess);
    EXPECT_EQ(ReadInt(address), 7);
    EXPECT_EQ(cudaLibraryUnload(library), kSuccess);
  });
}

// As NVIDIA's own libraries have theirs.
TEST_F(DeviceVariablesTest, CompressedCodeHasAnyVariableOfZeros) {
  Run({}, [] {
    constexpr std::uint32_t kZstandard = 0x8000;
    Registered code(kZstandard);
    void *library = nullptr, *address = nullptr;
    std::size_t bytes = 0;
    EXPECT_EQ(cudaLibraryLoadData(&library, code.container.data(), nullptr, nullptr, 0, nullptr, nullptr, 0), kSuccess);
    EXPECT_EQ(cudaLibraryGetGlobal(&address, &bytes, library, "deviceConstants"), kSuccess);
    EXPECT_EQ(bytes, 65'536U);
    EXPECT_EQ(ReadInt(address), 0);
  });
}

TEST_F(DeviceVariablesTest, OfCodeThatAProgramRegisters) {
  Run({"compute_major=8", "compute_minor=0"}, [] {
    static Registered code;
    static char symbol = 0;
    static void* managed = nullptr;
    void** handle = __cudaRegisterFatBinary(&code.wrapper);
    __cudaRegisterVar(handle, &symbol, nullptr, "seven", 0, sizeof(int), 0, 0);
    __cudaRegisterManagedVar(handle, &managed, nullptr, "seven", 0, sizeof(int), 0, 0);
    EXPECT_EQ(*static_cast<int*>(managed), 7) << "the host reads it as well";
    int value = 0;
    void* address = nullptr;
    EXPECT_EQ(cudaMemcpyFromSymbol(&value, &symbol, sizeof(value), 0, 2), kSuccess);
    EXPECT_EQ(value, 7);
    EXPECT_EQ(cudaGetSymbolAddress(&address, &symbol), kSuccess);
    EXPECT_EQ(ReadInt(address), 7);
    value = 8;
    EXPECT_EQ(cudaMemcpyToSymbol(&symbol, &value, sizeof(value), 0, 1), kSuccess);
    EXPECT_EQ(ReadInt(address), 8);
    EXPECT_EQ(cudaDeviceReset(), kSuccess);
    EXPECT_EQ(cudaMemcpyFromSymbol(&value, &symbol, sizeof(value), 0, 2), kSuccess);
    EXPECT_EQ(value, 7);
  });
}

}  // namespace
}  // namespace ashlar::hollow::client
