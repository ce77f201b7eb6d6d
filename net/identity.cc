#include "net/identity.h"

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "async/status_macros.h"

namespace hawser::net {
namespace {

constexpr std::string_view kScheme = "hawser://";
constexpr size_t kMaxNameLength = 127;

absl::Status ValidateName(std::string_view what, std::string_view name) {
  bool valid = !name.empty() && name.size() <= kMaxNameLength;
  for (char c : name.substr(0, kMaxNameLength)) {
    valid = valid && (absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                      c == '-' || c == '_' || c == ':' || c == '.');
  }
  if (valid) return absl::OkStatus();
  const std::string_view shown = name.substr(0, kMaxNameLength);
  return absl::InvalidArgumentError(absl::StrCat(
      absl::string_view(what.data(), what.size()), " name '",
      absl::CHexEscape(absl::string_view(shown.data(), shown.size())),
      "' must be 1 to ", kMaxNameLength, " letters, digits and \"-_:.\""));
}

}  // namespace

absl::Status Validate(const Identity& identity) {
  RETURN_IF_ERROR(ValidateName("job", identity.job));
  return ValidateName("worker", identity.worker);
}

std::string ToUri(const Identity& identity) {
  return std::string(kScheme) + identity.job + "/" + identity.worker;
}

absl::StatusOr<Identity> ParseUri(std::string_view uri) {
  const size_t slash =
      uri.starts_with(kScheme) ? uri.find('/', kScheme.size()) : uri.npos;
  if (slash == uri.npos) {
    return absl::InvalidArgumentError(
        "the name of a certificate must be hawser://JOB/WORKER");
  }
  Identity identity{
      .job = std::string(uri.substr(kScheme.size(), slash - kScheme.size())),
      .worker = std::string(uri.substr(slash + 1))};
  RETURN_IF_ERROR(Validate(identity));
  return identity;
}

absl::Status CheckClaim(const Identity& proven, const Identity& claimed) {
  if (proven == claimed) return absl::OkStatus();
  // What a peer says is not repeated unless it is a name.
  RETURN_IF_ERROR(Validate(claimed));
  return absl::UnauthenticatedError(
      absl::StrCat("the message says it is from ", ToUri(claimed),
                   ", but the caller's certificate is of ", ToUri(proven)));
}

absl::StatusOr<Identity> FindIdentity(const std::vector<std::string>& uris) {
  std::optional<Identity> found;
  for (const std::string& uri : uris) {
    absl::StatusOr<Identity> identity = ParseUri(uri);
    if (!identity.ok()) continue;
    if (found.has_value()) {
      return absl::InvalidArgumentError("the certificate names two workers");
    }
    found = *std::move(identity);
  }
  if (found.has_value()) return *std::move(found);
  return absl::InvalidArgumentError(
      "the certificate names no worker (URI hawser://JOB/WORKER); make one "
      "with `hawser certs issue`");
}

std::string HostNameOf(const Identity& identity) {
  return identity.worker + "." + HostNameOfJob(identity.job);
}

std::string HostNameOfJob(std::string_view job) {
  return std::string(job) + ".hawser";
}

}  // namespace hawser::net
