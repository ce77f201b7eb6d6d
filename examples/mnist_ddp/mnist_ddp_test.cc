// Runs the program as its users do.

#include <cstdlib>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/program.h"

namespace hawser::examples {
namespace {

using ::testing::HasSubstr;
using tests::Program;

constexpr char kProgram[] = "examples/mnist_ddp/mnist_ddp";
constexpr char kHawser[] = "cli/hawser";

// The line of JSON, behind the prefix of its rank.
nlohmann::json ResultOf(const Program& program) {
  const std::string output = program.Output();
  const size_t begin = output.find('{');
  if (begin == std::string::npos) return {};
  return nlohmann::json::parse(
      output.substr(begin, output.find('\n', begin) - begin), nullptr, false);
}

void ExpectTrained(Program& program, double accuracy) {
  EXPECT_EQ(program.Wait(), 0) << program.Errors();
  const nlohmann::json result = ResultOf(program);
  ASSERT_TRUE(result.contains("test_accuracy"))
      << program.Output() << program.Errors();
  EXPECT_GT(result["test_accuracy"], accuracy);
  EXPECT_GT(result["samples_per_s"], 0);
}

TEST(MnistDdpTest, TrainsInOneProcess) {
  Program program(kProgram, {"--processes=1", "--epochs=1"});
  ExpectTrained(program, 0.85);
}

TEST(MnistDdpTest, StartsItsProcesses) {
  Program program(kProgram, {"--processes=2", "--epochs=1"});
  ExpectTrained(program, 0.85);
}

TEST(MnistDdpTest, RunsUnderTheLauncher) {
  Program program(kHawser,
                  {"run", "--standalone", "--nproc-per-node=3", kProgram,
                   "--model=cnn", "--epochs=1", "--compress=f16"});
  ExpectTrained(program, 0.85);
}

TEST(MnistDdpTest, TrainsWithGradientsThatLoseSomething) {
  for (const std::string compress : {"powersgd", "topk"}) {
    Program program(kProgram, {"--epochs=2", "--compress=" + compress});
    ExpectTrained(program, 0.85);
  }
}

// Trains on 8,000 real digits in HAWSER_MNIST_DIR and tests on 2,000.
TEST(MnistDdpTest, CompressedGradientsReachTheAccuracyOfOthers) {
  const char* directory = std::getenv("HAWSER_MNIST_DIR");
  if (directory == nullptr) {
    GTEST_SKIP() << "HAWSER_MNIST_DIR does not name a directory of digits";
  }
  const auto accuracy = [&](const std::string& compress) -> double {
    Program program(kProgram, {std::string("--data_dir=") + directory,
                               "--holdout=2000", "--compress=" + compress});
    EXPECT_EQ(program.Wait(), 0) << program.Errors();
    const nlohmann::json result = ResultOf(program);
    return result.contains("test_accuracy")
               ? result["test_accuracy"].get<double>()
               : 0;
  };
  const double plain = accuracy("none");
  EXPECT_GT(plain, 0.94);
  for (const std::string compress : {"f16", "bf16", "powersgd", "topk"}) {
    EXPECT_GE(accuracy(compress), plain - 0.005) << compress;
  }
}

TEST(MnistDdpTest, WrongFlagsAreNamed) {
  Program program(kProgram, {"--processes=1", "--model=rnn"});
  EXPECT_EQ(program.Wait(), 1);
  EXPECT_THAT(program.Errors(), HasSubstr("--model=rnn: must be mlp or cnn"));
}

}  // namespace
}  // namespace hawser::examples
