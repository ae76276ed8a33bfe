// The variables of device code: __device__, __constant__ and __managed__ ones, with the values that they begin with.
//
//   RegisterSymbol(handle, symbol, "weights", 1024);        // __cudaRegisterVar: of code that a program registered
//   void* address = SymbolAddress(symbol);
//
//   void* module = LoadCode(code);                          // cuModuleLoadData: code that a program loads itself
//   Locked([&](Process& process) { return FindVariable(process, module, "weights", &address, &bytes); });
//
// Memory of the host stands for each: it is in no accounting, since a module's memory shifts no address of the
// program's own. What is read of code: the symbols and sections of the binary that the device takes, where it is not
// compressed (nvcc leaves binaries as they are, NVIDIA's libraries compress theirs). Of other code nothing is known:
// each name is then a variable of kUnreadBytes zeros. Thread rule: any thread.
#ifndef ASHLAR_HOLLOW_API_CUDA_LOADED_CODE_H_
#define ASHLAR_HOLLOW_API_CUDA_LOADED_CODE_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hollow/model/error.h"
#include "hollow/process/process.h"

namespace ashlar::hollow {

inline constexpr std::size_t kUnreadBytes = 65'536;

// By name, what each begins with. nullopt: the code is compressed, PTX, or nothing that we know.
using FirstValues = std::map<std::string, std::vector<char>>;
std::optional<FirstValues> VariablesIn(const void* code, int device);

// A binary, a container of several, or a container's wrapper. Never null.
void* LoadCode(const void* code);
// The same of a file.
void* LoadCodeOfFile(const char* path);
// With the process's lock held, as the one below: its variables are no memory of CUDA any more.
void UnloadCode(Process& process, void* loaded);
// Either answer may be left out. kNotFound where the code has no such variable.
Error FindVariable(Process& process, void* loaded, const char* name, void** address, std::size_t* bytes);

// `handle`: what RegisterDeviceCode was told; `name`: as the code has it.
void RegisterSymbol(const void* handle, const void* symbol, const char* name, std::size_t bytes);
void* SymbolAddress(const void* symbol);      // nullptr where it is not registered
std::size_t SymbolBytes(const void* symbol);  // 0 where it is not
// All have their first values again, as after a reset of the device.
void RenewSymbols();
// That copies take the variable for memory of the device. With the process's lock held.
void TellVariable(Process& process, void* address, std::size_t bytes);

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_API_CUDA_LOADED_CODE_H_
