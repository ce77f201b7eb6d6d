#include "store/store_url.h"

#include <charconv>
#include <cstddef>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "async/status_macros.h"

namespace hawser::store {
namespace {

using Scheme = StoreUrl::Scheme;

constexpr struct {
  const char* name;
  Scheme scheme;
  // 0 if URLs of the scheme have no host.
  int default_port;
} kSchemes[] = {
    {"env", Scheme::kEnv, 0},        {"tcp", Scheme::kTcp, 29500},
    {"file", Scheme::kFile, 0},      {"etcd", Scheme::kEtcd, 2379},
    {"redis", Scheme::kRedis, 6379},
};

absl::Status Wrong(absl::string_view why) {
  return absl::InvalidArgumentError(why);
}

absl::StatusOr<std::string> Decode(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    int byte = 0;
    const char* const digits = text.data() + i + 1;
    const char* const end = digits + 2;
    if (i + 2 >= text.size() ||
        std::from_chars(digits, end, byte, 16).ptr != end || byte == 0) {
      return Wrong(
          "'%' must be followed by two hexadecimal digits other than 00");
    }
    decoded.push_back(static_cast<char>(byte));
    i += 2;
  }
  if (absl::StrContains(decoded, absl::string_view("\0", 1))) {
    return Wrong("it contains a zero byte");
  }
  return decoded;
}

// Removes and returns the text after the first `separator`; empty if there is
// none.
absl::string_view CutBehind(absl::string_view& text, char separator) {
  const size_t at = text.find(separator);
  if (at == absl::string_view::npos) return {};
  const absl::string_view behind = text.substr(at + 1);
  text = text.substr(0, at);
  return behind;
}

absl::Status ReadQuery(absl::string_view query, StoreUrl& url) {
  if (query.empty()) return absl::OkStatus();
  std::set<absl::string_view> seen;
  for (absl::string_view parameter : absl::StrSplit(query, '&')) {
    const absl::string_view text = CutBehind(parameter, '=');
    const bool is_rank = parameter == "rank";
    if (!is_rank && parameter != "world_size") {
      return Wrong(
          absl::StrCat("the only parameters are 'rank' and 'world_size', not '",
                       absl::CEscape(parameter), "'"));
    }
    int value = 0;
    if (!absl::SimpleAtoi(text, &value) || value < (is_rank ? 0 : 1)) {
      return Wrong(absl::StrCat(parameter, " must be a number of ",
                                is_rank ? 0 : 1, " or more"));
    }
    if (!seen.insert(parameter).second) {
      return Wrong(absl::StrCat(parameter, " is given twice"));
    }
    (is_rank ? url.rank : url.world_size) = value;
  }
  return absl::OkStatus();
}

absl::Status ReadHost(absl::string_view authority, int default_port,
                      StoreUrl& url) {
  if (authority.empty()) return Wrong("the host is missing");
  // There is no port if there is no colon outside brackets.
  const bool has_port =
      authority.back() != ']' && absl::StrContains(authority, ':');
  const std::string text = has_port
                               ? std::string(authority)
                               : absl::StrCat(authority, ":", default_port);
  ASSIGN_OR_RETURN(url.endpoint, ParseEndpoint(text));
  return absl::OkStatus();
}

absl::Status ReadUser(absl::string_view user, StoreUrl& url) {
  if (url.scheme != Scheme::kRedis) {
    return Wrong("only redis:// accepts a user and a password");
  }
  const absl::string_view password = CutBehind(user, ':');
  ASSIGN_OR_RETURN(url.username, Decode(user));
  ASSIGN_OR_RETURN(url.password, Decode(password));
  if (url.password.empty()) return Wrong("the password is missing");
  return absl::OkStatus();
}

// `path` is without its leading '/'.
absl::Status ReadPath(absl::string_view path, StoreUrl& url) {
  switch (url.scheme) {
    case Scheme::kEnv:
    case Scheme::kTcp:
      if (path.empty()) return absl::OkStatus();
      return Wrong("URLs of this scheme have no path");
    case Scheme::kFile: {
      if (path.empty()) return Wrong("the path is missing: file:///PATH");
      ASSIGN_OR_RETURN(const std::string relative, Decode(path));
      url.path = absl::StrCat("/", relative);
      return absl::OkStatus();
    }
    case Scheme::kRedis: {
      const absl::string_view prefix = CutBehind(path, '/');
      if (!path.empty() &&
          (!absl::SimpleAtoi(path, &url.database) || url.database < 0)) {
        return Wrong("the database must be a number: redis://HOST/0/PREFIX");
      }
      path = prefix;
      break;
    }
    case Scheme::kEtcd:
      break;
  }
  ASSIGN_OR_RETURN(url.prefix, Decode(path));
  return absl::OkStatus();
}

absl::StatusOr<StoreUrl> Parse(absl::string_view text) {
  const size_t colon = text.find("://");
  StoreUrl url;
  int default_port = -1;
  for (const auto& known : kSchemes) {
    if (colon != absl::string_view::npos &&
        text.substr(0, colon) == known.name) {
      url.scheme = known.scheme;
      default_port = known.default_port;
    }
  }
  if (default_port < 0) {
    return Wrong(
        "it must begin with env://, tcp://, file://, etcd:// or "
        "redis://");
  }
  text.remove_prefix(colon + 3);
  RETURN_IF_ERROR(ReadQuery(CutBehind(text, '?'), url));
  const absl::string_view path = CutBehind(text, '/');
  const size_t at = text.rfind('@');
  if (at != absl::string_view::npos) {
    RETURN_IF_ERROR(ReadUser(text.substr(0, at), url));
    text.remove_prefix(at + 1);
  }
  if (default_port != 0) {
    RETURN_IF_ERROR(ReadHost(text, default_port, url));
  } else if (!text.empty()) {
    return Wrong(
        url.scheme == Scheme::kFile
            ? "file URLs have no host: write file:///PATH, with three slashes"
            : "URLs of this scheme have no host");
  }
  RETURN_IF_ERROR(ReadPath(path, url));
  return url;
}

// The URL for errors, without user and password, and shortened.
std::string Shown(absl::string_view url) {
  constexpr size_t kShown = 200;
  const size_t begin = url.find("://");
  const size_t at = url.rfind('@');
  std::string shown(url);
  if (begin != absl::string_view::npos && at != absl::string_view::npos &&
      begin < at) {
    shown = absl::StrCat(url.substr(0, begin + 3), "***", url.substr(at));
  }
  return absl::CEscape(shown.substr(0, kShown));
}

}  // namespace

absl::StatusOr<StoreUrl> ParseStoreUrl(std::string_view url) {
  const absl::string_view text(url.data(), url.size());
  absl::StatusOr<StoreUrl> parsed = Parse(text);
  if (parsed.ok()) return parsed;
  return absl::InvalidArgumentError(absl::StrCat(
      "the store's URL '", Shown(text), "': ", parsed.status().message()));
}

}  // namespace hawser::store
