#include "net/http/http_server.h"

#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "fs/unique_fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/endpoints.h"

namespace hawser::net {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kGet[] = "GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n";

class HttpServerTest : public testing::Test {
 protected:
  void Start(HttpServerOptions options = {}) {
    if (options.address.empty()) options.address = "127.0.0.1:0";
    options.pages["/page"] = [] { return HttpPage{.body = "the page\n"}; };
    options.pages["/down"] = [] {
      return HttpPage{.status = 503, .body = "down\n"};
    };
    auto server = HttpServer::Start(std::move(options));
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    port_ = server_->address().substr(server_->address().rfind(':') + 1);
  }

  fs::UniqueFd Connect() const {
    const auto endpoints = EndpointsOf(absl::StrCat("127.0.0.1:", port_));
    fs::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(fd.get(),
                      reinterpret_cast<const sockaddr*>(&endpoints[0].address),
                      endpoints[0].size),
              0);
    return fd;
  }

  // Whether the server has closed the connection, within 20 ms.
  static bool Closed(int fd) {
    pollfd waiting = {fd, POLLIN, 0};
    char byte = 0;
    return poll(&waiting, 1, 20) == 1 && recv(fd, &byte, 1, MSG_DONTWAIT) <= 0;
  }

  // The bytes that the server sends to `request` until it closes.
  std::string Exchange(const std::string& request) const {
    const fs::UniqueFd fd = Connect();
    send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL);
    std::string reply;
    char buffer[4096];
    ssize_t size = 0;
    while ((size = recv(fd.get(), buffer, sizeof(buffer), 0)) > 0) {
      reply.append(buffer, static_cast<size_t>(size));
    }
    return reply;
  }

  // The same for a page, with this header Host.
  std::string Get(const std::string& path,
                  const std::string& host = "localhost") const {
    return Exchange(
        absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: ", host, "\r\n\r\n"));
  }

  std::unique_ptr<HttpServer> server_;
  std::string port_;
};

TEST_F(HttpServerTest, ServesItsPages) {
  Start();
  EXPECT_THAT(Exchange(kGet),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                    HasSubstr("Content-Type: text/plain; charset=utf-8\r\n"),
                    HasSubstr("Connection: close\r\n"),
                    HasSubstr("Cache-Control: no-store\r\n"),
                    HasSubstr("X-Content-Type-Options: nosniff\r\n"),
                    EndsWith("\r\n\r\nthe page\n")));
  EXPECT_THAT(Get("/page?a=b"), EndsWith("the page\n"));
  EXPECT_THAT(Get("/down"),
              AllOf(StartsWith("HTTP/1.1 503 "), EndsWith("down\n")));
  EXPECT_THAT(Exchange("HEAD /page HTTP/1.1\r\nHost: localhost\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), EndsWith("\r\n\r\n")));
  for (const char* path : {"/", "/pag", "/page/", "/../page", "*"}) {
    EXPECT_THAT(Get(path), StartsWith("HTTP/1.1 404 ")) << path;
  }
}

TEST_F(HttpServerTest, OtherMethodsAreRefused) {
  Start();
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "BREW"}) {
    EXPECT_THAT(
        Exchange(absl::StrCat(
            method,
            " /page HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n"
            "body")),
        AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("Allow: GET, HEAD\r\n")))
        << method;
  }
}

TEST_F(HttpServerTest, LoopbackServesNoForeignNames) {
  Start();
  for (const std::string host : {"127.0.0.1", "localhost:80", "LOCALHOST",
                                 "[::1]", "[::1]:80", "10.0.0.1:9"}) {
    EXPECT_THAT(Get("/page", host), StartsWith("HTTP/1.1 200 ")) << host;
  }
  for (const std::string host :
       {"attacker.example", "localhost.attacker.example", "127.0.0.1.nip.io",
        "[::1", "[localhost]", "::1"}) {
    EXPECT_THAT(Get("/page", host), StartsWith("HTTP/1.1 403 ")) << host;
  }
  EXPECT_THAT(Get("/page", "localhost\r\nHost: attacker.example"),
              StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Exchange("GET /page HTTP/1.0\r\n\r\n"), HasSubstr(" 400 "));
}

TEST_F(HttpServerTest, MalformedAndOversizedRequestsEndTheirConnectionOnly) {
  Start({.max_connection_time = absl::Seconds(1)});
  const std::string large(1 << 20, 'a');
  for (const std::string& request :
       {std::string("\r\n\r\n\r\n"), std::string("GET\r\n\r\n"),
        std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),
        absl::StrCat("GET /page HTTP/1.1\r\nHost: localhost\r\nX: ", large),
        absl::StrCat("GET /", large, " HTTP/1.1\r\n")}) {
    EXPECT_THAT(Exchange(request), Not(HasSubstr("the page")));
    EXPECT_THAT(Exchange(kGet), EndsWith("the page\n"));
  }
  std::string headers = "GET /page HTTP/1.1\r\nHost: localhost\r\n";
  for (int i = 0; i < 1000; ++i) {
    absl::StrAppend(&headers, "Header-", i, ": some value\r\n");
  }
  EXPECT_THAT(Exchange(headers + "\r\n"), Not(HasSubstr("the page")));
  EXPECT_THAT(Exchange(kGet), EndsWith("the page\n"));
}

TEST_F(HttpServerTest, ASlowClientIsCutOff) {
  Start({.max_connection_time = absl::Seconds(1)});
  const auto start = std::chrono::steady_clock::now();
  const fs::UniqueFd fd = Connect();
  const std::string request = "GET /page HTTP/1.1\r\nX: ";
  size_t sent = 0;
  while (!Closed(fd.get())) {
    const char byte = sent < request.size() ? request[sent] : 'x';
    ++sent;
    send(fd.get(), &byte, 1, MSG_NOSIGNAL);
    ASSERT_LT(std::chrono::steady_clock::now() - start,
              std::chrono::seconds(30));
  }
  EXPECT_GE(std::chrono::steady_clock::now() - start,
            std::chrono::milliseconds(900));
  EXPECT_THAT(Exchange(kGet), EndsWith("the page\n"));
}

TEST_F(HttpServerTest, ManyIdleConnectionsDelayOthersForALimitedTime) {
  Start({.max_connections = 4, .max_connection_time = absl::Seconds(1)});
  std::vector<fs::UniqueFd> idle;
  for (int i = 0; i < 10; ++i) idle.push_back(Connect());
  EXPECT_THAT(Exchange(kGet), EndsWith("the page\n"));
  // With open connections, also such that were never accepted.
  for (int i = 0; i < 10; ++i) idle.push_back(Connect());
  server_ = nullptr;
}

TEST_F(HttpServerTest, OtherAddressesThanLoopbackNeedPermission) {
  EXPECT_THAT(
      HttpServer::Start({.address = "0.0.0.0:0"}),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("0.0.0.0")));
  EXPECT_THAT(HttpServer::Start({.address = "[::]:0"}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  Start({.address = "0.0.0.0:0", .allow_network = true});
  EXPECT_THAT(Get("/page", "ps0.cluster.example:9400"),
              StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, WrongAddressesAreRefused) {
  EXPECT_THAT(HttpServer::Start({.address = "unix:/tmp/metrics"}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(HttpServer::Start({.address = "127.0.0.1"}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  Start();
  EXPECT_THAT(HttpServer::Start({.address = server_->address()}),
              StatusIs(absl::StatusCode::kAlreadyExists,
                       HasSubstr(server_->address())));
}

}  // namespace
}  // namespace hawser::net
