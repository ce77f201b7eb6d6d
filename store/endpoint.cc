#include "store/endpoint.h"

#include <arpa/inet.h>

#include <charconv>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hawser::store {
namespace {

absl::Status Malformed(std::string_view text, const char* why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "'", absl::CEscape(absl::string_view(text.data(), text.size())),
      "' is not an address: ", why));
}

bool IsIpV6(std::string_view host) {
  // The zone after '%' names an interface of this machine.
  const std::string address(host.substr(0, host.find('%')));
  in6_addr parsed;
  return inet_pton(AF_INET6, address.c_str(), &parsed) == 1;
}

// Characters of names, addresses and zones.
bool IsHostCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' ||
         c == '.' || c == '_' || c == ':' || c == '%';
}

}  // namespace

absl::StatusOr<Endpoint> ParseEndpoint(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return Malformed(text, "expected host:port");
  }
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  Endpoint endpoint;
  const auto [end, error] = std::from_chars(
      digits.data(), digits.data() + digits.size(), endpoint.port);
  if (digits.empty() || error != std::errc() ||
      end != digits.data() + digits.size() || endpoint.port < 0 ||
      endpoint.port > 65535) {
    return Malformed(text, "the port must be a number within 0..65535");
  }
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    if (!IsIpV6(host)) {
      return Malformed(text, "the text in brackets is not an IPv6 address");
    }
  } else if (host.find(':') != std::string_view::npos) {
    return Malformed(text, "an IPv6 address needs brackets: [v6]:port");
  }
  if (host.empty())
    return Malformed(text, "the host before the port is missing");
  for (const char c : host) {
    if (!IsHostCharacter(c)) {
      return Malformed(text, "the host has a character that is not allowed");
    }
  }
  endpoint.host = host;
  return endpoint;
}

std::string ToString(const Endpoint& endpoint) {
  return absl::StrContains(endpoint.host, ':')
             ? absl::StrCat("[", endpoint.host, "]:", endpoint.port)
             : absl::StrCat(endpoint.host, ":", endpoint.port);
}

}  // namespace hawser::store
