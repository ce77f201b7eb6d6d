#include "cli/certificate_report.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "async/status_macros.h"
#include "cli/escape_for_terminal.h"
#include "net/auth/certificate.h"
#include "net/auth/identity.h"

namespace hawser::cli {
namespace {

constexpr absl::Duration kDay = absl::Hours(24);
// A certificate that expires within this time should be issued again.
constexpr absl::Duration kSoon = absl::Hours(7 * 24);

std::string FormatUtc(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

// Such as "2 days", rounded down to the largest unit.
std::string FormatApproximately(absl::Duration duration) {
  const auto count = [](int64_t number, const char* unit) {
    return absl::StrCat(number, " ", unit, number == 1 ? "" : "s");
  };
  if (duration >= kDay) return count(duration / kDay, "day");
  if (duration >= absl::Hours(1)) {
    return count(duration / absl::Hours(1), "hour");
  }
  return count(std::max<int64_t>(0, duration / absl::Minutes(1)), "minute");
}

std::string State(const net::CertificateFields& fields, absl::Time now) {
  constexpr char kRenew[] = "; replace it with `hawser certs issue`";
  if (now < fields.valid_from) {
    return absl::StrCat("NOT VALID YET, for another ",
                        FormatApproximately(fields.valid_from - now));
  }
  if (now >= fields.valid_until) {
    return absl::StrCat("EXPIRED ",
                        FormatApproximately(now - fields.valid_until), " ago",
                        kRenew);
  }
  const std::string left = FormatApproximately(fields.valid_until - now);
  return fields.valid_until - now < kSoon
             ? absl::StrCat("EXPIRES SOON, in ", left, kRenew)
             : absl::StrCat("valid for another ", left);
}

// The lines about the worker or the authority.
std::string NamedBy(std::string_view pem) {
  const absl::StatusOr<std::string> job = net::JobOf(pem);
  if (job.ok()) return absl::StrCat("authority  job ", *job, "\n");
  const absl::StatusOr<net::Identity> identity = net::IdentityOf(pem);
  if (!identity.ok()) {
    const absl::string_view reason = identity.status().message();
    return absl::StrCat(
        "identity   none: ", EscapeForTerminal({reason.data(), reason.size()}),
        "\n");
  }
  return absl::StrCat(
      "identity   ", net::ToUri(*identity), "\n",  //
      "roles      ",
      identity->roles.empty() ? "none" : absl::StrJoin(identity->roles, ", "),
      "\n");
}

}  // namespace

absl::StatusOr<CertificateReport> ReportCertificate(std::string_view pem,
                                                    absl::Time now) {
  ASSIGN_OR_RETURN(const net::CertificateFields fields, net::FieldsOf(pem));
  CertificateReport report;
  report.text =
      absl::StrCat("subject    ", EscapeForTerminal(fields.subject), "\n",  //
                   NamedBy(pem),                                            //
                   "issuer     ", EscapeForTerminal(fields.issuer), "\n",   //
                   "from       ", FormatUtc(fields.valid_from), "\n",       //
                   "until      ", FormatUtc(fields.valid_until), "\n",      //
                   "state      ", State(fields, now), "\n");
  report.expired = now >= fields.valid_until;
  return report;
}

}  // namespace hawser::cli
