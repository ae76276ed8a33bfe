// The __device__ and __constant__ variables that programs register: memory of the host stands for each.
#ifndef ASHLAR_HOLLOW_SURFACES_SYMBOLS_H_
#define ASHLAR_HOLLOW_SURFACES_SYMBOLS_H_

#include <cstddef>

namespace ashlar::hollow {

void RegisterSymbol(const void* symbol, std::size_t bytes);
void* SymbolAddress(const void* symbol);      // nullptr where it is not registered
std::size_t SymbolBytes(const void* symbol);  // 0 where it is not

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_SURFACES_SYMBOLS_H_
