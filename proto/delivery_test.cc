// Checks that every method of every service in proto/ declares its delivery
// class.

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/descriptor.pb.h"
#include "gtest/gtest.h"
#include "proto/options.pb.h"

namespace hawser {
namespace {

using ::google::protobuf::FileDescriptorProto;
using ::google::protobuf::FileDescriptorSet;
using ::google::protobuf::MethodDescriptorProto;
using ::google::protobuf::ServiceDescriptorProto;

// The compiled descriptor files in the test's data.
FileDescriptorSet LoadFiles() {
  FileDescriptorSet files;
  for (const auto& entry : std::filesystem::directory_iterator("proto")) {
    if (!entry.path().filename().string().ends_with(".proto.bin")) continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    FileDescriptorSet set;
    EXPECT_TRUE(set.ParseFromIstream(&stream)) << entry.path();
    files.MergeFrom(set);
  }
  return files;
}

TEST(DeliveryTest, EveryMethodDeclaresItsClass) {
  int num_methods = 0;
  const FileDescriptorSet files = LoadFiles();
  for (const FileDescriptorProto& file : files.file()) {
    for (const ServiceDescriptorProto& service : file.service()) {
      for (const MethodDescriptorProto& method : service.method()) {
        ++num_methods;
        EXPECT_NE(method.options().GetExtension(v1::delivery),
                  v1::DeliveryClass::UNDECLARED)
            << file.name() << ": " << service.name() << "." << method.name()
            << " lacks `option (hawser.v1.delivery) = ...;`";
      }
    }
  }
  EXPECT_GT(num_methods, 0);
}

TEST(DeliveryTest, EveryFileOfTheFolderIsChecked) {
  std::set<std::string> compiled;
  const FileDescriptorSet files = LoadFiles();
  for (const FileDescriptorProto& file : files.file()) {
    compiled.insert(file.name());
  }
  std::set<std::string> sources;
  for (const auto& entry : std::filesystem::directory_iterator("proto")) {
    if (entry.path().extension() == ".proto") {
      sources.insert(entry.path().string());
    }
  }
  EXPECT_EQ(compiled, sources)
      << "list each proto_library in the data of //proto:delivery_test";
}

}  // namespace
}  // namespace hawser
