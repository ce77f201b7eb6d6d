#include "cli/ps/server_config.h"

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "cli/run.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "launch/worker_options.h"
#include "proto/ps_server.pb.h"

namespace hawser::cli {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::HasSubstr;

// Has all fields, with other values than the defaults.
constexpr char kAll[] =
    "name: \"ps0\"\n"
    "rank: 3\n"
    "init_url: \"tcp://10.0.0.1:29500\"\n"
    "job: \"ads\"\n"
    "bind: \"127.0.0.2:0\"\n"
    "advertise: \"127.0.0.3:0\"\n"
    "snapshot_directory: \"/data\"\n"
    "logging: SYNC\n"
    "limits {\n"
    "  max_tables: 5\n"
    "  max_keys: 6\n"
    "  max_rows: 7\n"
    "  max_row_bytes: 8\n"
    "}\n"
    "metrics {\n"
    "  address: \"127.0.0.1:9400\"\n"
    "  allow_network: true\n"
    "}\n"
    "disk_directory: \"/nvme\"\n";

std::string Write(const std::string& text) {
  std::string path = absl::StrCat(testing::TempDir(), "/ps.txtpb");
  std::ofstream(path) << text;
  return path;
}

struct Outcome {
  int exit_code;
  std::string out;
  std::string err;
};

Outcome PrintConfig(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"ps", "--print-config"});
  std::ostringstream out;
  std::ostringstream err;
  const int exit_code = cli::Run(arguments, out, err);
  return {exit_code, out.str(), err.str()};
}

TEST(ServerConfigTest, AFileIsReadAndPrintedAgain) {
  const auto config = ReadServerConfig(Write(kAll));
  ASSERT_THAT(config, IsOk());
  EXPECT_EQ(ServerConfigText(*config), kAll);
  const launch::WorkerOptions options = WorkerOptionsOf(*config);
  EXPECT_EQ(options.identity.name, "ps0");
  EXPECT_EQ(options.identity.rank, 3);
  EXPECT_EQ(options.identity.job, "ads");
  EXPECT_EQ(options.meeting_place.url, "tcp://10.0.0.1:29500");
  EXPECT_EQ(options.network.bind_address, "127.0.0.2:0");
  EXPECT_EQ(options.network.advertise_address, "127.0.0.3:0");
  EXPECT_EQ(options.metrics.address, "127.0.0.1:9400");
  EXPECT_TRUE(options.metrics.allow_network);
  ASSERT_EQ(options.services.size(), 1u);
}

TEST(ServerConfigTest, ErrorsNameFileLineAndField) {
  const struct {
    const char* text;
    int line;
    const char* error;
  } kCases[] = {
      {"name: \"a\"\nnam: \"b\"", 2, "no field named \"nam\""},
      {"limits {\n  max_row: 1\n}", 2, "no field named \"max_row\""},
      {"rank: -1", 1, "field \"rank\" must be between 0 and 32767, not -1"},
      {"\n\nrank: 40000", 3, "field \"rank\" must be between"},
      {"rank: 99999999999", 1, "In: rank: 99999999999"},
      {"rank: \"one\"", 1, "In: rank: \"one\""},
      {"limits { max_tables: 0 }", 1, "field \"max_tables\" must be between 1"},
      {"limits {\n max_keys: 0 }", 2, "field \"max_keys\" must be between 1"},
      {"limits {\n\n max_rows: -1 }", 3, "field \"max_rows\" must be between"},
      {"limits { max_row_bytes: 999999999999 }", 1,
       "field \"max_row_bytes\" must be between 1 and 17179869184"},
      {"logging: ALWAYS", 1, "\"ALWAYS\""},
      {"job: \"a\"\njob: \"b\"", 2, "\"job\" is specified multiple times"},
      {"limits {", 1, "In: limits {"},
  };
  for (const auto& [text, line, error] : kCases) {
    const std::string path = Write(text);
    EXPECT_THAT(
        ReadServerConfig(path),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 testing::AllOf(HasSubstr(absl::StrCat(path, ":", line, ": ")),
                                HasSubstr(error))));
  }
  for (const std::string& path : {std::string("/none"), testing::TempDir()}) {
    EXPECT_THAT(ReadServerConfig(path),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(path)));
  }
}

TEST(ServerConfigTest, DefaultsArePrinted) {
  const Outcome outcome = PrintConfig({});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out,
            "job: \"default\"\n"
            "bind: \"127.0.0.1:0\"\n"
            "logging: OFF\n"
            "limits {\n"
            "  max_tables: 1024\n"
            "  max_keys: 4194304\n"
            "  max_rows: 0\n"
            "  max_row_bytes: 268435456\n"
            "}\n"
            "metrics {\n"
            "  allow_network: false\n"
            "}\n");
}

TEST(ServerConfigTest, FlagsOverrideTheFileAndTheFileTheDefaults) {
  EXPECT_EQ(PrintConfig({"--config", Write(kAll)}).out, kAll);
  const Outcome outcome = PrintConfig(
      {"--name=ps1", "--rank=0", "--init=tcp://h:1", "--job=j",
       "--bind=127.0.0.9:0", "--advertise=127.0.0.8:0", "--snapshot-dir=/s",
       "--disk-dir=/d", "--logging=write", "--metrics-addr=127.0.0.1:1",
       "--max-tables=5", "--max-keys=6", "--max-row-bytes=8", "--config",
       Write(
           "rank: 7 limits { max_rows: 9 } metrics { allow_network: true }")});
  v1::TableServerConfig expected = DefaultServerConfig();
  google::protobuf::TextFormat::MergeFromString(
      "name: 'ps1' rank: 0 init_url: 'tcp://h:1' job: 'j' bind: '127.0.0.9:0' "
      "advertise: '127.0.0.8:0' snapshot_directory: '/s' logging: WRITE "
      "disk_directory: '/d' "
      "limits { max_tables: 5 max_keys: 6 max_rows: 9 max_row_bytes: 8 } "
      "metrics { address: '127.0.0.1:1' allow_network: true }",
      &expected);
  EXPECT_EQ(outcome.out, ServerConfigText(expected)) << outcome.err;
}

TEST(ServerConfigTest, LimitsOutOfRangeEndTheCommand) {
  EXPECT_THAT(PrintConfig({"--max-rows=0"}).out, HasSubstr("max_rows: 0"));
  for (const char* flag :
       {"--max-tables=0", "--max-keys=0", "--max-rows=-1", "--max-row-bytes=0",
        "--max-row-bytes=999999999999", "--max-rows=many"}) {
    const Outcome outcome = PrintConfig({flag});
    EXPECT_EQ(outcome.exit_code, 1) << flag;
    EXPECT_EQ(outcome.out, "");
    const std::string name(flag, std::string(flag).find('='));
    EXPECT_THAT(outcome.err, HasSubstr(name));
  }
}

TEST(ServerConfigTest, AWrongFileEndsTheCommand) {
  const Outcome outcome =
      PrintConfig({"--config", Write("limits {\n  max_table: 1\n}")});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, HasSubstr("ps.txtpb:2: "));
}

}  // namespace
}  // namespace hawser::cli
