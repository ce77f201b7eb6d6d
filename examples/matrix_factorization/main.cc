// Matrix factorization on servers:
//
//   ./bazelw run //examples/matrix_factorization
//
// README.md in this folder describes the options.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "data/metrics.h"
#include "data/tabular/ratings_reader.h"
#include "data/tabular/samples.h"
#include "data/tabular/synthetic_ratings.h"
#include "examples/matrix_factorization/model.h"
#include "launch/job/job_flags.h"
#include "launch/training/sparse_program.h"
#include "launch/training/training_flags.h"
#include "ps/storage/table_spec.h"

ABSL_FLAG(std::string, data, "",
          "File of lines user, item, rating and perhaps timestamp, with any "
          "separator, plain or gzip. Default: generated ratings.");
ABSL_FLAG(std::string, test_data, "",
          "File of the ratings for testing. Default: a part of --data.");
ABSL_FLAG(std::string, separator, "",
          "Separator of the fields, such as '::'. Default: the first "
          "punctuation or blanks of the file.");
ABSL_FLAG(int64_t, factors, 16, "Factors of each user and item.");
ABSL_FLAG(double, l2, 0.01, "Weight of the squares of factors and biases.");
ABSL_FLAG(std::string, optimizer, "Adagrad(lr=0.1)",
          "Update rule of the rows and its options.");

namespace hawser::examples::matrix_factorization {
namespace {

using launch::TrainingOptions;

data::SampleOpener OpenFile(const std::string& path) {
  return [path] {
    return data::RatingsReader::Open(path, absl::GetFlag(FLAGS_separator));
  };
}

absl::StatusOr<launch::SparseData> OpenData(const TrainingOptions& options) {
  const std::string path = absl::GetFlag(FLAGS_data);
  const std::string test_path = absl::GetFlag(FLAGS_test_data);
  launch::SparseData data;
  if (path.empty()) {
    if (!test_path.empty()) {
      return absl::InvalidArgumentError("--test_data needs --data");
    }
    data.train = [seed = options.seed] {
      return std::make_unique<data::SyntheticRatings>(
          data::SyntheticRatingsOptions{.seed = seed});
    };
  } else {
    data.train = OpenFile(path);
  }
  if (!test_path.empty()) data.test = OpenFile(test_path);
  return data;
}

absl::StatusOr<std::unique_ptr<ps::SparseModel>> MakeModel(
    const TrainingOptions& options, const data::SampleWidth&,
    const data::SampleSummary& samples) {
  const int64_t num_factors = absl::GetFlag(FLAGS_factors);
  RETURN_IF_ERROR(launch::CheckAtLeast("factors", num_factors, 1));
  const double l2 = absl::GetFlag(FLAGS_l2);
  if (!std::isfinite(l2) || l2 < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--l2=", l2, ": must be 0 or greater"));
  }
  ASSIGN_OR_RETURN(auto rule, launch::ParseRuleFlag(
                                  "optimizer", absl::GetFlag(FLAGS_optimizer)));
  return std::make_unique<Factorization>(Factorization::Options{
      .num_factors = num_factors,
      .mean_rating = samples.mean_label,
      .l2 = l2,
      .table = {.rule = rule,
                .initializer = ps::Initializer::Normal(0, 0.1),
                .seed = options.seed}});
}

}  // namespace
}  // namespace hawser::examples::matrix_factorization

int main(int argc, char** argv) {
  namespace mf = hawser::examples::matrix_factorization;
  return hawser::launch::RunSparseProgram(
      {.usage = {.summary = "Factorizes ratings of items by users, with the "
                            "factors on server processes.",
                 .commands = {"matrix_factorization --servers=2",
                              "matrix_factorization --data=ratings.dat",
                              "matrix_factorization --local --epochs=1"}},
       .flags_file = __FILE__,
       .task = {.name = "matrix_factorization",
                .measure_name = "rmse",
                .measure = hawser::data::Rmse,
                .open_data = mf::OpenData,
                .make_model = mf::MakeModel}},
      argc, argv);
}
