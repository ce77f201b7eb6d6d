// Fuzz test: parses arbitrary bytes as an address and as the URL of a store.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "async/check.h"
#include "store/endpoint.h"
#include "store/store_url.h"

namespace {

void CheckEndpoint(const hawser::store::Endpoint& endpoint) {
  HAWSER_CHECK(!endpoint.host.empty() && endpoint.port >= 0 &&
               endpoint.port <= 65535)
      << ToString(endpoint);
  const auto again = hawser::store::ParseEndpoint(ToString(endpoint));
  HAWSER_CHECK(again.ok() && *again == endpoint) << ToString(endpoint);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using Scheme = hawser::store::StoreUrl::Scheme;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto endpoint = hawser::store::ParseEndpoint(text); endpoint.ok()) {
    CheckEndpoint(*endpoint);
  }
  const auto url = hawser::store::ParseStoreUrl(text);
  if (!url.ok()) return 0;
  if (url->scheme != Scheme::kEnv && url->scheme != Scheme::kFile) {
    CheckEndpoint(url->endpoint);
  }
  HAWSER_CHECK(url->scheme != Scheme::kFile || url->path.front() == '/');
  HAWSER_CHECK(url->rank.value_or(0) >= 0 && url->world_size.value_or(1) >= 1);
  return 0;
}
