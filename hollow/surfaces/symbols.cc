#include "hollow/surfaces/symbols.h"

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace ashlar::hollow {
namespace {

struct Symbols {
  std::mutex mutex;
  std::map<const void*, std::size_t> bytes;
  std::map<const void*, std::unique_ptr<std::vector<char>>> memory;  // made when first asked for: there are thousands
};

Symbols& AllSymbols() {
  static Symbols* symbols = new Symbols;  // programs unregister until their very end
  return *symbols;
}

}  // namespace

void RegisterSymbol(const void* symbol, std::size_t bytes) {
  Symbols& symbols = AllSymbols();
  const std::lock_guard<std::mutex> lock(symbols.mutex);
  symbols.bytes[symbol] = bytes;
}

void* SymbolAddress(const void* symbol) {
  Symbols& symbols = AllSymbols();
  const std::lock_guard<std::mutex> lock(symbols.mutex);
  const auto it = symbols.bytes.find(symbol);
  if (it == symbols.bytes.end()) return nullptr;
  std::unique_ptr<std::vector<char>>& memory = symbols.memory[symbol];
  if (memory == nullptr) memory = std::make_unique<std::vector<char>>(it->second);
  return memory->data();
}

std::size_t SymbolBytes(const void* symbol) {
  Symbols& symbols = AllSymbols();
  const std::lock_guard<std::mutex> lock(symbols.mutex);
  const auto it = symbols.bytes.find(symbol);
  return it == symbols.bytes.end() ? 0 : it->second;
}

}  // namespace ashlar::hollow
