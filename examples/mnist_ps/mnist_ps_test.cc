// Tests that run the example as a user does, in several processes.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/testing/test_credentials.h"
#include "nlohmann/json.hpp"
#include "store/grpc/server.h"
#include "tests/program.h"
#include "tests/terminal_program.h"

namespace hawser::examples::mnist_ps {
namespace {

using async::IsOk;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using tests::Program;
using tests::TerminalProgram;

// The example with a silent limit for machines that may stall for seconds.
class MnistPs : public Program {
 public:
  explicit MnistPs(std::vector<std::string> flags)
      : Program("examples/mnist_ps/mnist_ps", Patient(std::move(flags))) {}

 private:
  // The last value of a repeated flag applies.
  static std::vector<std::string> Patient(std::vector<std::string> flags) {
    flags.insert(flags.begin(), "--silent_limit=20s");
    return flags;
  }
};

// The result line, which must be the only one on standard output.
nlohmann::json Result(const Program& program) {
  return nlohmann::json::parse(program.Output(), nullptr, false);
}

// The losses that --log_every=1 printed.
std::vector<double> Losses(const Program& program) {
  std::vector<double> losses;
  std::istringstream lines(program.Errors());
  for (std::string line; std::getline(lines, line);) {
    long long step = 0;
    double loss = 0;
    if (std::sscanf(line.c_str(), "step %lld loss %lf", &step, &loss) == 2) {
      EXPECT_EQ(step, static_cast<long long>(losses.size()) + 1);
      losses.push_back(loss);
    }
  }
  return losses;
}

std::string TemporaryPath(const std::string& name) {
  return (std::filesystem::path(::testing::TempDir()) / name).string();
}

TEST(MnistPsTest, TwoTrainersOnOneServerLearnSyntheticDigits) {
  MnistPs program({"--epochs=2"});
  ASSERT_EQ(program.Wait(), 0) << program.Errors();
  const auto result = Result(program);
  ASSERT_TRUE(result.is_object()) << program.Output();
  EXPECT_EQ(result["example"], "mnist_ps");
  EXPECT_GT(result["test_accuracy"], 0.95);
  EXPECT_LT(result["final_loss"], 0.3);
  EXPECT_GT(result["samples_per_s"], 0);
  EXPECT_TRUE(program.Processes().empty());
}

class ServersTest : public ::testing::TestWithParam<int> {};

TEST_P(ServersTest, LossesOfOneTrainerEqualThoseOfTheLocalRun) {
  // Two epochs, because the learning rate changes in the second one.
  const std::vector<std::string> flags = {"--deterministic", "--seed=5",
                                          "--epochs=2", "--log_every=1"};
  std::vector<std::string> local_flags = flags;
  local_flags.emplace_back("--local");
  MnistPs local(local_flags);
  std::vector<std::string> remote_flags = flags;
  remote_flags.emplace_back("--trainers=1");
  remote_flags.push_back(absl::StrCat("--servers=", GetParam()));
  MnistPs remote(remote_flags);
  ASSERT_EQ(local.Wait(), 0) << local.Errors();
  ASSERT_EQ(remote.Wait(), 0) << remote.Errors();
  const std::vector<double> expected = Losses(local);
  const std::vector<double> actual = Losses(remote);
  ASSERT_EQ(expected.size(), 314u);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], 1e-6 * std::abs(expected[i]))
        << "step " << i + 1;
  }
}

INSTANTIATE_TEST_SUITE_P(Counts, ServersTest, ::testing::Values(1, 2, 3));

TEST(MnistPsTest, RunStartsFromSavedParameters) {
  const std::string path = TemporaryPath("saved.safetensors");
  MnistPs first({"--servers=2", "--epochs=2", "--save=" + path});
  ASSERT_EQ(first.Wait(), 0) << first.Errors();
  MnistPs second({"--local", "--epochs=1", "--init=" + path, "--log_every=1",
                  "--optimizer=SGD(lr=0)"});
  ASSERT_EQ(second.Wait(), 0) << second.Errors();
  EXPECT_EQ(Result(second)["test_accuracy"], Result(first)["test_accuracy"]);
  ASSERT_FALSE(Losses(second).empty());
  EXPECT_LT(Losses(second)[0], 1.0);  // Without training: log(10), 2.3.
}

TEST(MnistPsTest, FinalLossIsThatOfTheFinalModel) {
  const std::string path = TemporaryPath("final.safetensors");
  MnistPs first({"--local", "--epochs=1", "--save=" + path});
  ASSERT_EQ(first.Wait(), 0) << first.Errors();
  // Does not change the model. The losses of its epoch are those of the
  // training samples.
  MnistPs second({"--local", "--epochs=1", "--init=" + path,
                  "--optimizer=SGD(lr=0)", "--batch_size=1000"});
  ASSERT_EQ(second.Wait(), 0) << second.Errors();
  const double loss = Result(first)["final_loss"];
  EXPECT_GT(loss, 0);
  EXPECT_NEAR(Result(second)["final_loss"], loss, 2e-6);
}

TEST(MnistPsTest, ModelIsKeptElsewhereIfItsDirectoryIsRemoved) {
  const std::string directory = TemporaryPath("removed");
  std::filesystem::create_directories(directory);
  MnistPs program({"--epochs=2", "--log_every=1", "--notice_period=60s",
                   "--save=" + directory + "/model"});
  ASSERT_TRUE(program.WaitForError("step 5 loss")) << program.Errors();
  std::filesystem::remove_all(directory);
  EXPECT_EQ(program.Wait(), 1);
  EXPECT_TRUE(Result(program).is_object()) << program.Output();
  const std::string errors = program.Errors();
  EXPECT_THAT(errors,
              AllOf(HasSubstr("mnist_ps trainer0: --save=" + directory),
                    HasSubstr("; the model is in "),
                    EndsWith("mnist_ps: trainer0 exited with code 1\n")));
  // The other processes have succeeded.
  EXPECT_THAT(errors, Not(HasSubstr("mnist_ps trainer1:")));
}

TEST(MnistPsTest, HelpShowsTheFlagsOfTheExample) {
  MnistPs program({"--help"});
  EXPECT_EQ(program.Wait(), 0);
  const std::string help = program.Output();
  EXPECT_THAT(help, AllOf(HasSubstr("\n  --servers=1\n"),
                          HasSubstr("\n  --trainers=2\n"),
                          HasSubstr("\n  --silent_limit=3s\n"),
                          HasSubstr("\n  --data_dir=''\n"),
                          HasSubstr("\n  samples_per_s\n")));
  // Abseil's own flags.
  EXPECT_THAT(help, Not(HasSubstr("--flagfile")));
  EXPECT_EQ(program.Errors(), "");
}

// The texts between the carriage returns of a terminal, without spaces at their
// ends.
std::vector<std::string> Drawings(const std::string& screen) {
  std::vector<std::string> drawings;
  std::istringstream text(screen);
  for (std::string drawing; std::getline(text, drawing, '\r');) {
    drawings.push_back(drawing.substr(0, drawing.find_last_not_of(' ') + 1));
  }
  return drawings;
}

class TerminalTest : public ::testing::TestWithParam<bool> {};

TEST_P(TerminalTest, CtrlCEndsTheJobOnALineOfItsOwn) {
  if (!TerminalProgram::CanStart()) {
    GTEST_SKIP() << "no terminals here: /dev/pts is not mounted";
  }
  std::vector<std::string> flags = {"--epochs=10000", "--silent_limit=20s"};
  if (GetParam()) flags.emplace_back("--local");
  TerminalProgram program("examples/mnist_ps/mnist_ps", flags, 50);
  ASSERT_TRUE(program.ReadUntil("left ")) << program.Screen();
  // One line, redrawn in place, that is shorter than the terminal's.
  const std::string line =
      program.Screen().substr(program.Screen().find("\rstep "));
  EXPECT_THAT(line, Not(HasSubstr("\n")));
  for (const std::string& drawing : Drawings(line)) {
    EXPECT_LT(drawing.size(), 50u) << drawing;
  }
  program.Type("\x03");
  EXPECT_EQ(program.Wait(), 130) << program.Screen();
  EXPECT_THAT(program.Screen(),
              EndsWith("\r\nmnist_ps: stopped by Interrupt\r\n"));
  // No process has reported an error of its own.
  EXPECT_THAT(program.Screen(), Not(HasSubstr("mnist_ps server0")));
  EXPECT_THAT(program.Screen(), Not(HasSubstr("mnist_ps trainer")));
}

INSTANTIATE_TEST_SUITE_P(Local, TerminalTest, ::testing::Bool());

std::vector<std::string> WithCredentials(const std::string& directory,
                                         const std::string& token) {
  return {"--epochs=1", "--tls_cert=" + directory + "/{worker}.crt",
          "--tls_key=" + directory + "/{worker}.key",
          "--tls_ca=" + directory + "/ca.crt", "--token_file=" + token};
}

TEST(MnistPsTest, ProcessesTrainUnderTlsAndToken) {
  net::TestAuthority authority;
  for (const char* worker : {"launcher", "server0", "trainer0", "trainer1"}) {
    authority.Issue(worker);
  }
  const std::string token = authority.Write("token", std::string(64, 'a'));
  MnistPs program(WithCredentials(authority.directory(), token));
  ASSERT_EQ(program.Wait(), 0) << program.Errors();
  EXPECT_GT(Result(program)["test_accuracy"], 0.9);
}

TEST(MnistPsTest, CertificateOfAnotherProcessEndsTheJobAndIsNamed) {
  net::TestAuthority authority;
  for (const char* worker : {"launcher", "server0", "trainer0", "trainer1"}) {
    authority.Issue(worker);
  }
  for (const char* file : {"trainer1.crt", "trainer1.key"}) {
    std::filesystem::remove(authority.directory() + "/" + file);
  }
  std::filesystem::copy(authority.directory() + "/trainer0.crt",
                        authority.directory() + "/trainer1.crt");
  std::filesystem::copy(authority.directory() + "/trainer0.key",
                        authority.directory() + "/trainer1.key");
  const std::string token = authority.Write("token", std::string(64, 'a'));
  MnistPs program(WithCredentials(authority.directory(), token));
  EXPECT_EQ(program.Wait(), 1);
  EXPECT_THAT(program.Errors(), AllOf(HasSubstr("hawser://default/trainer0"),
                                      HasSubstr("hawser://default/trainer1")));
}

struct BadInput {
  std::string name;
  std::vector<std::string> flags;
  std::string error;
};

class BadInputTest : public ::testing::TestWithParam<BadInput> {};

TEST_P(BadInputTest, PrintsOneLineAndExitsWithOneWithoutChildren) {
  std::ofstream(TemporaryPath("header.safetensors"), std::ios::binary)
      << std::string("\x20\0\0\0\0\0\0\0{\"fc1.weight\":", 22);
  const std::string idx = TemporaryPath("truncated");
  std::filesystem::create_directories(idx);
  for (const char* part : {"train", "t10k"}) {
    std::ofstream(idx + "/" + part + "-images-idx3-ubyte", std::ios::binary)
        << std::string(
               "\0\0\x08\x03\0\0\0\x05\0\0\0\x1c\0\0\0\x1c"
               "abc",
               19);
    std::ofstream(idx + "/" + part + "-labels-idx1-ubyte", std::ios::binary)
        << std::string(
               "\0\0\x08\x01\0\0\0\x05"
               "abcde",
               13);
  }
  MnistPs program(GetParam().flags);
  EXPECT_EQ(program.Wait(), 1);
  EXPECT_THAT(program.Errors(), HasSubstr(GetParam().error));
  EXPECT_EQ(program.Output(), "");
  EXPECT_TRUE(program.Processes().empty());
  // Exactly one process reports the error.
  const std::string errors = program.Errors();
  const auto lines = std::count(errors.begin(), errors.end(), '\n');
  EXPECT_EQ(lines, 1) << errors;
}

std::vector<BadInput> BadInputs() {
  const std::string header = "--init=" + TemporaryPath("header.safetensors");
  const std::string idx = "--data_dir=" + TemporaryPath("truncated");
  return {
      {"MissingData", {"--data_dir=/no/such"}, "/no/such"},
      {"MissingDataLocal", {"--local", "--data_dir=/no/such"}, "/no/such"},
      {"TruncatedData", {idx}, "train-images-idx3-ubyte: truncated"},
      {"MalformedHeader", {header}, "header.safetensors"},
      {"MalformedHeaderLocal", {"--local", header}, "header.safetensors"},
      {"UnknownFlagValue", {"--servers=many"}, "'many'"},
      {"UnknownOptimizer", {"--optimizer=Foo"}, "Foo"},
      {"NegativeCount", {"--trainers=0"}, "--trainers=0"},
      {"UnknownRole", {"--role=dog"}, "--role=dog"},
      {"RoleWithoutMaster", {"--role=server"}, "--master"},
      {"UnknownScheme", {"--role=server", "--master=ftp://h"}, "ftp://h"},
      {"HoldoutTooLarge", {"--holdout=12000"}, "12000"},
      {"NoSilence", {"--silent_limit=0"}, "--silent_limit=0"},
      {"NoNotice", {"--notice_period=-1s"}, "--notice_period=-1s"},
      {"EndlessNotice", {"--notice_period=inf"}, "--notice_period=inf"},
      {"UnwritableSave", {"--save=/no/such/file"}, "/no/such/file"},
  };
}

INSTANTIATE_TEST_SUITE_P(All, BadInputTest, ::testing::ValuesIn(BadInputs()),
                         [](const auto& p) { return p.param.name; });

TEST(MnistPsTest, ErrorNamesTheBusyPort) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(listener, generic, sizeof(address)), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  socklen_t length = sizeof(address);
  ASSERT_EQ(getsockname(listener, generic, &length), 0);
  const std::string master =
      absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  MnistPs program({"--role=server", "--master=" + master});
  EXPECT_EQ(program.Wait(), 1);
  EXPECT_THAT(program.Errors(),
              AllOf(HasSubstr("mnist_ps server0"), HasSubstr(master)));
  close(listener);
}

TEST(MnistPsTest, RolesJoinThroughAFile) {
  const std::string path = ::testing::TempDir() + "/mnist_ps_store";
  const std::vector<std::string> common = {"--trainers=1", "--epochs=1",
                                           "--master=file://" + path};
  const auto with = [&](const std::string& role) {
    std::vector<std::string> flags = common;
    flags.push_back(role);
    return flags;
  };
  MnistPs trainer(with("--role=trainer"));
  MnistPs server(with("--role=server"));
  EXPECT_EQ(trainer.Wait(), 0) << trainer.Errors();
  EXPECT_EQ(server.Wait(), 0) << server.Errors();
}

TEST(MnistPsTest, ProcessesTrainOnTheChosenInterfaceAndAddress) {
  MnistPs program({"--epochs=1", "--interface=lo", "--bind_address=[::1]:0"});
  EXPECT_EQ(program.Wait(), 0) << program.Errors();
}

class RefusedPlaceTest : public ::testing::TestWithParam<BadInput> {};

TEST_P(RefusedPlaceTest, ErrorNamesTheAddress) {
  const auto store = store::StoreServer::Start({});
  ASSERT_THAT(store, IsOk());
  std::vector<std::string> flags = {
      "--role=server", "--external_store",
      absl::StrCat("--master=", (*store)->address())};
  flags.insert(flags.end(), GetParam().flags.begin(), GetParam().flags.end());
  MnistPs program(flags);
  EXPECT_EQ(program.Wait(), 1);
  EXPECT_THAT(program.Errors(), HasSubstr(GetParam().error));
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedPlaceTest,
    ::testing::Values(
        BadInput{"UnknownInterface", {"--interface=no0"}, "'no0'"},
        BadInput{"NoAddress", {"--bind_address=here"}, "listen on here"},
        BadInput{"OffLoopback", {"--bind_address=0.0.0.0:0"}, "0.0.0.0"}),
    [](const auto& p) { return p.param.name; });

TEST(MnistPsTest, RolesStartedSeparatelyJoinThroughTheStore) {
  const auto store = store::StoreServer::Start({});
  ASSERT_THAT(store, IsOk());
  const std::vector<std::string> common = {
      "--trainers=1", "--epochs=1", "--external_store",
      absl::StrCat("--master=", (*store)->address())};
  const auto with = [&](const std::string& role) {
    std::vector<std::string> flags = common;
    flags.push_back(role);
    return flags;
  };
  MnistPs trainer(with("--role=trainer"));
  MnistPs server(with("--role=server"));
  EXPECT_EQ(trainer.Wait(), 0) << trainer.Errors();
  EXPECT_EQ(server.Wait(), 0) << server.Errors();
  EXPECT_GT(Result(trainer)["test_accuracy"], 0.9);
}

class DeathTest : public ::testing::TestWithParam<std::string> {};

TEST_P(DeathTest, OtherProcessesEndAndNameTheDeadOne) {
  MnistPs program({"--servers=2", "--trainers=2", "--epochs=10000",
                   "--log_every=1", "--notice_period=60s"});
  ASSERT_TRUE(program.WaitForError("step 20 loss")) << program.Errors();
  const std::string role = GetParam().substr(0, GetParam().size() - 1);
  const std::string index = GetParam().substr(GetParam().size() - 1);
  const auto victims =
      program.Processes("--role=" + role + " --index=" + index);
  ASSERT_EQ(victims.size(), 1u);
  ASSERT_EQ(kill(victims[0], SIGKILL), 0);
  EXPECT_EQ(program.Wait(), 1);
  const std::string errors = program.Errors();
  EXPECT_THAT(errors, EndsWith("mnist_ps: " + GetParam() +
                               " was killed by signal 9 (Killed)\n"));
  for (const std::string name :
       {"server0", "server1", "trainer0", "trainer1"}) {
    if (name == GetParam()) continue;
    const size_t begin = errors.find("mnist_ps " + name + ": ");
    ASSERT_NE(begin, std::string::npos)
        << name << " reported no error: " << errors;
    EXPECT_THAT(errors.substr(begin, errors.find('\n', begin) - begin),
                HasSubstr(GetParam()));
  }
  EXPECT_TRUE(program.Processes().empty());
}

INSTANTIATE_TEST_SUITE_P(Workers, DeathTest,
                         ::testing::Values("server0", "server1", "trainer0",
                                           "trainer1"),
                         [](const auto& p) { return p.param; });

TEST(MnistPsTest, LauncherStopsItsChildrenOnSigterm) {
  MnistPs program({"--epochs=10000", "--log_every=1"});
  ASSERT_TRUE(program.WaitForError("step 5 loss")) << program.Errors();
  ASSERT_EQ(kill(program.pid(), SIGTERM), 0);
  EXPECT_EQ(program.Wait(std::chrono::seconds(20)), 128 + SIGTERM);
  EXPECT_TRUE(program.Processes().empty());
  EXPECT_THAT(program.Errors(), EndsWith("mnist_ps: stopped by Terminated\n"));
}

TEST(MnistPsTest, ChildrenDieWithAKilledLauncher) {
  MnistPs program({"--epochs=10000", "--log_every=1"});
  ASSERT_TRUE(program.WaitForError("step 5 loss")) << program.Errors();
  const auto children = program.Processes("--role=");
  ASSERT_EQ(children.size(), 3u);
  ASSERT_EQ(kill(program.pid(), SIGKILL), 0);
  EXPECT_EQ(program.Wait(), 128 + SIGKILL);
  EXPECT_TRUE(tests::WaitUntilGone(children));
}

// Trains on 10,000 real digits in HAWSER_MNIST_DIR and tests on the last 2,000.
class RealDigitsTest : public ::testing::TestWithParam<std::pair<int, int>> {};

TEST_P(RealDigitsTest, AreClassifiedWell) {
  const char* directory = std::getenv("HAWSER_MNIST_DIR");
  if (directory == nullptr) {
    GTEST_SKIP() << "HAWSER_MNIST_DIR does not name a directory of digits";
  }
  const auto [servers, trainers] = GetParam();
  MnistPs program({absl::StrCat("--data_dir=", directory), "--holdout=2000",
                   "--epochs=10", absl::StrCat("--servers=", servers),
                   absl::StrCat("--trainers=", trainers)});
  ASSERT_EQ(program.Wait(std::chrono::seconds(200)), 0) << program.Errors();
  EXPECT_GE(Result(program)["test_accuracy"], 0.945);
}

INSTANTIATE_TEST_SUITE_P(ServersAndTrainers, RealDigitsTest,
                         ::testing::Values(std::pair{1, 1}, std::pair{1, 2},
                                           std::pair{3, 1}, std::pair{3, 2}),
                         [](const auto& p) {
                           return absl::StrCat(p.param.first, "_",
                                               p.param.second);
                         });

}  // namespace
}  // namespace hawser::examples::mnist_ps
