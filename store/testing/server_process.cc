#include "store/testing/server_process.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "async/check.h"
#include "gtest/gtest.h"

namespace hawser::store::internal {
namespace {

constexpr char kEtcd[] = "/usr/bin/etcd";
constexpr char kRedis[] = "/usr/bin/redis-server";

void CheckInstalled(const char* path, const char* package) {
  HAWSER_CHECK(access(path, X_OK) == 0)
      << path << " is missing: run ./bazelw, or `apt-get install " << package
      << "`";
}

std::string MakeFolder() {
  std::string path = testing::TempDir() + "/etcd.XXXXXX";
  HAWSER_CHECK(mkdtemp(path.data()) != nullptr) << "cannot make " << path;
  return path;
}

// Returns the number that follows `before` in `text`.
int NumberBehind(const std::string& text, const std::string& before) {
  const size_t at = text.find(before);
  HAWSER_CHECK(at != std::string::npos);
  return std::atoi(text.c_str() + at + before.size());
}

// A port that was free a moment ago.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof(address);
  HAWSER_CHECK(bind(fd, raw, length) == 0 &&
               getsockname(fd, raw, &length) == 0);
  close(fd);
  return ntohs(address.sin_port);
}

}  // namespace

EtcdProcess::EtcdProcess() : folder_(MakeFolder()) { Start(); }

EtcdProcess::~EtcdProcess() {
  program_.reset();
  std::filesystem::remove_all(folder_);
}

std::string EtcdProcess::address() const {
  return absl::StrCat("127.0.0.1:", port_);
}

void EtcdProcess::Restart() { Start(); }

void EtcdProcess::Start() {
  CheckInstalled(kEtcd, "etcd-server");
  program_.reset();
  const std::string any = "http://127.0.0.1:0";
  program_ = std::make_unique<tests::Program>(
      kEtcd,
      std::vector<std::string>{
          "--data-dir=" + folder_, "--listen-client-urls=" + any,
          "--advertise-client-urls=" + any, "--listen-peer-urls=" + any,
          "--initial-advertise-peer-urls=" + any,
          "--initial-cluster=default=" + any, "--enable-grpc-gateway=false",
          "--logger=zap", "--log-outputs=stderr", "--unsafe-no-fsync"});
  const std::string serving = "\"msg\":\"serving client traffic insecurely";
  const bool serves = program_->WaitForError(serving);
  HAWSER_CHECK(serves) << "etcd does not start: " << program_->Errors();
  const std::string log = program_->Errors();
  port_ =
      NumberBehind(log.substr(log.find(serving)), "\"address\":\"127.0.0.1:");
}

RedisProcess::RedisProcess(std::vector<std::string> options)
    : options_(std::move(options)) {
  Start();
}

std::string RedisProcess::address() const {
  return absl::StrCat("127.0.0.1:", port_);
}

void RedisProcess::Start() {
  CheckInstalled(kRedis, "redis-server");
  program_.reset();
  // Redis cannot choose a free port itself, so another process may take it
  // first.
  for (int attempt = 0; attempt < 10; ++attempt) {
    port_ = FreePort();
    std::vector<std::string> arguments = {
        "--bind", "127.0.0.1", "--port",    absl::StrCat(port_),
        "--save", "",          "--logfile", "/dev/stderr"};
    arguments.insert(arguments.end(), options_.begin(), options_.end());
    program_ = std::make_unique<tests::Program>(kRedis, arguments);
    if (program_->WaitForError("Ready to accept connections",
                               std::chrono::seconds(20))) {
      return;
    }
  }
  HAWSER_CHECK(false) << "redis-server does not start: " << program_->Errors();
}

}  // namespace hawser::store::internal
