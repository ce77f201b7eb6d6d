#include "store/redis/connection.h"

#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/status_macros.h"
#include "store/redis/sigpipe_guard.h"
#include "store/unacknowledged_limit.h"

namespace hawser::store::internal {
namespace {

// The first word of a Redis error is its kind.
absl::Status FromRedis(const std::string& error) {
  static constexpr struct {
    const char* prefix;
    absl::StatusCode code;
  } kKinds[] = {
      {"NOAUTH", absl::StatusCode::kUnauthenticated},
      {"WRONGPASS", absl::StatusCode::kUnauthenticated},
      {"ERR AUTH", absl::StatusCode::kUnauthenticated},
      {"NOPERM", absl::StatusCode::kPermissionDenied},
      {"OOM", absl::StatusCode::kResourceExhausted},
      {"MISCONF", absl::StatusCode::kResourceExhausted},
      {"READONLY", absl::StatusCode::kFailedPrecondition},
      {"MOVED", absl::StatusCode::kFailedPrecondition},
      {"ERR DB index", absl::StatusCode::kInvalidArgument},
      {"ERR max number of clients", absl::StatusCode::kUnavailable},
      {"LOADING", absl::StatusCode::kUnavailable},
      {"BUSY", absl::StatusCode::kUnavailable},
      {"MASTERDOWN", absl::StatusCode::kUnavailable},
      {"CLUSTERDOWN", absl::StatusCode::kUnavailable},
      {"NOSCRIPT", absl::StatusCode::kUnavailable},
  };
  for (const auto& kind : kKinds) {
    if (absl::StartsWith(error, kind.prefix)) {
      return absl::Status(kind.code, absl::StrCat("Redis replied: ", error));
    }
  }
  return absl::InternalError(absl::StrCat("Redis replied: ", error));
}

// Recursion is bounded, since hiredis limits the nesting of replies.
RedisReply Convert(const redisReply& reply) {
  RedisReply result;
  switch (reply.type) {
    case REDIS_REPLY_INTEGER:
      result.kind = RedisReply::Kind::kInteger;
      result.integer = reply.integer;
      break;
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
      result.kind = RedisReply::Kind::kText;
      result.text.assign(reply.str, reply.len);
      break;
    case REDIS_REPLY_ARRAY:
      result.kind = RedisReply::Kind::kList;
      for (size_t i = 0; i < reply.elements; ++i) {
        result.list.push_back(Convert(*reply.element[i]));
      }
      break;
    default:
      break;
  }
  return result;
}

// As redisBufferWrite, also to a socket that the server has reset.
int Write(redisContext* context, int& done) {
  const SigpipeGuard guard;
  return redisBufferWrite(context, &done);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RedisConnection>> RedisConnection::Open(
    const RedisEndpoint& endpoint, async::MonotonicTime deadline) {
  redisContext* const context =
      redisConnectNonBlock(endpoint.host.c_str(), endpoint.port);
  if (context == nullptr) {
    return absl::ResourceExhaustedError("out of memory for a connection");
  }
  std::unique_ptr<RedisConnection> connection(new RedisConnection(context));
  if (context->err != 0) return connection->Lost();
  RETURN_IF_ERROR(connection->Await(POLLOUT, deadline));
  int error = 0;
  socklen_t length = sizeof(error);
  getsockopt(context->fd, SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot connect: ", strerror(error)));
  }
  // Detects an unreachable machine: while idle, after 15 to 30 s.
  redisEnableKeepAlive(context);
  setsockopt(context->fd, IPPROTO_TCP, TCP_USER_TIMEOUT,
             &kUnacknowledgedLimitMs, sizeof(kUnacknowledgedLimitMs));
  RETURN_IF_ERROR(connection->Introduce(endpoint, deadline));
  return connection;
}

RedisConnection::~RedisConnection() { redisFree(context_); }

void RedisConnection::Interrupt() { shutdown(context_->fd, SHUT_RDWR); }

absl::Status RedisConnection::Introduce(const RedisEndpoint& endpoint,
                                        async::MonotonicTime deadline) {
  if (!endpoint.password.empty()) {
    std::vector<std::string> command = {"AUTH"};
    if (!endpoint.username.empty()) command.push_back(endpoint.username);
    command.push_back(endpoint.password);
    RETURN_IF_ERROR(Call(command, deadline).status());
  }
  if (endpoint.database != 0) {
    const std::string command[] = {"SELECT", absl::StrCat(endpoint.database)};
    RETURN_IF_ERROR(Call(command, deadline).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<RedisReply> RedisConnection::Call(
    std::span<const std::string> command, async::MonotonicTime deadline) {
  RETURN_IF_ERROR(Send(command, deadline));
  return Receive(deadline);
}

absl::Status RedisConnection::Send(std::span<const std::string> command,
                                   async::MonotonicTime deadline) {
  std::vector<const char*> data;
  std::vector<size_t> sizes;
  for (const std::string& word : command) {
    data.push_back(word.data());
    sizes.push_back(word.size());
  }
  if (redisAppendCommandArgv(context_, static_cast<int>(data.size()),
                             data.data(), sizes.data()) != REDIS_OK) {
    return Lost();
  }
  int done = 0;
  while (true) {
    if (Write(context_, done) != REDIS_OK) return Lost();
    if (done != 0) return absl::OkStatus();
    RETURN_IF_ERROR(Await(POLLOUT, deadline));
  }
}

absl::StatusOr<RedisReply> RedisConnection::Receive(
    async::MonotonicTime deadline) {
  while (true) {
    void* raw = nullptr;
    if (redisGetReplyFromReader(context_, &raw) != REDIS_OK) return Lost();
    if (raw != nullptr) {
      const std::unique_ptr<redisReply, decltype(&freeReplyObject)> reply(
          static_cast<redisReply*>(raw), &freeReplyObject);
      if (reply->type == REDIS_REPLY_ERROR) {
        return FromRedis(std::string(reply->str, reply->len));
      }
      return Convert(*reply);
    }
    RETURN_IF_ERROR(Await(POLLIN, deadline));
    if (redisBufferRead(context_) != REDIS_OK) return Lost();
  }
}

absl::Status RedisConnection::Await(short events,
                                    async::MonotonicTime deadline) {
  constexpr absl::Duration kLongestPoll = absl::Minutes(5);
  while (true) {
    const absl::Duration left =
        async::TimeBetween(std::chrono::steady_clock::now(), deadline);
    pollfd socket{context_->fd, events, 0};
    const int ready =
        poll(&socket, 1,
             static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(
                 std::clamp(left, absl::ZeroDuration(), kLongestPoll),
                 absl::Milliseconds(1)))));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) {
      return absl::UnavailableError(
          absl::StrCat("cannot wait for Redis: ", strerror(errno)));
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      return absl::DeadlineExceededError("Redis did not reply in time");
    }
  }
}

absl::Status RedisConnection::Lost() const {
  return absl::UnavailableError(
      absl::StrCat("no connection: ",
                   context_->err == 0 ? "Redis closed it" : context_->errstr));
}

}  // namespace hawser::store::internal
