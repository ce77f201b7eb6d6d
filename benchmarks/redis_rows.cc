#include "benchmarks/redis_rows.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::benchmarks {
namespace {

constexpr char kServer[] = "/usr/bin/redis-server";
constexpr size_t kKeysPerCommand = 512;
constexpr int kStartTimeoutMs = 10'000;

// A port that was free a moment ago.
absl::StatusOr<int> FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const bool ok =
      fd >= 0 &&
      bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  if (fd >= 0) close(fd);
  if (!ok) return absl::UnavailableError("no free port for redis-server");
  return ntohs(address.sin_port);
}

absl::Status ErrorOf(const redisContext* connection, const char* command) {
  return absl::InternalError(absl::StrCat(
      "redis ", command, ": ",
      connection->err != 0 ? connection->errstr : "unexpected reply"));
}

// Waits until the server writes to `log` that it accepts connections. False: it
// has ended, or does not do so for a while.
bool AwaitReady(int log) {
  std::string text;
  char buffer[512];
  while (text.find("Ready to accept connections") == std::string::npos) {
    pollfd ready = {.fd = log, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, kStartTimeoutMs) <= 0) return false;
    const ssize_t size = read(log, buffer, sizeof(buffer));
    if (size <= 0) return false;
    text.append(buffer, static_cast<size_t>(size));
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RedisRows>> RedisRows::Start(size_t width) {
  if (access(kServer, X_OK) != 0) {
    return absl::NotFoundError(
        "install the peer: apt-get install redis-server");
  }
  ASSIGN_OR_RETURN(const int port, FreePort());
  const std::string port_text = absl::StrCat(port);
  int log[2];
  if (pipe2(log, O_CLOEXEC) != 0) {
    return absl::UnavailableError("cannot start redis-server");
  }
  const pid_t server = fork();
  if (server == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(log[1], STDOUT_FILENO);
    execl(kServer, kServer, "--port", port_text.c_str(), "--bind", "127.0.0.1",
          "--save", "", nullptr);
    _exit(127);
  }
  close(log[1]);
  redisContext* connection = nullptr;
  if (server > 0 && AwaitReady(log[0])) {
    connection = redisConnect("127.0.0.1", port);
  }
  // Redis ignores that nobody reads its log any more.
  close(log[0]);
  if (connection == nullptr || connection->err != 0) {
    if (connection != nullptr) redisFree(connection);
    if (server > 0) {
      kill(server, SIGKILL);
      waitpid(server, nullptr, 0);
    }
    return absl::UnavailableError("redis-server does not start");
  }
  return std::unique_ptr<RedisRows>(new RedisRows(server, connection, width));
}

RedisRows::~RedisRows() {
  redisFree(connection_);
  kill(server_, SIGKILL);
  waitpid(server_, nullptr, 0);
}

absl::Status RedisRows::Send(const char* name, std::span<const uint64_t> keys,
                             const float* rows) {
  std::vector<const char*> arguments;
  std::vector<size_t> sizes;
  for (size_t begin = 0; begin < keys.size(); begin += kKeysPerCommand) {
    const size_t end = std::min(begin + kKeysPerCommand, keys.size());
    arguments.assign(1, name);
    sizes.assign(1, std::strlen(name));
    for (size_t i = begin; i < end; ++i) {
      arguments.push_back(reinterpret_cast<const char*>(&keys[i]));
      sizes.push_back(sizeof(uint64_t));
      if (rows == nullptr) continue;
      arguments.push_back(reinterpret_cast<const char*>(rows + i * width_));
      sizes.push_back(width_ * sizeof(float));
    }
    if (redisAppendCommandArgv(connection_, static_cast<int>(arguments.size()),
                               arguments.data(), sizes.data()) != REDIS_OK) {
      return ErrorOf(connection_, name);
    }
  }
  return absl::OkStatus();
}

absl::Status RedisRows::Get(std::span<const uint64_t> keys,
                            std::span<float> rows) {
  RETURN_IF_ERROR(Send("MGET", keys, nullptr));
  float* next = rows.data();
  for (size_t begin = 0; begin < keys.size(); begin += kKeysPerCommand) {
    redisReply* reply = nullptr;
    if (redisGetReply(connection_, reinterpret_cast<void**>(&reply)) !=
        REDIS_OK) {
      return ErrorOf(connection_, "MGET");
    }
    bool ok = reply->type == REDIS_REPLY_ARRAY;
    for (size_t i = 0; ok && i < reply->elements; ++i) {
      ok = reply->element[i]->len == width_ * sizeof(float);
      if (!ok) break;
      std::memcpy(next, reply->element[i]->str, reply->element[i]->len);
      next += width_;
    }
    freeReplyObject(reply);
    if (!ok) return ErrorOf(connection_, "MGET");
  }
  return absl::OkStatus();
}

absl::Status RedisRows::Set(std::span<const uint64_t> keys,
                            std::span<const float> rows) {
  RETURN_IF_ERROR(Send("MSET", keys, rows.data()));
  for (size_t begin = 0; begin < keys.size(); begin += kKeysPerCommand) {
    redisReply* reply = nullptr;
    if (redisGetReply(connection_, reinterpret_cast<void**>(&reply)) !=
        REDIS_OK) {
      return ErrorOf(connection_, "MSET");
    }
    const bool ok = reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    if (!ok) return ErrorOf(connection_, "MSET");
  }
  return absl::OkStatus();
}

}  // namespace hawser::benchmarks
