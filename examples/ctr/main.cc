// Prediction of clicks, with embeddings on servers:
//
//   ./bazelw run //examples/ctr
//
// README.md in this folder describes the options.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "data/metrics.h"
#include "data/tabular/criteo_reader.h"
#include "data/tabular/libsvm_reader.h"
#include "data/tabular/samples.h"
#include "data/tabular/synthetic_clicks.h"
#include "examples/ctr/model.h"
#include "launch/job/job_flags.h"
#include "launch/training/sparse_program.h"
#include "launch/training/training_flags.h"
#include "ps/storage/table_spec.h"

ABSL_FLAG(std::string, data, "",
          "Click data, plain or gzip: CSV with the columns label, I1, ... and "
          "C1, ..., or lines of libsvm. Default: generated clicks.");
ABSL_FLAG(std::string, test_data, "",
          "Click data for testing, with the same columns. Default: a part of "
          "--data.");
ABSL_FLAG(std::string, format, "csv", "Format of the files, csv or libsvm.");
ABSL_FLAG(std::string, model, "deepfm", "deepfm or wide_deep.");
ABSL_FLAG(int64_t, embedding_width, 8, "Numbers in each embedding.");
ABSL_FLAG(std::vector<std::string>, hidden,
          std::vector<std::string>({"64", "32"}),
          "Widths of the hidden layers.");
ABSL_FLAG(std::string, wide_optimizer, "FTRL(lr=0.1)",
          "Update rule of the weights of single keys.");
ABSL_FLAG(std::string, deep_optimizer, "Adagrad(lr=0.1)",
          "Update rule of the embeddings.");
ABSL_FLAG(std::string, dense_optimizer, "Adam(lr=0.001)",
          "Update rule of the layers.");

namespace hawser::examples::ctr {
namespace {

using launch::TrainingOptions;

absl::StatusOr<bool> IsLibsvm() {
  const std::string format = absl::GetFlag(FLAGS_format);
  if (format == "csv" || format == "libsvm") return format == "libsvm";
  return absl::InvalidArgumentError(
      absl::StrCat("--format=", format, ": must be csv or libsvm"));
}

absl::StatusOr<launch::SparseData> OpenData(const TrainingOptions& options) {
  const std::string path = absl::GetFlag(FLAGS_data);
  const std::string test_path = absl::GetFlag(FLAGS_test_data);
  ASSIGN_OR_RETURN(const bool libsvm, IsLibsvm());
  launch::SparseData data;
  if (path.empty()) {
    if (!test_path.empty()) {
      return absl::InvalidArgumentError("--test_data needs --data");
    }
    data.train = [seed = options.seed] {
      return std::make_unique<data::SyntheticClicks>(
          data::SyntheticClicksOptions{.seed = seed});
    };
    return data;
  }
  int64_t width = 0;
  for (const std::string& each : {path, test_path}) {
    if (!libsvm || each.empty()) continue;
    ASSIGN_OR_RETURN(const int64_t own_width, data::LibsvmWidth(each));
    width = std::max(width, own_width);
  }
  const auto open = [libsvm, width](const std::string& each) {
    return [=]() -> absl::StatusOr<std::unique_ptr<data::SampleReader>> {
      if (libsvm) return data::LibsvmReader::Open(each, width);
      return data::CriteoReader::Open(each);
    };
  };
  data.train = open(path);
  if (!test_path.empty()) data.test = open(test_path);
  return data;
}

absl::StatusOr<bool> IsDeepFm() {
  const std::string model = absl::GetFlag(FLAGS_model);
  if (model == "deepfm" || model == "wide_deep") return model == "deepfm";
  return absl::InvalidArgumentError(
      absl::StrCat("--model=", model, ": must be deepfm or wide_deep"));
}

absl::StatusOr<std::vector<int64_t>> HiddenWidths() {
  std::vector<int64_t> widths;
  for (const std::string& text : absl::GetFlag(FLAGS_hidden)) {
    int64_t width = 0;
    if (!absl::SimpleAtoi(text, &width) || width < 1 || width > 65536) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--hidden: '", text, "' must be a number from 1 to 65536"));
    }
    widths.push_back(width);
  }
  return widths;
}

absl::StatusOr<std::unique_ptr<ps::SparseModel>> MakeModel(
    const TrainingOptions& options, const data::SampleWidth& width,
    const data::SampleSummary&) {
  ClickModel::Options model = {
      .width = width,
      .embedding_width = absl::GetFlag(FLAGS_embedding_width),
      .wide_table = {.name = "wide"},
      .deep_table = {.name = "deep",
                     .initializer = ps::Initializer::Normal(0, 0.1),
                     .seed = options.seed},
      .seed = options.seed};
  RETURN_IF_ERROR(
      launch::CheckAtLeast("embedding_width", model.embedding_width, 1));
  ASSIGN_OR_RETURN(model.deep_fm, IsDeepFm());
  ASSIGN_OR_RETURN(model.hidden, HiddenWidths());
  ASSIGN_OR_RETURN(model.wide_table.rule,
                   launch::ParseRuleFlag("wide_optimizer",
                                         absl::GetFlag(FLAGS_wide_optimizer)));
  ASSIGN_OR_RETURN(model.deep_table.rule,
                   launch::ParseRuleFlag("deep_optimizer",
                                         absl::GetFlag(FLAGS_deep_optimizer)));
  ASSIGN_OR_RETURN(model.dense_rule,
                   launch::ParseRuleFlag("dense_optimizer",
                                         absl::GetFlag(FLAGS_dense_optimizer)));
  return ClickModel::Create(model);
}

}  // namespace
}  // namespace hawser::examples::ctr

int main(int argc, char** argv) {
  namespace ctr = hawser::examples::ctr;
  return hawser::launch::RunSparseProgram(
      {.usage = {.summary = "Trains a model that predicts clicks, with its "
                            "embeddings on server processes.",
                 .commands = {"ctr --model=wide_deep --servers=2",
                              "ctr --data=train.csv --test_data=test.csv",
                              "ctr --data=train.libsvm --format=libsvm",
                              "ctr --local --epochs=1"}},
       .flags_file = __FILE__,
       .task = {.name = "ctr",
                .measure_name = "auc",
                .measure = hawser::data::Auc,
                .open_data = ctr::OpenData,
                .make_model = ctr::MakeModel}},
      argc, argv);
}
