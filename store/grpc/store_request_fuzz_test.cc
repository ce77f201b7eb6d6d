// Fuzz test: arbitrary bytes as a sequence of requests to a store server.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "async/check.h"
#include "async/testing/simulated_clock.h"
#include "proto/store.pb.h"
#include "store/hash/key_value_table.h"
#include "store/store.h"
#include "store/store_limits.h"

namespace {

using ::hawser::store::kMinLifetime;
using ::hawser::store::WatchedKey;
using ::hawser::store::internal::KeyValueTable;

constexpr hawser::store::StoreLimits kLimits = {
    .max_key_bytes = 16, .max_value_bytes = 64, .max_total_bytes = 1024};

template <class Request>
bool Parse(std::string_view bytes, Request& request) {
  return request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

// Handles a request of method number `method` as the server does.
void Serve(int method, std::string_view bytes, KeyValueTable& table) {
  switch (method) {
    case 0: {
      hawser::v1::StoreSetRequest request;
      if (Parse(bytes, request)) {
        (void)table.Set(request.key(), request.value());
      }
      break;
    }
    case 1: {
      hawser::v1::StoreAddRequest request;
      if (Parse(bytes, request)) {
        (void)table.Add(request.key(), request.delta());
      }
      break;
    }
    case 2: {
      hawser::v1::StoreAppendRequest request;
      if (Parse(bytes, request)) {
        (void)table.Append(request.key(), request.suffix());
      }
      break;
    }
    case 3: {
      hawser::v1::StoreCompareAndSetRequest request;
      if (Parse(bytes, request)) {
        const auto result = table.CompareAndSet(
            request.key(), request.expected(), request.desired());
        HAWSER_CHECK(!result.ok() || !result->swapped ||
                     result->value == request.desired());
      }
      break;
    }
    case 4: {
      hawser::v1::StoreDeleteRequest request;
      if (Parse(bytes, request)) {
        (void)table.Delete(request.key());
        HAWSER_CHECK(!table.Get(request.key()).has_value());
      }
      break;
    }
    case 5: {
      hawser::v1::StoreWaitRequest request;
      if (!Parse(bytes, request) || request.keys().empty()) break;
      const std::vector<std::string> keys(request.keys().begin(),
                                          request.keys().end());
      const auto waiting = table.WhenPresent(keys);
      const auto missing = table.Missing(keys);
      // Invalid keys are rejected at once.
      HAWSER_CHECK(waiting.ready() == (!missing.ok() || missing->empty()));
      waiting.Cancel();
      break;
    }
    case 6: {
      hawser::v1::StoreSetLeaseRequest request;
      if (Parse(bytes, request)) {
        (void)table.SetLease(request.key(), request.value(), kMinLifetime);
      }
      break;
    }
    default: {
      hawser::v1::StoreAwaitChangeRequest request;
      if (!Parse(bytes, request) || request.keys().empty()) break;
      std::vector<WatchedKey> keys;
      for (const auto& watched : request.keys()) {
        WatchedKey& key = keys.emplace_back();
        key.key = watched.key();
        if (watched.has_known()) key.known = watched.known();
      }
      const auto watch = table.WhenChanged(keys);
      HAWSER_CHECK(table.num_waiting() == (watch.ready() ? 0 : 1));
      watch.Cancel();
      HAWSER_CHECK(table.num_waiting() == 0);
      break;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hawser::async::SimulatedClock clock;
  KeyValueTable table(&clock, kLimits);
  // Each request is one byte for the method, one for its length, and its bytes.
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (rest.size() >= 2) {
    const int method = static_cast<uint8_t>(rest[0]) % 8;
    const std::string_view bytes =
        rest.substr(2, static_cast<uint8_t>(rest[1]));
    rest.remove_prefix(2 + bytes.size());
    Serve(method, bytes, table);
    clock.AdvanceBy(kMinLifetime);
  }
  HAWSER_CHECK(table.NumKeys() <=
               static_cast<int64_t>(kLimits.max_total_bytes /
                                    KeyValueTable::kKeyOverheadBytes));
  return 0;
}
