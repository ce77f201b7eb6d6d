#include "rpc/same_host/tests/filesystem_footprint.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hawser::rpc {
namespace {

// Lines "from-to rw-s offset device inode path".
void AddMappings(const std::string& process, std::vector<std::string>& names) {
  std::ifstream maps(process + "/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    std::string range, permissions, offset, device, inode, path;
    fields >> range >> permissions >> offset >> device >> inode;
    std::getline(fields >> std::ws, path);
    if (permissions.size() == 4 && permissions[3] == 's' &&
        absl::StartsWith(path, "/") && !absl::EndsWith(path, " (deleted)")) {
      names.push_back(path);
    }
  }
}

// Lines "address references protocol flags type state inode [path]".
void AddSockets(const std::string& process, std::vector<std::string>& names) {
  std::set<std::string> own;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(process + "/fd", error)) {
    own.insert(std::filesystem::read_symlink(entry.path(), error).string());
  }
  std::ifstream sockets(process + "/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    std::istringstream fields(line);
    std::string skipped, inode, path;
    for (int i = 0; i < 6; ++i) fields >> skipped;
    fields >> inode >> path;
    // '@' marks abstract names, which are not in a file system.
    if (absl::StartsWith(path, "/") &&
        own.contains(absl::StrCat("socket:[", inode, "]"))) {
      names.push_back(path);
    }
  }
}

}  // namespace

std::vector<std::string> FilesystemFootprintOf(pid_t pid) {
  const std::string process = absl::StrCat("/proc/", pid);
  std::vector<std::string> names;
  AddMappings(process, names);
  AddSockets(process, names);
  return names;
}

}  // namespace hawser::rpc
