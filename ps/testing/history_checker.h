// Check of recorded histories of a table against its consistency.

#ifndef HAWSER_PS_TESTING_HISTORY_CHECKER_H_
#define HAWSER_PS_TESTING_HISTORY_CHECKER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ps/storage/consistency.h"

namespace hawser::ps {

// Takes the operations of all workers in the order in which they began and
// ended, and which pushes each pull saw, and finds the first one that breaks a
// guarantee of docs/ps.md:
//
//   - no row has a push twice, or one that was not sent to it;
//   - a pull sees what was acknowledged before it began, and what an earlier
//     pull of the row saw (monotone reads);
//   - a pull at clock c sees the pushes of its own worker at clocks before c
//     (read your writes);
//   - with bounded staleness s it sees those of all workers at clocks before
//     c - s, and no worker is at a clock before c - s when it ends;
//   - with synchronous consistency it sees no push of clock c or later;
//   - in the end each push that was acknowledged is in its rows.
//
// Pushes that failed, or whose worker was lost, may be missing. Workers have
// any numbers; one that joins again is a new one. Not thread-safe.
class HistoryChecker {
 public:
  // How often a row has each push.
  using Pushes = std::map<int64_t, int64_t>;
  // By key.
  using Rows = std::map<int64_t, Pushes>;

  explicit HistoryChecker(Consistency consistency)
      : consistency_(consistency) {}

  void Join(int worker, int64_t clock);
  void Advance(int worker);
  // The worker completes the clocks that it has advanced.
  void Leave(int worker);
  // It ends, or gives up, at any point of its clocks.
  void Lose(int worker);

  // Returns the number of the push: 0, 1, ...
  int64_t BeginPush(int worker, const std::vector<int64_t>& keys);
  void EndPush(int64_t push, bool acknowledged);

  // Returns the number of the pull.
  int64_t BeginPull(int worker);
  // `rows` are some of the rows that it returned.
  void EndPull(int64_t pull, const Rows& rows);

  // `rows` are all rows after the last operation.
  void CheckEnd(const Rows& rows);

  // The first violation, with its operation; empty if there is none.
  const std::string& failure() const { return failure_; }

 private:
  struct Worker {
    int64_t joined_at = 0;
    // The time at which it left or was lost.
    std::optional<int64_t> ended_at;
    bool lost = false;
    int64_t clock = 0;
  };
  struct Push {
    int worker = 0;
    int64_t clock = 0;
    std::set<int64_t> keys;
    std::optional<int64_t> acknowledged_at;
    bool failed = false;
  };
  struct Pull {
    int worker = 0;
    int64_t clock = 0;
    int64_t began_at = 0;
  };

  void Fail(const std::string& text);
  // Whether the history must contain the push, once it is time.
  bool MustCount(const Push& push) const;
  // Why a pull must see a push; empty if it need not.
  std::string MustSee(const Pull& pull, const Push& push) const;
  void CheckProgress(const std::string& name, const Pull& pull);
  void CheckRow(const std::string& name, const Pull& pull, int64_t key,
                const Pushes& seen);
  void CheckCounts(const std::string& name, int64_t key, const Pushes& seen);

  const Consistency consistency_;
  // Counts operations.
  int64_t now_ = 0;
  std::map<int, Worker> workers_;
  std::vector<Push> pushes_;
  std::vector<Pull> pulls_;
  // By key, for each push that was seen there: when the first such pull ended.
  std::map<int64_t, std::map<int64_t, int64_t>> seen_;
  std::string failure_;
};

}  // namespace hawser::ps

#endif  // HAWSER_PS_TESTING_HISTORY_CHECKER_H_
