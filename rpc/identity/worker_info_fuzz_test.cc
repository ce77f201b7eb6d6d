// Fuzz test: arbitrary bytes as a worker's name and as its advertised address.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "async/check.h"
#include "rpc/identity/advertised_address.h"
#include "rpc/identity/worker_info.h"
#include "store/endpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (hawser::rpc::ValidateWorkerName(text).ok()) {
    HAWSER_CHECK(!text.empty() && text.size() <= 127);
    for (const char c : text) HAWSER_CHECK(c > ' ' && c < 127);
  }
  const auto address = hawser::rpc::AdvertisedAddress(text, "127.0.0.1:1234");
  if (address.ok() && !text.empty()) {
    const auto endpoint = hawser::store::ParseEndpoint(*address);
    HAWSER_CHECK(endpoint.ok() && endpoint->port != 0) << *address;
  }
  return 0;
}
