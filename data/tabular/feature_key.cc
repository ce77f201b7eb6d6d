#include "data/tabular/feature_key.h"

namespace hawser::data {
namespace {

uint64_t Fnv1a(uint64_t hash, std::string_view bytes) {
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3u;
  }
  return hash;
}

}  // namespace

uint64_t FeatureKey(std::string_view field, std::string_view value) {
  uint64_t hash = Fnv1a(0xcbf29ce484222325u, field);
  hash = Fnv1a(hash, "\xFF");
  hash = Fnv1a(hash, value);
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
  return hash ^ (hash >> 31);
}

}  // namespace hawser::data
