#include "cli/certificate_report.h"

#include <string>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/auth/certificate.h"

namespace hawser::cli {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

class CertificateReportTest : public testing::Test {
 protected:
  CertificateReportTest()
      : authority_(*net::MakeAuthority("digits", Days(365))) {}

  static absl::Duration Days(int days) { return days * absl::Hours(24); }

  // A certificate of "ps0" that is valid for 30 days.
  std::string Issue() {
    return net::IssueCertificate(
               authority_,
               {.job = "digits", .worker = "ps0", .roles = {"ps", "evaluator"}},
               Days(30))
        ->certificate;
  }

  const absl::Time now_ = absl::Now();
  net::KeyAndCertificate authority_;
};

TEST_F(CertificateReportTest, WorkersCertificateIsDescribed) {
  const auto report = ReportCertificate(Issue(), now_);
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(
      report->text,
      AllOf(HasSubstr("subject    CN=ps0\n"),
            HasSubstr("identity   hawser://digits/ps0\n"),
            HasSubstr("roles      ps, evaluator\n"),
            HasSubstr("issuer     CN=Hawser job digits\n"),
            HasSubstr(absl::FormatTime("until      %Y-%m-%d ", now_ + Days(30),
                                       absl::UTCTimeZone()))));
  EXPECT_FALSE(report->expired);
}

TEST_F(CertificateReportTest, AuthorityIsDescribed) {
  const auto report = ReportCertificate(authority_.certificate, now_);
  ASSERT_THAT(report, IsOk());
  EXPECT_THAT(report->text, HasSubstr("authority  job digits\n"));
}

TEST_F(CertificateReportTest, StateFollowsTheTime) {
  const std::string pem = Issue();
  const struct {
    absl::Duration age;
    const char* state;
    bool expired;
  } kCases[] = {
      {-Days(2), "state      NOT VALID YET, for another 1 day\n", false},
      {Days(1) + absl::Hours(1), "state      valid for another 28 days\n",
       false},
      {Days(23) - absl::Hours(1), "state      valid for another 7 days\n",
       false},
      {Days(24) - absl::Hours(1), "state      EXPIRES SOON, in 6 days; ",
       false},
      {Days(30) - absl::Minutes(90), "state      EXPIRES SOON, in 1 hour; ",
       false},
      {Days(30) + absl::Minutes(5), "state      EXPIRED 5 minutes ago; ", true},
      {Days(32) + absl::Hours(1), "state      EXPIRED 2 days ago; ", true},
  };
  for (const auto& [age, state, expired] : kCases) {
    const auto report = ReportCertificate(pem, now_ + age);
    ASSERT_THAT(report, IsOk());
    EXPECT_THAT(report->text, HasSubstr(state));
    EXPECT_EQ(report->expired, expired) << state;
  }
}

TEST_F(CertificateReportTest, OtherTextIsRejected) {
  EXPECT_THAT(ReportCertificate("no certificate", now_),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ReportCertificate(authority_.key, now_),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace hawser::cli
