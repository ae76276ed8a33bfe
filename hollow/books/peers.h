// Keeps which devices may use each other's memory directly.
#ifndef ASHLAR_HOLLOW_BOOKS_PEERS_H_
#define ASHLAR_HOLLOW_BOOKS_PEERS_H_

#include <set>
#include <utility>

#include "hollow/books/error.h"

namespace ashlar::hollow {

class Peers {
 public:
  Error Enable(int device, int peer, int device_count) {
    if (peer < 0 || peer >= device_count || peer == device) return Error::kInvalidDevice;
    return enabled_.emplace(device, peer).second ? Error::kNone : Error::kPeerAccessAlreadyEnabled;
  }
  Error Disable(int device, int peer) {
    return enabled_.erase({device, peer}) > 0 ? Error::kNone : Error::kPeerAccessNotEnabled;
  }

 private:
  std::set<std::pair<int, int>> enabled_;  // (device, peer)
};

}  // namespace ashlar::hollow

#endif  // ASHLAR_HOLLOW_BOOKS_PEERS_H_
