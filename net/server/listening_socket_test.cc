#include "net/server/listening_socket.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::net {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ListeningSocketTest, PortZeroIsReplaced) {
  auto socket = ListeningSocket::Open("127.0.0.1:0");
  ASSERT_THAT(socket, IsOk());
  EXPECT_GT((*socket)->port(), 0);
  EXPECT_EQ((*socket)->address(),
            absl::StrCat("127.0.0.1:", (*socket)->port()));
}

TEST(ListeningSocketTest, APortIsNotShared) {
  auto socket = ListeningSocket::Open("127.0.0.1:0");
  ASSERT_THAT(socket, IsOk());
  EXPECT_THAT(
      ListeningSocket::Open((*socket)->address()),
      StatusIs(absl::StatusCode::kAlreadyExists,
               AllOf(HasSubstr((*socket)->address()), HasSubstr("in use"))));
  const std::string address = (*socket)->address();
  socket->reset();
  EXPECT_THAT(ListeningSocket::Open(address), IsOk());
}

TEST(ListeningSocketTest, ForeignAddressIsRejected) {
  for (const char* address :
       {"", ":1", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536",
        "127.0.0.1:-1", "[::1:0", "192.0.2.1:0", "no host:0", "unix:"}) {
    EXPECT_THAT(ListeningSocket::Open(address),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << address;
  }
  EXPECT_THAT(ListeningSocket::Open("unix:" + std::string(200, 'x')),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ListeningSocketTest, PathIsRemovedAndAStaleOneReplaced) {
  char directory[] = "/tmp/hawser_XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  const std::string path = absl::StrCat(directory, "/socket");
  const std::string address = absl::StrCat("unix:", path);
  {
    auto socket = ListeningSocket::Open(address);
    ASSERT_THAT(socket, IsOk());
    EXPECT_THAT(ListeningSocket::Open(address),
                StatusIs(absl::StatusCode::kAlreadyExists));
    // A killed server leaves the path behind.
    ASSERT_EQ(link(path.c_str(), absl::StrCat(path, "2").c_str()), 0);
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  {
    auto taken_over = ListeningSocket::Open(absl::StrCat(address, "2"));
    EXPECT_THAT(taken_over, IsOk());
  }
  EXPECT_EQ(rmdir(directory), 0);
}

TEST(ListeningSocketTest, PathIsPrivateToItsOwner) {
  char directory[] = "/tmp/hawser_XXXXXX";
  ASSERT_NE(mkdtemp(directory), nullptr);
  const std::string path = absl::StrCat(directory, "/socket");
  const mode_t umask_before = umask(0);
  {
    auto socket = ListeningSocket::Open(absl::StrCat("unix:", path));
    EXPECT_THAT(socket, IsOk());
    struct stat file {};
    EXPECT_EQ(stat(path.c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 07777, 0600u);
  }
  umask(umask_before);
  EXPECT_EQ(rmdir(directory), 0);
}

}  // namespace
}  // namespace hawser::net
