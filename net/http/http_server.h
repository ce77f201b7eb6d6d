// Server of pages for monitoring, over HTTP/1.1.

#ifndef HAWSER_NET_HTTP_HTTP_SERVER_H_
#define HAWSER_NET_HTTP_HTTP_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hawser::net {

struct HttpPage {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = {};
};

struct HttpServerOptions {
  // "host:port" or "[v6]:port". Port 0 selects a free port.
  std::string address = {};
  // Permits addresses other than loopback. There is neither encryption nor
  // authentication: everyone who can connect can read the pages.
  bool allow_network = false;
  // By path, such as "/metrics". Run in the server's thread, one at a time, and
  // must not throw.
  std::map<std::string, std::function<HttpPage()>> pages = {};
  // Further connections wait until one ends. For each IP address that the host
  // of `address` resolves to.
  int max_connections = 16;
  // A connection is closed this long after it was accepted, whatever happens on
  // it. 1 s or more.
  absl::Duration max_connection_time = absl::Seconds(10);
};

// Serves GET and HEAD of a few paths, and closes each connection after its
// reply:
//
//   400  a malformed request, or one without exactly one header Host.
//   403  on loopback, a Host that is neither an IP address nor "localhost": the
//        request comes from a web page that had its own name resolved to
//        loopback.
//   404  another path.
//   405  another method.
//   431  headers of more than about 16 KiB.
//
// Has one thread. Memory is bounded by that of a page for each connection.
// Thread-safe.
class HttpServer {
 public:
  // Errors of net::ListeningSocket::Open, and
  //   kInvalidArgument     the address is that of a Unix socket.
  //   kFailedPrecondition  it is not loopback, and `allow_network` is not set.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      HttpServerOptions options);

  // Closes all connections; no page runs afterwards.
  virtual ~HttpServer() = default;
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // The address as given, with the port actually bound.
  virtual const std::string& address() const = 0;

 protected:
  HttpServer() = default;

 private:
  class Impl;
};

}  // namespace hawser::net

#endif  // HAWSER_NET_HTTP_HTTP_SERVER_H_
