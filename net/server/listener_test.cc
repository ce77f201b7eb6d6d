// Tests of the user check on Unix sockets. For limits, see
// rpc/grpc/limits_test.cc.

#include "net/server/listener.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "net/health/health.h"
#include "net/health/health_service.h"

namespace hawser::net {
namespace {

using ::hawser::async::IsOk;

constexpr uid_t kNobody = 65534;

// Outcome of a caller.
enum Outcome : int {
  kServed = 0,
  kRefused = 1,
  kMayNotConnect = 2,
  kSilence = 3,
  kNoSuchUser = 4,
};

// Connects to `path` as user `uid` and waits for the first bytes of HTTP/2.
// Safe in a forked child of a multithreaded process: makes only system calls.
Outcome ConnectAs(uid_t uid, const sockaddr_un& path) {
  if (syscall(SYS_setresuid, uid, uid, uid) != 0) return kNoSuchUser;
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  const auto* address = reinterpret_cast<const sockaddr*>(&path);
  if (connect(fd, address, sizeof(path)) != 0) {
    return errno == EACCES ? kMayNotConnect : kSilence;
  }
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  if (poll(&entry, 1, /*timeout=*/60'000) <= 0) return kSilence;
  char byte = 0;
  return read(fd, &byte, 1) == 1 ? kServed : kRefused;
}

// Serves at a Unix socket in a world-searchable directory.
class ListenerUserTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "only root can call as another user";
    }
    char directory[] = "/tmp/hawser_XXXXXX";
    ASSERT_NE(mkdtemp(directory), nullptr);
    directory_ = directory;
    ASSERT_EQ(chmod(directory, 0755), 0);
    path_ = absl::StrCat(directory_, "/socket");
    const mode_t umask_before = umask(0);
    auto listener = Listener::Open(absl::StrCat("unix:", path_));
    umask(umask_before);
    ASSERT_THAT(listener, IsOk());
    listener_ = *std::move(listener);
    grpc::ServerBuilder builder;
    listener_->AttachTo(builder, grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    listener_->Start();
  }

  void TearDown() override {
    if (listener_ != nullptr) listener_->Stop();
    health_->Close();
    if (server_ != nullptr) server_->Shutdown();
    if (!directory_.empty()) {
      EXPECT_EQ(rmdir(directory_.c_str()), 0);
    }
  }

  Outcome CallAs(uid_t uid) const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    const pid_t child = fork();
    if (child == 0) _exit(ConnectAs(uid, address));
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << status;
    return static_cast<Outcome>(WEXITSTATUS(status));
  }

  std::string directory_, path_;
  std::unique_ptr<Listener> listener_;
  std::shared_ptr<Health> health_ =
      std::make_shared<Health>(std::vector<std::string>());
  HealthService service_{health_};
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(ListenerUserTest, OtherUsersCannotConnectToThePath) {
  EXPECT_EQ(CallAs(kNobody), kMayNotConnect);
  EXPECT_EQ(CallAs(geteuid()), kServed);
}

TEST_F(ListenerUserTest, OtherUsersAreRefusedEvenIfThePathIsAccessible) {
  ASSERT_EQ(chmod(path_.c_str(), 0777), 0);
  EXPECT_EQ(CallAs(kNobody), kRefused);
  EXPECT_EQ(listener_->num_refused(), 1);
  EXPECT_EQ(CallAs(geteuid()), kServed);
  EXPECT_EQ(listener_->num_refused(), 1);
  EXPECT_EQ(listener_->num_accepted(), 1);
}

}  // namespace
}  // namespace hawser::net
