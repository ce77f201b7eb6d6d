// Access to the pages of a worker for monitoring.

#ifndef HAWSER_TESTS_SPARSE_METRICS_PAGE_H_
#define HAWSER_TESTS_SPARSE_METRICS_PAGE_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "fs/unique_fd.h"
#include "gtest/gtest.h"

namespace hawser::tests {

// The reply to a GET of `path` on that port of 127.0.0.1.
inline std::string Get(int port, const std::string& path) {
  const fs::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) != 0) {
    return "cannot connect";
  }
  const std::string request =
      absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL);
  std::string reply;
  char buffer[4096];
  ssize_t size = 0;
  while ((size = recv(fd.get(), buffer, sizeof(buffer), 0)) > 0) {
    reply.append(buffer, static_cast<size_t>(size));
  }
  return reply;
}

// The port in "...http://127.0.0.1:PORT/metrics".
inline int MetricsPort(const std::string& log) {
  const std::string before = "http://127.0.0.1:";
  const size_t begin = log.find(before) + before.size();
  int port = 0;
  EXPECT_TRUE(
      absl::SimpleAtoi(log.substr(begin, log.find('/', begin) - begin), &port))
      << log;
  return port;
}

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_SPARSE_METRICS_PAGE_H_
