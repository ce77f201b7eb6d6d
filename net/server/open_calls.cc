#include "net/server/open_calls.h"

#include <grpc/grpc.h>
#include <grpc/support/alloc.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace hawser::net {
namespace {

// IPv4 addresses, which a socket for both versions shows like this.
constexpr std::string_view kMappedPrefix("\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);

ConnectionKey MakeKey(std::string_view address, uint16_t port) {
  if (address.starts_with(kMappedPrefix)) {
    address.remove_prefix(kMappedPrefix.size());
  }
  ConnectionKey key(address);
  key.push_back(static_cast<char>(port >> 8));
  key.push_back(static_cast<char>(port));
  return key;
}

// Takes over a string of gRPC.
std::string Take(char* text) {
  if (text == nullptr) return "";
  std::string copy = text;
  gpr_free(text);
  return copy;
}

// More than any count, so that counts can be subtracted.
constexpr int64_t kMaxNumber = int64_t{1} << 60;

// The number that follows `name`, which may be in quotes, from 0 to kMaxNumber;
// 0 if absent. gRPC leaves out counts of 0.
int64_t NumberAfter(std::string_view json, std::string_view name,
                    size_t* at = nullptr) {
  const size_t found = json.find(name, at == nullptr ? 0 : *at);
  if (at != nullptr) *at = found;
  if (found == std::string_view::npos) return 0;
  std::string_view rest = json.substr(found + name.size());
  if (rest.starts_with('"')) rest.remove_prefix(1);
  int64_t number = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), number);
  return std::clamp<int64_t>(number, 0, kMaxNumber);
}

// All numbers that follow `name`.
std::vector<int64_t> NumbersAfter(const std::string& json,
                                  std::string_view name) {
  std::vector<int64_t> numbers;
  for (size_t at = 0;; ++at) {
    const int64_t number = NumberAfter(json, name, &at);
    if (at == std::string::npos) return numbers;
    numbers.push_back(number);
  }
}

// Calls `next(first)` for each page of ids, each of which follows `name`.
template <class Next>
std::vector<int64_t> AllIds(std::string_view name, Next next) {
  std::vector<int64_t> ids;
  intptr_t first = 0;
  while (true) {
    const std::string page = Take(next(first));
    const std::vector<int64_t> found = NumbersAfter(page, name);
    ids.insert(ids.end(), found.begin(), found.end());
    if (found.empty() || page.find("\"end\":true") != std::string::npos) {
      return ids;
    }
    first = found.back() + 1;
  }
}

}  // namespace

ConnectionKey KeyOfPeer(const sockaddr_storage& peer) {
  if (peer.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &peer, sizeof(v4));
    return MakeKey(
        {reinterpret_cast<const char*>(&v4.sin_addr), sizeof(v4.sin_addr)},
        ntohs(v4.sin_port));
  }
  if (peer.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &peer, sizeof(v6));
    return MakeKey(
        {reinterpret_cast<const char*>(&v6.sin6_addr), sizeof(v6.sin6_addr)},
        ntohs(v6.sin6_port));
  }
  return "";
}

namespace internal {

bool ParseSocket(const std::string& json, ConnectionCalls& calls) {
  constexpr std::string_view kAddress = "\"ip_address\":\"";
  const size_t remote = json.find("\"remote\":");
  if (remote == std::string::npos) return false;
  const std::string_view peer = std::string_view(json).substr(remote);
  const size_t begin = peer.find(kAddress);
  if (begin == std::string_view::npos) return false;
  std::string_view encoded = peer.substr(begin + kAddress.size());
  encoded = encoded.substr(0, encoded.find('"'));
  std::string address;
  if (!absl::Base64Unescape(absl::string_view(encoded.data(), encoded.size()),
                            &address)) {
    return false;
  }
  calls.connection =
      MakeKey(address, static_cast<uint16_t>(NumberAfter(peer, "\"port\":")));
  calls.open_calls = NumberAfter(json, "\"streamsStarted\":") -
                     NumberAfter(json, "\"streamsSucceeded\":") -
                     NumberAfter(json, "\"streamsFailed\":");
  calls.messages = NumberAfter(json, "\"messagesReceived\":");
  return true;
}

}  // namespace internal

std::vector<ConnectionCalls> OpenCalls::CountAll() {
  return Count([](const ConnectionKey&) { return true; });
}

std::vector<ConnectionCalls> OpenCalls::CountOf(
    const absl::flat_hash_set<ConnectionKey>& connections) {
  return Count([&](const ConnectionKey& connection) {
    return connections.contains(connection);
  });
}

std::vector<ConnectionCalls> OpenCalls::Count(
    absl::FunctionRef<bool(const ConnectionKey&)> wanted) {
  std::vector<ConnectionCalls> counted;
  absl::flat_hash_map<int64_t, ConnectionKey> open;
  for (const int64_t server :
       AllIds("\"serverId\":", grpc_channelz_get_servers)) {
    const std::vector<int64_t> sockets =
        AllIds("\"socketId\":", [server](intptr_t first) {
          return grpc_channelz_get_server_sockets(server, first, 0);
        });
    for (const int64_t socket : sockets) {
      const auto known = connections_.find(socket);
      if (known != connections_.end() &&
          (known->second.empty() || !wanted(known->second))) {
        open[socket] = std::move(known->second);
        continue;
      }
      ConnectionCalls calls;
      const bool parsed =
          internal::ParseSocket(Take(grpc_channelz_get_socket(socket)), calls);
      open[socket] = calls.connection;
      if (parsed && wanted(calls.connection)) {
        counted.push_back(std::move(calls));
      }
    }
  }
  connections_ = std::move(open);
  return counted;
}

}  // namespace hawser::net
