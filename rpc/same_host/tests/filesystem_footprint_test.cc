#include "rpc/same_host/tests/filesystem_footprint.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hawser::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FilesystemFootprintTest, ListsSharedFilesAndSocketsUntilTheyAreDeleted) {
  EXPECT_THAT(FilesystemFootprintOf(getpid()), IsEmpty());
  // A socket's path has at most 107 bytes.
  std::string directory = "/tmp/hawser_XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const std::string file = directory + "/shared";
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(ftruncate(fd, 4096), 0);
  void* const memory =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(memory, MAP_FAILED);
  // Even without a descriptor.
  close(fd);
  EXPECT_THAT(FilesystemFootprintOf(getpid()), ElementsAre(file));
  std::filesystem::remove(file);
  EXPECT_THAT(FilesystemFootprintOf(getpid()), IsEmpty());
  munmap(memory, 4096);

  const std::string path = directory + "/s";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int bound = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(bind(bound, reinterpret_cast<sockaddr*>(&address), sizeof(address)),
            0);
  EXPECT_THAT(FilesystemFootprintOf(getpid()), ElementsAre(path));
  close(bound);
  std::filesystem::remove_all(directory);
  EXPECT_THAT(FilesystemFootprintOf(getpid()), IsEmpty());
}

}  // namespace
}  // namespace hawser::rpc
